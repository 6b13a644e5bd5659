"""Runs by the quick recipes: initialized and grouped here, trained by the package, resumed to the bit."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from experiments.cells import override
from experiments.quick import run as quick
from experiments.tests.small import TINY
from paramixer.cli import main
from paramixer.recipes import PRESETS
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import open_task

SETTINGS = override(
    TINY,
    {"recipe": "quick", "task": "adding", "data.length": 1000, "training.schedule": "constant", "model.hidden": 5},
)


class Stop(Callback):
    def on_step(self, loop):
        if loop.progress.step == 4:
            loop.interrupt("a test")


def read_state(folder: str) -> bytes:
    (checkpoint,) = (Path(folder) / "state").iterdir()
    return (checkpoint / "tensors.safetensors").read_bytes()


def test_an_interrupted_run_goes_on_to_the_bit():
    whole = quick.train(SETTINGS, Path("whole"))
    with pytest.raises(Interrupted, match="stopped by a test; go on with: python -m experiments"):
        quick.train(SETTINGS, Path("parts"), callbacks=[Stop()])
    assert quick.train(SETTINGS, Path("parts")) == whole
    assert read_state("parts") == read_state("whole")


def test_the_record_says_what_the_package_does_not_know():
    quick.train(SETTINGS, Path("run"))
    record = RunFolder(Path("run")).read_record()
    assert record["recipe"] == "quick"
    assert record["init"] == {"name": "even", "embedding_bound": None, "ordered_ids": False, "scale_by_data": True}
    (head,) = [group for group in record["parameter_groups"] if group["lr_factor"] != 1.0]
    assert head == {"params": ["head.linear.weight"], "lr_factor": 0.3}
    assert open_task(Path("run")).fingerprint == record["fingerprint"]


def test_the_command_line_refuses_to_resume_it(capsys):
    with pytest.raises(Interrupted):
        quick.train(SETTINGS, Path("run"), callbacks=[Stop()])
    assert main(["train", "--resume", "run"]) == 2
    assert "are its caller's, and its settings do not hold them; go on with python -m experiments" in (
        " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("system", ["paramixer", "transformer"])
def test_every_recipe_resolves(preset, system):
    task = dataclasses.replace(TINY.load_task(), preset=preset)
    settings = override(TINY, {"recipe": "quick", "system": system, "model.channels": 8})
    found = quick.resolve_quick(task, settings)
    assert (found.resolved.recipe, found.resolved.system) == ("quick", system)
    assert found.resolved.training.schedule == "cosine"
    quick.build_quick(task, found, 0)


def test_a_cell_may_name_another_initialization():
    """The rest of the recipe's section stays."""
    task = SETTINGS.load_task()
    found = quick.resolve_quick(task, override(SETTINGS, {"init.name": "paper"}))
    assert (found.init.name, found.init.scale_by_data) == ("paper", True)
