"""A run from its settings: the same bits from Python and from the shell, and a folder that says it all."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
import yaml

import paramixer as pm
from paramixer.cli import main
from paramixer.recipes import Recipe
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import RunSettings, describe_run, evaluate_run, open_task, resume_run, start_run

SETTINGS = RunSettings(
    task="order",
    data={"length": 12, "train": 40, "validation": 9, "test": 7},
    model={"channels": 6, "hidden": 5},
    training={"steps": 6, "batch": 4, "evaluate_every": 3},
    seed=3,
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def reviews(tmp_path) -> Path:
    """Texts of many lengths."""
    path = tmp_path / "reviews.csv"
    rows = [f"{('good ' if number % 2 else 'bad ') * (1 + number % 7)},{number % 2}" for number in range(60)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


def weights(folder: str) -> bytes:
    return (Path(folder) / "model" / "model.safetensors").read_bytes()


def test_the_same_file_gives_the_same_bits_from_python_and_from_the_shell(reviews):
    """By default too: no recipe is named anywhere."""
    small = ["--set", "model.channels=6", "--set", "model.hidden=5", "--set", "model.blocks=1"]
    assert main(["train", str(reviews), "--epochs", "2", *small, "--out", "shell"]) == 0
    task = pm.data.load(reviews)
    resolved = pm.resolve(task, model={"channels": 6, "hidden": 5, "blocks": 1})
    model = pm.build_model(task, resolved)
    outcome = pm.fit(model, task, pm.TrainingOptions(epochs=2), folder="python")
    assert weights("python") == weights("shell")
    in_memory = pm.build_model(task, resolved)
    assert pm.fit(in_memory, task, pm.TrainingOptions(epochs=2)) == outcome
    in_memory.save_pretrained("memory/model")
    assert weights("memory") == weights("shell")


def test_a_run_is_repeated_from_its_own_config():
    start_run(SETTINGS, Path("one"))
    document = yaml.safe_load(Path("one/config.yaml").read_text())
    start_run(RunSettings.from_document(document), Path("two"))
    assert Path("one/config.yaml").read_text() == Path("two/config.yaml").read_text()
    assert weights("one") == weights("two")


def test_a_described_run_is_complete_and_nothing_is_written():
    document = describe_run(SETTINGS)
    assert not Path("runs").exists()
    assert document["init"]["name"] == "prenorm"
    assert describe_run(RunSettings.from_document(document)) == document


def test_resuming_needs_neither_flags_nor_the_recipes_file():
    Path("mine.yaml").write_text("base: default\ntraining: {learning_rate: 0.004}\n")
    mine = dataclasses.replace(SETTINGS, recipe="mine.yaml")
    start_run(mine, Path("whole"))
    start_run(dataclasses.replace(mine, training={**mine.training, "steps": 3}), Path("parts"))
    Path("mine.yaml").unlink()
    with pytest.raises(ValueError, match="parts is finished; give more epochs"):
        resume_run(Path("parts"))
    resume_run(Path("parts"), steps=6)
    # The cosine of the first part was shorter, so that only the settings agree, not the bits.
    records = [RunFolder(Path(name)).read_record() for name in ("whole", "parts")]
    assert [record["steps"] for record in records] == [6, 6]
    assert records[0]["model"] == records[1]["model"]
    assert records[1]["training"]["learning_rate"] == 0.004


def test_the_record_names_recipe_system_and_initialization():
    start_run(SETTINGS, Path("run"))
    record = RunFolder(Path("run")).read_record()
    assert (record["recipe"], record["system"], record["init"]["name"]) == ("default", "paramixer", "prenorm")
    assert record["model"]["channels"] == 6
    assert evaluate_run(Path("run"))[:2] == (7, record["test"])
    assert open_task(Path("run")).fingerprint == record["fingerprint"]


def test_a_folder_is_neither_replaced_nor_a_file():
    start_run(SETTINGS, Path("run"))
    with pytest.raises(FileExistsError, match="there is a run in run already"):
        start_run(SETTINGS, Path("run"))
    Path("file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is a file"):
        start_run(SETTINGS, Path("file"))


def test_a_trained_model_predicts_raw_inputs(reviews):
    start_run(dataclasses.replace(SETTINGS, task=str(reviews), data={}), Path("run"))
    rows = pm.load("run").predict(["good film", "bad"])
    assert [set(row) for row in rows] == [{"prediction", "probability_0", "probability_1"}] * 2


def test_unknown_settings_are_named():
    with pytest.raises(ValueError, match="unknown settings: modle"):
        RunSettings.from_document({"task": "order", "modle": {}})
    with pytest.raises(ValueError, match="name a task or a file"):
        RunSettings.from_document({})


def test_a_baseline_trains_and_loads_by_the_same_functions():
    start_run(dataclasses.replace(SETTINGS, system="transformer", recipe=None), Path("run"))
    record = RunFolder(Path("run")).read_record()
    assert (record["system"], record["recipe"]) == ("transformer", "paper")
    assert evaluate_run(Path("run"))[:2] == (7, record["test"])
    ngrams = dataclasses.replace(SETTINGS, system="ngrams", recipe=None, model={}, training={})
    start_run(ngrams, Path("counts"))
    tested = RunFolder(Path("counts")).read_record()["test"]["error"]
    assert evaluate_run(Path("counts")).metrics["error"] == pytest.approx(tested)
    with pytest.raises(ValueError, match="fitted in one go"):
        resume_run(Path("counts"), steps=9)


def test_a_recipe_can_be_given_as_a_value():
    task = pm.data.load("order", length=12, train=40, validation=9, test=7)
    recipe = Recipe("mine", {"channels": 6}, {}, {"batch": 4, "learning_rate": 0.1, "steps": 3})
    assert pm.resolve(task, recipe=recipe).config.channels == 6


@pytest.mark.parametrize(
    "wrong",
    [
        {"recipe": "papre"},
        {"system": "transfomer"},
        {"training": {"batch": 0}},
        {"model": {"pooling": "token"}},
        {"model": {"chanels": 4}},
        {"model": {"length": 4}},
        {"init": {"name": "zero"}},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_before_any_data_is_read(wrong, reviews, tmp_path):
    with pytest.raises(ValueError, match="papre|transfomer|batch=0|token|chanels|length=4|zero"):
        start_run(dataclasses.replace(SETTINGS, task=str(reviews), data={}, **wrong), Path("run"))
    assert not (tmp_path / "cache").exists()
    assert not Path("run").exists()


def test_an_extended_run_that_is_interrupted_goes_on_by_itself():
    class Impatient(Callback):
        def on_step(self, loop):
            if loop.progress.step == 8:
                loop.interrupt("a test")

    start_run(SETTINGS, Path("run"))
    with pytest.raises(Interrupted, match="stopped by a test; go on with: paramixer train --resume run"):
        resume_run(Path("run"), steps=12, callbacks=[Impatient()])
    assert not RunFolder(Path("run")).read_record()["finished"]
    assert resume_run(Path("run")).steps == 12
    with pytest.raises(ValueError, match="run has taken 12 steps already; give more"):
        resume_run(Path("run"), steps=5)


def test_a_new_limit_replaces_the_old_ones():
    start_run(dataclasses.replace(SETTINGS, training={"minutes": 1e-6, "batch": 4}), Path("run"))
    assert resume_run(Path("run"), epochs=1).steps == 10


def test_a_finished_run_without_its_checkpoint_does_not_start_over():
    start_run(SETTINGS, Path("run"))
    shutil.rmtree("run/state")
    with pytest.raises(ValueError, match="holds no checkpoint to resume from"):
        resume_run(Path("run"), steps=12)


def test_a_run_from_python_is_a_run_for_the_shell(reviews, tmp_path, monkeypatch):
    task = pm.data.load(reviews.name)
    resolved = pm.resolve(task, model={"channels": 6, "hidden": 5, "blocks": 1}, training={"steps": 4})
    pm.fit(pm.build_model(task, resolved), task, resolved, folder="python")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["evaluate", str(tmp_path / "python")]) == 0
    assert main(["train", "--resume", str(tmp_path / "python"), "--set", "training.steps=8"]) == 0
    assert RunFolder(tmp_path / "python").read_record()["steps"] == 8


def test_data_in_memory_cannot_be_loaded_again():
    task = dataclasses.replace(pm.data.load("order", length=12, train=40, validation=9, test=7), request={})
    pm.fit(pm.build_model(task), task, pm.TrainingOptions(steps=2), folder="run")
    with pytest.raises(ValueError, match="run was trained on data in memory"):
        evaluate_run(Path("run"))
