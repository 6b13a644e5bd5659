"""The summary of a task: sizes, lengths, targets, warnings, and a histogram."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import numpy as np
import pytest
from rich.console import Console

import paramixer as pm
from paramixer.data.summary import _choose_bins, draw_lengths, find_warnings, summarize
from paramixer.data.summary_table import print_summary


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    lines = [f"{'good' if n % 5 else 'terrible'} {'film ' * n},{'pos' if n % 5 else 'neg'}" for n in range(60)]
    path.write_text("\n".join(["text,label", *lines]))
    return path


def test_a_summary_has_the_lengths_before_cutting_and_the_classes(reviews):
    task = pm.data.load(str(reviews), length=64)
    summary = summarize(task)
    assert [split.sequences for split in summary.values()] == [48, 6, 6]
    for name, split in task.splits.items():
        lengths = split.full_lengths
        assert (summary[name].shortest, summary[name].longest) == (lengths.min(), lengths.max())
        assert summary[name].cut == (lengths > 64).sum()
        assert summary[name].padded == (lengths < 64).sum()
        assert sum(summary[name].classes.values()) == len(split)
        assert summary[name].spread is None


def test_cut_sequences_and_rare_classes_are_warned_of(reviews):
    warnings = find_warnings(pm.data.load(str(reviews), length=64))
    assert any("train sequences are longer than 64 and are cut" in warning for warning in warnings)
    assert any("class 'neg' is rare in train" in warning and "--balance" in warning for warning in warnings)
    assert "only 6 sequences are tested (--folds 5 tests all of the data)" in warnings


def test_generated_tasks_are_summarized_too():
    task = pm.data.load("adding", length=16, train=50, validation=9, test=8)
    summary = summarize(task)
    assert [split.sequences for split in summary.values()] == [50, 9, 8]
    assert summary["train"].spread is not None
    assert summary["train"].cut == summary["train"].padded == 0
    assert find_warnings(task) == []


def test_the_histogram_marks_n(reviews, tmp_path):
    draw_lengths(pm.data.load(str(reviews), length=64), tmp_path / "lengths.svg")
    assert "N = 64" in (tmp_path / "lengths.svg").read_text()
    assert xml.etree.ElementTree.parse(tmp_path / "lengths.svg").getroot().tag.endswith("svg")


def test_prepared_facts_are_json_that_anyone_can_read(reviews, cache_folder):
    task = pm.data.load(str(reviews), length=64)
    (file,) = cache_folder.glob("own-*/facts.json")
    document = json.loads(file.read_text())
    assert document["fingerprint"] == task.fingerprint
    assert document["classes"] == ["neg", "pos"]
    assert document["vocabulary"]["symbols"][:3] == ["<pad>", "<unknown>", "<cls>"]


def test_a_histogram_begins_at_the_shortest_sequence():
    assert _choose_bins(np.array([900, 1000]))[0] == 900
    assert _choose_bins(np.array([7, 7]))[[0, -1]].tolist() == [7, 8]
    assert _choose_bins(np.array([3, 40_000]))[0] == pytest.approx(3)


def test_the_ends_of_a_narrow_range_are_told_apart(tmp_path, capsys):
    table = tmp_path / "times.csv"
    table.write_text("text,value\n" + "".join(f"text {n},{1_000_000 + 10 * n + 0.5}\n" for n in range(40)))
    print_summary(pm.data.load(table, text="text", label="value"), Console(width=200))
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if line.startswith("targets in train: ")]
    low, _, high, *_ = line.removeprefix("targets in train: ").replace(",", "").split()
    assert float(high) - float(low) > 300
