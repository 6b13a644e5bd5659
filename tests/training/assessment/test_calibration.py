"""The temperature: as sure as right, no surer, and the same classes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import paramixer as pm
from paramixer.cli import main
from paramixer.training.assessment.calibration import measure_temperature
from paramixer.training.runs.folder import RunFolder


def test_answers_that_are_three_times_too_sure_have_temperature_three(generator):
    honest = torch.randn(40_000, 3, generator=generator)
    targets = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    assert measure_temperature(3 * honest, targets) == pytest.approx(3, rel=0.03)
    assert measure_temperature(0.5 * honest, targets) == 1.0


def test_it_is_where_the_loss_is_smallest(generator):
    logits = 5 * torch.randn(50, 4, generator=generator)
    targets = torch.multinomial((logits / 4).softmax(1), 1, generator=generator)[:, 0]
    temperature = measure_temperature(logits, targets)
    losses = [float(F.cross_entropy(logits / (temperature * factor), targets)) for factor in (0.9, 1.0, 1.1)]
    assert losses[1] <= min(losses)


@pytest.mark.parametrize(
    ("answers", "targets", "expected"),
    [
        (torch.tensor([[9.0, 0.0], [0.0, 9.0]]), torch.tensor([0, 1]), 1.0),
        (torch.tensor([[9.0, 0.0], [0.0, 9.0]]), torch.tensor([1, 0]), 100.0),
        (torch.zeros(3, 2), torch.tensor([0, 1, 1]), 1.0),
        (torch.empty(0, 2), torch.empty(0, dtype=torch.int64), 1.0),
        (torch.tensor([[math.nan, 0.0]]), torch.tensor([0]), 1.0),
    ],
    ids=["all right", "all wrong", "undecided", "none", "nan"],
)
def test_the_ends(answers, targets, expected):
    assert measure_temperature(answers, targets) == pytest.approx(expected)


def make_rows(count: int) -> tuple[list[str], list[int]]:
    """Texts of which a third have the wrong label: whoever is always sure is often wrong."""
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=count)
    words = [" ".join(draw.choice(["good", "fine"] if label else ["bad", "poor"], 5)) for label in labels]
    texts = [f"{text} {''.join(draw.choice(list('abcdefgh'), 30))}" for text in words]
    return texts, [int(label) if draw.random() < 0.67 else 1 - int(label) for label in labels]


def test_a_run_of_a_file_is_as_sure_as_it_is_right(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts, labels = make_rows(300)
    rows = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    Path("a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    words = "train a.csv --text text --label label --out run --no-baseline --set training.steps=300 --batch 16"
    assert main([*words.split(), "--set", "training.evaluate_every=300"]) == 0
    record = RunFolder(Path("run")).read_record()
    assert record["temperature"] > 1.1
    (line,) = [line for line in RunFolder(Path("run")).read_lines() if line["kind"] == "validation"]
    capsys.readouterr()
    losses = []
    for split in ("validation", "test"):
        assert main(["evaluate", "run", "--split", split]) == 0
        losses.append(float(re.search(r"loss ([0-9.]+)", capsys.readouterr().out)[1]))
    # The model in the folder is the softened one, and the one of the record.
    assert losses[0] < line["loss"] - 0.01
    assert losses[1] == pytest.approx(record["test"]["loss"], abs=1e-4)
    # As if it had been killed after the softened model was written: it is not softened twice.
    RunFolder(Path("run")).write_record({**record, "finished": False})
    assert main(["train", "--resume", "run"]) == 0
    assert RunFolder(Path("run")).read_record()["test"]["loss"] == pytest.approx(record["test"]["loss"], rel=1e-6)


def test_the_paper_s_network_and_values_keep_their_answers():
    task = pm.data.load("adding", length=16, train=64, validation=16, test=16)
    assert pm.fit(pm.build_model(task), task, pm.TrainingOptions(steps=2)).temperature == 1.0
    task = pm.data.load("order", length=16, train=64, validation=16, test=16)
    model = pm.build_model(task, recipe="paper")
    assert pm.fit(model, task, pm.TrainingOptions(steps=2)).temperature == 1.0
