"""n-gram counts and logistic regression, as a model like any other."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry
from paramixer.baselines.ngrams import Ngrams
from paramixer.cli import main
from paramixer.training.run_folder import RunFolder


def model(**fields: object) -> Ngrams:
    settings = {"length": 30, "vocabulary": 9, "outputs": 3, "mixer": "ngrams", "pad": 0}
    return Ngrams(pm.ParamixerConfig(**settings | fields))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))


def test_counts_are_those_of_the_grams():
    sequences = [np.array([1, 2, 1, 2, 1]), np.array([3]), np.array([], np.int64), np.array([2, 1])]
    counted = model(window=2).counts(sequences).toarray()
    # 1, 2, 12, 21 in the first; 3 in the second; none; 2, 1, 21.
    for row, expected in zip(counted, ([3, 2, 2, 2], [1], [], [1, 1, 1]), strict=True):
        logs = np.log1p(np.array(sorted(expected), float))
        found = np.sort(row[row > 0])
        np.testing.assert_allclose(found, logs / max(1e-6, np.linalg.norm(logs)), rtol=1e-6)
    # The last one's grams are all in the first.
    assert ((counted[3] > 0) <= (counted[0] > 0)).all()


def test_answers_do_not_depend_on_padding_or_batch():
    found = model()
    found.set_weights(np.random.default_rng(0).normal(size=(3, found.columns)), np.arange(3.0))
    tokens, lengths = torch.randint(1, 9, (4, 20)), torch.tensor([20, 7, 1, 13])
    padded = tokens.clone()
    for row, length in enumerate(lengths):
        padded[row, length:] = 0
    together = found(padded)
    torch.testing.assert_close(found(tokens, lengths), together, rtol=0, atol=0)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(found(tokens[row : row + 1, :length])[0], together[row])


def test_two_classes_get_two_rows():
    found = model(outputs=2)
    found.set_weights(np.ones((1, found.columns)), np.array([0.5]))
    assert found.weight[0].abs().sum() == 0
    assert found.bias.tolist() == [0, 0.5]


def test_it_trains_evaluates_and_predicts_like_any_other(capsys):
    with Path("texts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for number in range(80):
            writer.writerow([f"t{number}", ("abab" if number % 2 else "aabb") * (2 + number % 5), number % 2])
    assert main(["train", "texts.csv", "--model", "ngrams", "--out", "run"]) == 0
    assert "n-gram counts + logistic regression" in capsys.readouterr().out
    record = RunFolder(Path("run")).read_record()
    assert record["finished"]
    assert record["test"]["accuracy"] == 1
    assert record["model"]["mixer"] == "ngrams"
    assert [line["strength"] for line in record["epochs"]] == [1, 10, 100]
    assert main(["evaluate", "run"]) == 0
    assert "accuracy 1.0000" in capsys.readouterr().out
    assert main(["predict", "run", "texts.csv", "--out", "found.jsonl"]) == 0
    rows = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    assert [row["prediction"] for row in rows] == [str(number % 2) for number in range(80)]
    capsys.readouterr()
    assert main(["train", "--resume", "run", "--steps", "3"]) == 2
    assert "fitted in one go" in capsys.readouterr().err


def test_it_refuses_what_it_cannot_count(capsys):
    assert main(["train", "adding", "--length", "8", "--train", "4", "--model", "ngrams"]) == 2
    assert "tokens that have classes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["performer", "chordmixer"])
def test_a_rival_trains_resumes_and_predicts_by_the_same_commands(name, capsys):
    small = ["--length", "24", "--train", "40", "--validation", "9", "--test", "7", "--batch", "4"]
    train = ["train", "order", *small, "--model", name, "--match", "parameters"]
    assert main([*train, "--steps", "6", "--evaluate_every", "3", "--out", "run"]) == 0
    assert main([*train, "--steps", "3", "--evaluate_every", "3", "--out", "half"]) == 0
    assert main(["train", "--resume", "half", "--steps", "6"]) == 0
    weights = [Path(folder, "model", "model.safetensors").read_bytes() for folder in ("run", "half")]
    assert weights[0] == weights[1]
    assert RunFolder(Path("run")).read_record()["model"]["mixer"] == name
    assert main(["evaluate", "run"]) == 0


@pytest.mark.parametrize("name", [name for name, found in registry.BASELINES.items() if not found.linear])
def test_any_rival_trains_on_texts_of_many_lengths(name):
    lines = [f"{'ab' if number % 2 else 'ba'}{'c' * (number % 9)},{number % 2}" for number in range(40)]
    Path("own.csv").write_text("\n".join(["text,label", *lines]))
    command = ["train", "own.csv", "--model", name, "--steps", "2", "--batch", "4", "--model.channels", "8"]
    assert main([*command, "--out", "run"]) == 0
    record = RunFolder(Path("run")).read_record()
    assert record["model"]["padding"] == "length"
    assert np.isfinite(record["test"]["loss"])
