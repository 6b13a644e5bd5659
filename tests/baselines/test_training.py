"""Every baseline trains, resumes and predicts as Paramixer does."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry
from paramixer.export.run_export import export_run
from paramixer.training.assessment.baseline import fit_baseline
from paramixer.training.assessment.metrics import compute_loss
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import RunSettings, evaluate_run, resume_run, start_run

BASELINES = [name for name, baseline in registry.BASELINES.items() if not baseline.closed_form]


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """Texts of many lengths whose class follows from the order of two letters; prepared once for all tests."""
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for number in range(80):
            writer.writerow([f"t{number}", ("abab" if number % 2 else "aabb") * (2 + number % 5), number % 2])
    return path


@pytest.fixture(autouse=True)
def _cache(texts, monkeypatch):
    monkeypatch.setenv("PARAMIXER_CACHE", str(texts.parent / "cache"))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_trains_on_texts_of_many_lengths(name, texts, tmp_path):
    settings = RunSettings(
        task=str(texts), system=name, model={"channels": 8}, training={"steps": 2, "batch": 4, "learning_rate": 1e-3}
    )
    start_run(settings, tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert record["system"] == name
    assert record["model"]["padding"] == "length"
    assert np.isfinite(record["test"]["loss"])


@pytest.mark.parametrize("name", ["performer", "chordmixer"])
def test_a_resumed_baseline_has_the_same_weights(name, tmp_path):
    def settings(steps: int) -> RunSettings:
        return RunSettings(
            task="order",
            data={"length": 24, "train": 40, "validation": 9, "test": 7},
            system=name,
            training={"steps": steps, "batch": 4, "evaluate_every": 3},
            match_parameters=True,
        )

    start_run(settings(6), tmp_path / "run")
    start_run(settings(3), tmp_path / "half")
    resume_run(tmp_path / "half", steps=6)
    weights = [(tmp_path / run / "model" / "model.safetensors").read_bytes() for run in ("run", "half")]
    assert weights[0] == weights[1]
    assert RunFolder(tmp_path / "run").read_record()["system"] == name


def test_ngrams_are_not_exported(texts, tmp_path):
    start_run(RunSettings(task=str(texts), system="ngrams"), tmp_path / "run")
    with pytest.raises(ValueError, match=r"a model of n-gram counts, which torch cannot trace; use it by pm.load"):
        export_run(tmp_path / "run", "pt2")


def test_ngrams_are_the_baseline_that_is_printed_beside_a_run(texts, tmp_path):
    """So that the advice to keep the simple model gives that model."""
    settings = RunSettings(task=str(texts), system="ngrams", training={"balance": True})
    outcome = start_run(settings, tmp_path / "run")
    baseline = fit_baseline(settings.load_task(), balance=True)
    targets = torch.as_tensor(np.asarray(settings.load_task().test.targets)).long()
    assert outcome.test["loss"] == pytest.approx(float(compute_loss(baseline.answers, targets)), rel=1e-5)
    assert (outcome.validation, outcome.test["accuracy"]) == (baseline.validation, baseline.test)


def test_ngrams_train_evaluate_and_predict(texts, tmp_path):
    start_run(RunSettings(task=str(texts), system="ngrams"), tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert record["finished"]
    assert record["test"]["accuracy"] == 1
    assert record["system"] == "ngrams"
    assert [line["strength"] for line in record["epochs"]] == [1, 10, 100]
    assert evaluate_run(tmp_path / "run").metrics["accuracy"] == 1
    answers = pm.load(tmp_path / "run").predict(["abababab", "aabbaabb"])
    assert [answer["prediction"] for answer in answers] == ["1", "0"]
    with pytest.raises(ValueError, match="cannot be resumed|in one go"):
        resume_run(tmp_path / "run", steps=3)
