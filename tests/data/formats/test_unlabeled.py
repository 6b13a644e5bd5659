"""Sequences without targets: every kind of file gives what a model reads, and every fault names its place."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from paramixer.data.errors import DataError
from paramixer.data.formats import unlabeled
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import BASES, BYTES, Vocabulary

TEXTS = TaskInfo(
    name="own",
    preset="text",
    metric="accuracy",
    target="class",
    length=6,
    classes=("x", "y"),
    vocabulary=Vocabulary.from_characters(["abc "]),
    settings={"text": "review", "id": "key"},
)
NUMBERS = dataclasses.replace(TEXTS, vocabulary=None, features=2, settings={"text": "values"})


def read(path, info, **options):
    return [(item.id, item.sequence.tolist()) for item in unlabeled.read(path, info, **options)]


def fails(path, info, **options) -> str:
    with pytest.raises(DataError) as caught:
        read(path, info, **options)
    return str(caught.value).removeprefix(str(path))


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_is_read_with_the_columns_of_training(tmp_path):
    path = write(tmp_path / "a.csv", "key,review,more\nk1,abc,1\nk2,a long one,2\n")
    assert read(path, TEXTS) == [("k1", [2, 4, 5, 6]), ("k2", [2, 4, 3, 1, 1, 1])]
    assert unlabeled.find_id_column(path, TEXTS) == "key"
    assert read(path, TEXTS, id="more")[0][0] == "1"
    assert read(path, TEXTS, text="key")[1] == ("k2", [2, 1, 1])
    assert fails(path, TEXTS, id="nothing").startswith(": there is no column 'nothing'; there are key, review, more")
    assert fails(path, TEXTS, text="nothing").startswith(": there is no column 'nothing'")


def test_rows_without_a_column_of_names_are_counted_from_0(tmp_path):
    path = write(tmp_path / "a.csv", "review\na\nb\n")
    assert [id for id, _ in read(path, TEXTS)] == ["0", "1"]
    assert unlabeled.find_id_column(path, TEXTS) is None
    assert "which column holds the sequences? Name it with --text; it has review" in fails(
        path, dataclasses.replace(TEXTS, settings={})
    )


def test_fasta_arrays_and_folders_are_read(tmp_path):
    bases = dataclasses.replace(TEXTS, vocabulary=BASES, settings={})
    assert read(write(tmp_path / "a.fa", ">r1 x\nACGT\nNU\n>r2\nAAAAAAAA\n"), bases) == [
        ("r1", [1, 2, 3, 4, 0, 4]),
        ("r2", [1] * 6),
    ]
    np.save(tmp_path / "a.npy", np.arange(16, dtype=np.uint8).reshape(2, 8))
    tokens = dataclasses.replace(TEXTS, vocabulary=BYTES)
    assert read(tmp_path / "a.npy", tokens) == [("0", [0, 1, 2, 3, 4, 5]), ("1", [8, 9, 10, 11, 12, 13])]
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / "one.txt", "cab")
    write(tmp_path / "folder" / "README", "not a text")
    assert read(tmp_path / "folder", TEXTS) == [("one.txt", [2, 6, 4, 5])]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_lists_of_numbers_are_read(tmp_path, name):
    values = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
    if name == "a.csv":
        path = write(tmp_path / name, "values\n" + "".join(f'"{json.dumps(value)}"\n' for value in values))
    else:
        path = write(tmp_path / name, "".join(json.dumps({"values": value}) + "\n" for value in values))
    assert read(path, NUMBERS) == [("0", values[0]), ("1", values[1])]


@pytest.mark.parametrize(
    ("value", "info", "message"),
    [
        ("abc", NUMBERS, "it: a text, but the model reads numbers"),
        (np.zeros((3, 4)), NUMBERS, r"it: numbers of shape \[3, 4\]; the model reads 2 per position"),
        (np.zeros((0, 2)), NUMBERS, "it: numbers of shape"),
        (np.array([[1, math.nan]]), NUMBERS, "it: a number of the sequence is NaN or infinite"),
        (
            np.array([1, 300]),
            dataclasses.replace(TEXTS, vocabulary=BYTES),
            "it: numbers, but .* token ids below 256",
        ),
        (
            np.array([-1]),
            dataclasses.replace(TEXTS, vocabulary=BYTES),
            "it: numbers, but .* token ids below 256",
        ),
        ("", dataclasses.replace(TEXTS, vocabulary=BASES), "it: a sequence of length 0"),
        ("abX", dataclasses.replace(TEXTS, vocabulary=Vocabulary(symbols=("a", "b"))), "it: 'X' at position 2"),
    ],
)
def test_what_the_model_cannot_read_names_its_place(value, info, message):
    with pytest.raises(DataError, match=f"^{message}"):
        unlabeled.encode(value, info, "it")


def test_a_fault_in_a_file_names_its_line_or_row(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"values": [[1, 2]]}\n{"values": [[1, NaN]]}\n')
    assert fails(path, NUMBERS).startswith(", line 2: a number of the sequence is NaN")
    np.save(tmp_path / "a.npy", np.array([[[1.0, 2.0]], [[1.0, np.inf]]]))
    assert fails(tmp_path / "a.npy", NUMBERS).startswith(", row 2: a number of the sequence is NaN")
    assert fails(tmp_path / "nothing.csv", TEXTS) == ": there is no such file or folder"


def test_a_txt_has_a_sequence_on_each_line(tmp_path):
    assert read(write(tmp_path / "a.txt", "abc\nb\n"), TEXTS) == [("0", [2, 4, 5, 6]), ("1", [2, 5])]
