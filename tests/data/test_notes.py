"""Notes name what would make a score mean something else: duplicates, conflicts, rare classes, constants."""

from __future__ import annotations

import json

import numpy as np
import pytest

from paramixer.data import load
from paramixer.data.errors import DataError


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts(counts):
    return [
        {"text": f"a text of {label} numbered {number}", "label": label}
        for label, count in counts.items()
        for number in range(count)
    ]


def test_classes_with_one_or_two_examples_are_named_with_their_splits(tmp_path):
    task = load(write(tmp_path / "a.jsonl", texts({"a": 20, "b": 20, "one": 1, "two": 2, "three": 3})))
    assert "class 'one' has one example, in train only; add examples or leave them out" in task.notes
    assert "class 'two' has two examples, in train and test only; add examples or leave them out" in task.notes
    for split in task.splits.values():
        assert {"a", "b", "three"} <= {task.classes[target] for target in split.targets}


def test_a_class_that_a_given_split_lacks_is_named(tmp_path):
    rows = [
        {**row, "split": ("train", "dev", "test" if row["label"] == "a" else "train")[number % 3]}
        for number, row in enumerate(texts({"a": 12, "b": 12}))
    ]
    assert "no example of class 'b' is in test" in load(write(tmp_path / "a.jsonl", rows)).notes


def test_equal_sequences_with_different_targets_are_counted(tmp_path):
    rows = texts({"a": 10, "b": 10}) + [{"text": "both", "label": label} for label in "ab" for _ in range(3)]
    notes = load(write(tmp_path / "a.jsonl", rows)).notes
    assert "1 different sequences stand there with more than one target each" in notes
    assert any("stand in train" in note for note in notes)


def test_a_feature_that_never_changes_is_named(tmp_path):
    x = np.random.default_rng(0).random((20, 5, 3)).astype(np.float32)
    x[..., 1] = 4
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(20) % 2)
    assert "feature 2 (4) of 3 never changes; nothing can be learned from that" in load(tmp_path / "a.npz").notes
    np.savez(tmp_path / "b.npz", x=np.zeros((20, 5)), y=np.arange(20) % 2)
    assert "all numbers of all sequences are 0" in load(tmp_path / "b.npz").notes


@pytest.mark.parametrize("name", ["a.jsonl", "a.npz"])
def test_a_target_that_is_its_own_input_is_refused(tmp_path, name):
    path = tmp_path / name
    if name == "a.npz":
        np.savez(path, text=np.zeros((20, 5)), y=np.arange(20))
    else:
        write(path, texts({"a": 5, "b": 5}))
    with pytest.raises(DataError, match="--text and --label both name 'text'; each target would be its own input"):
        load(path, text="text", label="text")
