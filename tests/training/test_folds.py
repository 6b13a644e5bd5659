"""Cross-validation: every sequence is tested once, finished folds stay, and the estimate says how sure it is."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import paramixer as pm
from paramixer.cli import main
from paramixer.data.folds import take_fold
from paramixer.training.assessment.intervals import wilson
from paramixer.training.callback import Interrupted
from paramixer.training.runs import folds
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.folds import SUMMARY, _compare, estimate_interval, summarize_folds
from paramixer.training.runs.run import open_task


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{('good ' if n % 3 else 'bad ') * (1 + n % 5)}{n},{int(n % 3 > 0)},{n / 7}" for n in range(60)]
    Path("a.csv").write_text("\n".join(["id,text,label,weight", *rows]))
    return "a.csv"


def test_every_sequence_is_in_one_test_split_and_every_fold_has_its_share_of_each_class(table):
    task = pm.data.load(table, text="text", label="label", weight="weight")
    tested = []
    for fold in range(1, 6):
        part = take_fold(task, fold, 5)
        names = {name: [split.id(i) for i in range(len(split))] for name, split in part.splits.items()}
        assert sorted(chain(*names.values()), key=int) == [str(n) for n in range(60)]
        assert np.bincount(part.test.targets).tolist() == [4, 8]
        assert all(np.bincount(split.targets).min() > 0 for split in part.splits.values())
        assert part.train.weights.tolist() == [int(name) / 7 for name in names["train"]]
        assert [len(split[3].inputs) for split in part.splits.values()] == [
            split.lengths[3] for split in part.splits.values()
        ]
        tested += names["test"]
    assert sorted(tested, key=int) == [str(n) for n in range(60)]
    assert len({take_fold(task, fold, 5).fingerprint for fold in range(1, 6)}) == 5


@pytest.mark.parametrize(("fold", "folds"), [(1, 1), (1, 21), (0, 3), (4, 3)])
def test_folds_that_cannot_be_are_refused(table, fold, folds):
    with pytest.raises(ValueError, match=r"folds=\d+; 60 sequences allow 2 to 20|fold=\d; it must be from 1 to 3"):
        take_fold(pm.data.load(table, text="text", label="label"), fold, folds)


def test_the_interval_is_wider_than_that_of_independent_values():
    low, high = estimate_interval([0.8, 0.9, 0.85])
    assert (low + high) / 2 == pytest.approx(0.85)
    # t for two degrees of freedom, a deviation of 0.05, and the corrected share.
    assert (high - low) / 2 == pytest.approx(4.3027 * 0.05 * (1 / 3 + 1 / 2) ** 0.5, rel=1e-3)


def test_train_folds_writes_a_run_each_and_an_estimate_and_goes_on_where_it_stopped(table, capsys):
    words = [table, "--text", "text", "--label", "label", "--folds", "3", "--out", "run", "--batch", "8"]
    assert main(["train", *words, "--set", "training.steps=2"]) == 0
    text = capsys.readouterr().out
    assert "of 3 folds" in text
    assert "train without --folds: paramixer train a.csv" in text
    summary = json.loads((Path("run") / SUMMARY).read_text())
    assert len(summary["values"]) == len(summary["baseline"]["values"]) == 3
    assert summary["interval"][0] <= summary["mean"] <= summary["interval"][1]
    first = Path("run/fold-1")
    assert len(open_task(first).test) == 20
    # As if it had been killed during the last fold.
    record = RunFolder(Path("run/fold-3"))
    record.write_record({**record.read_record(), "finished": False})
    written = (first / "record.json").stat().st_mtime_ns
    assert main(["train", "--resume", "run"]) == 0
    assert (first / "record.json").stat().st_mtime_ns == written
    assert record.read_record()["finished"]
    assert json.loads((Path("run") / SUMMARY).read_text())["values"] == summary["values"]


def test_a_report_has_the_folds_side_by_side_and_other_commands_name_them(table, capsys):
    words = [table, "--text", "text", "--label", "label", "--folds", "2", "--out", "run", "--batch", "8"]
    assert main(["train", *words, "--set", "training.steps=1", "--no-baseline"]) == 0
    assert main(["report", "run", "--out", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "<title>2 runs" in page
    assert all(f'<h2 id="name-{number}">fold-{number}</h2>' in page for number in (1, 2))
    capsys.readouterr()
    for command in (["evaluate", "run"], ["predict", "run", "a.csv"], ["explain", "run"], ["export", "run"]):
        assert main(command) == 2
        assert "run holds a run for each of 2 folds; name one, such as run/fold-1" in capsys.readouterr().err


def make_records(values, others=None, metric="accuracy", interval=None):
    baseline = [{"name": "n-grams", "test": other, "guess": 0.5} for other in others or []]
    record = {"metric": metric, "seconds": 1.0, "intervals": {metric: interval} if interval else {}}
    return [
        {**record, "test": {metric: value}, "baseline": baseline[number] if others else None}
        for number, value in enumerate(values)
    ]


def test_intervals_stay_within_what_a_metric_can_be_and_folds_that_agree_are_not_certain():
    assert summarize_folds(make_records([0.0, 1.0, 0.0]), 12)["interval"] == [0.0, 1.0]
    for metric in ("accuracy", "balanced_accuracy"):
        records = make_records([0.5, 0.5, 0.5], metric=metric, interval=wilson(2, 4))
        # About that of 6 of 12.
        assert summarize_folds(records, 12)["interval"] == pytest.approx(wilson(6, 12), abs=0.06)
    low, high = summarize_folds(make_records([0.0, 90.0], metric="mse"), 12)["interval"]
    assert low == 0
    assert high > 90


@pytest.mark.parametrize(
    ("metric", "ours", "theirs", "message"),
    [
        ("accuracy", [0.7, 0.71, 0.7, 0.72], [0.98] * 4, "The baseline is better by 0.2"),
        ("mse", [54.0, 55.0, 54.5], [12.0, 12.5, 12.2], "The baseline is better by 42"),
        ("mse", [12.0, 12.5, 12.2], [54.0, 55.0, 54.5], "The model is better by 42"),
        ("accuracy", [0.7, 0.9], [0.8, 0.7], "The model did better by 0.050, which may be chance"),
        ("accuracy", [1.0, 1.0], [1.0, 1.0], "The model and the baseline did equally well (95 % interval -0.007"),
        ("accuracy", [0.501, 0.501], [0.5, 0.5], "The model did better by 0.001, which may be chance"),
        ("accuracy", [0.8, 0.7], [0.7, 0.9], "The baseline did better by 0.050, which may be chance"),
    ],
)
def test_the_folds_say_which_is_better(metric, ours, theirs, message):
    sentence = _compare(summarize_folds(make_records(ours, theirs, metric), 400)["gain"])
    assert sentence.startswith(message)
    assert ("train longer" in sentence) == ("baseline is better" in sentence)


def test_minutes_are_of_each_fold_and_said_with_their_sum(table, capsys):
    words = [table, "--text", "text", "--label", "label", "--folds", "3", "--out", "run", "--minutes", "0.002"]
    assert main(["train", *words, "--no-baseline"]) == 0
    assert "3 folds of 0.002 minutes each: 0.006 minutes in all" in capsys.readouterr().out


def test_ctrl_c_names_the_folder_of_all_folds(table, monkeypatch, capsys):
    def stop(*_, **__):
        raise Interrupted("stopped by SIGINT; go on with: paramixer train --resume run/fold-1")

    monkeypatch.setattr(folds, "start_run", stop)
    assert main(["train", table, "--text", "text", "--label", "label", "--folds", "3", "--out", "run"]) == 130
    assert "paramixer train --resume run\n" in capsys.readouterr().err
