"""The simple model beside a run: it learns what it can, from the same splits, and is recorded and named."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

import paramixer as pm
from paramixer.data.splits import SPLITS
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training.assessment import baseline as baselines
from paramixer.training.assessment.baseline import Baseline, describe_signal, fit_baseline
from paramixer.training.assessment.metrics import METRICS
from paramixer.training.assessment.verdict import give_verdict
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.folds import run_folds
from paramixer.training.runs.run import RunSettings, evaluate_run, resume_run, start_run

TRAINING = {"steps": 4, "batch": 4, "evaluate_every": 2}


def _task(make, kind="class", metric="accuracy", sizes=(120, 40, 60), **fields):
    generator = np.random.default_rng(0)
    splits = {}
    for name, size in zip(SPLITS, sizes, strict=True):
        pairs = [make(generator, number) for number in range(size)]
        targets = np.array([target for _, target in pairs])
        splits[name] = MemorySequences([sequence for sequence, _ in pairs], targets)
    info = TaskInfo(
        name="own",
        preset="adding",
        metric=metric,
        target=kind,
        length=max(int(split.lengths.max()) for split in splits.values()),
        classes=("a", "b") if kind == "class" else (),
        **fields,
    )
    return Task.from_splits(info, splits, "0" * 64)


def _text(generator, number):
    word = [[3, 4, 5], [5, 4, 3]][number % 2]
    return np.array([*generator.integers(1, 7, 20), *word, *generator.integers(1, 7, 20)]), number % 2


_LETTERS = Vocabulary.from_characters("abcdef")


def test_texts_are_told_apart_by_their_ngrams():
    result = fit_baseline(_task(_text, vocabulary=_LETTERS))
    assert (result.name, result.guess, result.guess_name) == ("n-grams", 0.5, "majority")
    assert result.test > 0.8
    assert result.answers.shape == (60, 2)
    assert result.interval[0] < result.test < result.interval[1]


def test_long_texts_whose_slopes_are_all_small_are_fitted_too():
    words = np.random.default_rng(1).integers(1, 27, (2, 10, 6))

    def text(generator, number):
        letters = generator.integers(1, 27, 3000)
        for place, word in enumerate(generator.permutation(10)[:5]):
            letters[100 * place : 100 * place + 6] = words[number % 2, word]
        return letters, number % 2

    letters = Vocabulary.from_characters("abcdefghijklmnopqrstuvwxyz")
    assert fit_baseline(_task(text, vocabulary=letters)).test > 0.8


def test_values_of_texts_are_predicted_by_ridge_on_the_same_counts():
    def count(generator, number):
        sequence = generator.integers(1, 7, 30)
        return sequence, float((sequence == 2).sum())

    result = fit_baseline(_task(count, "value", "mse", vocabulary=_LETTERS))
    assert result.guess_name == "mean"
    assert result.test < 0.5 * result.guess


def test_equally_long_numbers_are_taken_one_by_one_and_others_by_statistics():
    def slope(generator, number):
        return (generator.normal(size=(16, 2)) + np.linspace(-1, 1, 16)[:, None] * (number % 2)), number % 2

    assert fit_baseline(_task(slope, features=2)).name == "linear model of the values"

    def tone(generator, number):
        length = int(generator.integers(40, 60))
        phase, frequency = generator.uniform(0, 6.3), 0.3 + 0.5 * (number % 2)
        return np.sin(phase + frequency * np.arange(length))[:, None], number % 2

    result = fit_baseline(_task(tone, features=1))
    assert (result.name, result.test) == ("linear model of statistics", 1)


@pytest.mark.parametrize("length", [1, 2, 3, 100])
def test_statistics_are_finite_and_equally_many_for_any_length(length):
    assert describe_signal(np.zeros((length, 2))).shape == describe_signal(np.ones((7, 2))).shape
    assert np.isfinite(describe_signal(np.random.default_rng(0).normal(size=(length, 2)))).all()


def test_of_large_data_a_random_part_is_taken_and_said(monkeypatch):
    monkeypatch.setattr(baselines, "_POSITIONS", 1000)
    task = _task(_text, vocabulary=_LETTERS)
    result = fit_baseline(task)
    assert 10 < result.fitted < 30
    assert f"on {result.fitted} of 120 training sequences" in result.describe(120)


def test_a_class_that_train_lacks_and_one_class_alone_are_no_error():
    task = _task(_text, vocabulary=_LETTERS)
    three = dataclasses.replace(task, classes=("a", "b", "c"))
    assert fit_baseline(three).answers.shape == (60, 3)
    alone = MemorySequences([task.train[index].inputs.numpy() for index in range(0, 120, 2)], np.zeros(60, np.int64))
    assert fit_baseline(dataclasses.replace(task, train=alone)).test == 0.5
    no_auc = MemorySequences([task.train[index].inputs.numpy() for index in range(4)], np.zeros(4, np.int64))
    assert fit_baseline(dataclasses.replace(task, validation=no_auc, metric="roc_auc")).test > 0.8


def _reviews(path: Path) -> str:
    words = [("good " if n % 2 else "bad ") * (1 + n % 7) + "abcdefg"[n % 7] for n in range(90)]
    path.write_text("\n".join(["text,label", *(f"{word},{n % 2}" for n, word in enumerate(words))]))
    return str(path)


def test_a_file_gets_a_baseline_that_record_and_verdict_name_and_resuming_keeps(tmp_path):
    settings = RunSettings(task=_reviews(tmp_path / "a.csv"), training=TRAINING)
    start_run(settings, tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert {"name", "validation", "test", "guess", "seconds"} <= record["baseline"].keys()
    assert record["baseline"]["test"] == 1
    low, high = record["intervals"]["accuracy"]
    assert low <= record["test"]["accuracy"] <= high
    assert "95 % interval" in record["verdict"]
    assert "; n-grams 1.000; majority 0." in record["verdict"]
    resume_run(tmp_path / "run", steps=6)
    again = RunFolder(tmp_path / "run").read_record()
    assert (again["steps"], again["baseline"]) == (6, record["baseline"])
    assert "; n-grams 1.000" in again["verdict"]


def test_where_classes_count_alike_run_baseline_and_guess_are_judged_by_balanced_accuracy(tmp_path, capsys):
    path = tmp_path / "a.csv"
    rows = [
        f"{'bad ' * (1 + n % 5)}{n % 7},rare" if n % 10 == 0 else f"{'bad ' * (1 + n % 3)}{n % 7},usual"
        for n in range(200)
    ]
    path.write_text("\n".join(["text,label", *rows]))
    settings = RunSettings(task=str(path), training={**TRAINING, "balance": True})
    start_run(settings, tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert record["metric"] == record["baseline"]["metric"] == "balanced_accuracy"
    assert record["baseline"]["guess"] == 0.5
    assert record["verdict"].startswith("test balanced accuracy 0.")
    assert "majority 0.500" in record["verdict"]
    assert list(evaluate_run(tmp_path / "run").metrics) == ["loss", "balanced_accuracy", "accuracy"]
    console = Console(file=io.StringIO(), width=200)
    run_folds(dataclasses.replace(settings, folds=2), tmp_path / "folds", pm.data.load(path), console)
    assert "test balanced accuracy" in console.file.getvalue()


@pytest.mark.parametrize(("wanted", "task", "expected"), [(False, "file", False), (None, "order", False)])
def test_the_baseline_can_be_left_out_and_is_for_tasks(tmp_path, wanted, task, expected):
    name = _reviews(tmp_path / "a.csv") if task == "file" else task
    data = {} if task == "file" else {"length": 12, "train": 20, "validation": 9, "test": 7}
    start_run(RunSettings(task=name, data=data, training=TRAINING, baseline=wanted), tmp_path / "run")
    assert ("baseline" in RunFolder(tmp_path / "run").read_record()) is expected


def _judge(ours, theirs, targets, share=0.1, **fields):
    """The verdict on answers; the largest class of train is the second, of which test has so large a share."""
    overfitting = fields.pop("overfitting", False)
    labels = np.arange(40) % 4 > 0
    task = _task(lambda _, number: (np.ones(3, np.int64), int(labels[number])), vocabulary=_LETTERS, sizes=(40, 4, 4))
    test = MemorySequences([np.ones(3, np.int64)] * len(targets), targets.numpy())
    task = dataclasses.replace(task, test=test, **{"request": {"task": "a.csv"}, **fields})
    metric = METRICS[task.metric]
    scores = {"loss": 0.0, task.metric: metric.measure(ours, targets)}
    reference = metric.measure(theirs, targets)
    baseline = Baseline("n-grams", task.metric, 0.5, 0.7, reference, share, "majority", 1.0, 10, None, theirs)
    return give_verdict(task, scores, {task.metric: (0.1, 0.9)}, baseline, ours, targets, overfitting)


_RIGHT, _WRONG = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])


def _answer(right: int, count: int = 200, last: bool = False) -> torch.Tensor:
    """Answers to sequences of the first class, of which so many are right."""
    order = torch.arange(count).flip(0) if last else torch.arange(count)
    return torch.where((order < right)[:, None], _RIGHT, _WRONG)


def test_the_verdict_says_who_wins_and_considers_the_noise():
    targets = torch.zeros(200, dtype=torch.int64)
    # The third is as good as the first, but wrong elsewhere.
    good, fair, other, bad = _answer(190), _answer(100), _answer(190, last=True), _answer(0)
    assert _judge(good, fair, targets) == (
        "test accuracy 0.950 (95 % interval 0.100 to 0.900); n-grams 0.500; majority 0.100"
    )
    assert "about equal: the difference is 0.000" in _judge(good, other, targets)
    beaten = _judge(fair, good, targets)
    assert "The baseline (n-grams) is better by 0.450 (95 % interval 0.3" in beaten
    assert "--minutes" in beaten
    useless = _judge(bad, good, targets)
    assert "The model is not better than always answering the largest class by more than chance" in useless
    assert "--model ngrams" in useless


def test_the_verdict_says_that_neither_is_better_than_guessing_by_more_than_chance():
    # Half of the sequences are of each class, and always answering the second is right for 100.
    targets = (torch.arange(200) >= 100).long()
    place = torch.arange(200) % 100

    def answer(right):
        return F.one_hot(torch.where(right, targets, 1 - targets)).float()

    lucky, elsewhere, better = answer(place < 53), answer(place >= 47), answer(place >= 38)
    verdict = _judge(lucky, elsewhere, targets, share=0.5)
    assert "Neither the model nor the baseline (n-grams) is better than always answering the largest class" in verdict
    assert "Check that labels and columns are right. Train longer" in verdict
    assert "about equal" not in verdict
    # Better than the guess, but not surely better than a model that is not.
    assert "Only the baseline (n-grams) is better" in _judge(lucky, better, targets, share=0.5)


def test_the_verdict_remembers_overfitting_duplicates_few_sequences_and_uneven_classes():
    targets = torch.zeros(200, dtype=torch.int64)
    beaten = _judge(_answer(100), _answer(190), targets, overfitting=True)
    assert "learned its own by heart" in beaten
    assert "Train longer" not in beaten
    notes = ("3 training sequences stand in train more than once", "36 of the 40 test sequences also stand in train")
    repeated = _judge(_answer(190), _answer(100), targets, notes=notes)
    assert repeated.splitlines()[1:] == [f"{notes[1]}, so that test says less about new ones"]
    # Those of a fold are others.
    assert len(_judge(_answer(190), _answer(100), targets, notes=notes, request={}).splitlines()) == 1
    few = _judge(_answer(20, 30), _answer(20, 30), targets[:30])
    assert "Of 30 test sequences chance is large: --folds 5" in few
    assert "--folds" not in _judge(_answer(150), _answer(150), targets)
    assert "--balance" in _judge(_answer(190), _answer(100), targets, share=0.9)
    assert "--balance" not in _judge(_answer(190), _answer(100), targets, share=0.5, metric="balanced_accuracy")


def test_records_without_a_baseline_are_read(tmp_path):
    start_run(
        RunSettings(task="order", data={"length": 12, "train": 20, "validation": 9, "test": 7}, training=TRAINING),
        tmp_path / "run",
    )
    run = RunFolder(tmp_path / "run")
    record = {name: value for name, value in run.read_record().items() if name not in ("intervals", "verdict")}
    run.write_record(record)
    resume_run(tmp_path / "run", steps=5)
    assert pm.load(tmp_path / "run") is not None
