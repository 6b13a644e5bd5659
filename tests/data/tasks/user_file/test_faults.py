"""Every fault of a user's file has one clear message; any bytes at all are a task or an error."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paramixer.data import load
from paramixer.data.errors import DataError
from tests.data.tasks.user_file.files import by_id, fails, make_arrays, make_texts, write_table


def _written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "a.csv",
            "txt,label\na,b\n",
            {"text": "text"},
            ": there is no column 'text'; there are txt, label; did you mean",
        ),
        ("a.csv", "", {}, ": the file is empty"),
        ("a.csv", "text,label\n", {}, ": there is a header and not a single row"),
        ("a.csv", "text,label\na,1\n,2\nb,1\n", {}, ", line 3: a sequence of length 0"),
        ("a.csv", "text,label\na,1\nb,\n", {}, ", line 3: the label is empty"),
        ("a.tsv", "text\tlabel\na\t1\nb\t1\t2\n", {}, ", line 3: 3 fields, where the header has 2 (text, label)"),
        ("a.csv", b"text,label\nfine,1\ncaf\xe9,2\n", {}, ", line 3: not UTF-8 (byte 0xe9 at position 3)"),
        ("a.csv.gz", b"\x1f\x8b\x08nothing", {}, ", line 1: reading stopped"),
        ("a.csv", "text,value\na,0.5\nb,NaN\nc,1\n", {}, ", line 3: the target 'NaN' is NaN, infinite"),
        ("a.jsonl", '{"x": [1, 2], "y": 1}\n{"x": [1, NaN], "y": 2}', {}, ", line 2: number 2 of the sequence is NaN"),
        ("a.jsonl", '{"x": [1, 2], "y": NaN}\n', {}, ", line 1: the target is NaN or infinite"),
        ("a.jsonl", '{"x": [1, [2]], "y": 1}\n', {}, ", line 1: a list that is neither of numbers nor of equally long"),
        (
            "a.jsonl",
            '{"x": [1, null], "y": 1}\n',
            {},
            ", line 1: a list that is neither of numbers nor of equally long",
        ),
        ("a.jsonl", '{"x": [[], []], "y": 1}\n', {}, ", line 1: a list that is neither of numbers nor of equally long"),
        ("a.jsonl", '{"x": [], "y": 1}\n', {}, ", line 1: a sequence of length 0"),
        ("a.jsonl", '{"x": 5, "y": 1}\n', {}, ", line 1: 'x' holds a value of type int; expected a text or a list"),
        ("a.jsonl", '{"text": "a", "y": [1]}\n', {}, ", line 1: 'y' holds a value of type list; expected a label"),
        (
            "a.jsonl",
            '{"text": "a", "y": 1' + "0" * 400 + "}" + '\n{"text": "b", "y": 1}' * 2,
            {"target": "value"},
            ", line 1: the target '1000",
        ),
        ("a.csv", "text,label\na,1\n", {"labels": "x"}, ": a table holds its labels in a column"),
        (
            "a.csv",
            "text,label,split\na,1,train\na,2,train\na,1,dev\nb,3,test\n",
            {},
            ", line 5: label '3' is only in test",
        ),
        (
            "a.csv",
            "text,label,split\nab,1,train\na,2,train\na,1,dev\nax,1,test\n",
            {"strict": True},
            ", line 5: 'x' at",
        ),
        ("a.fa", "", {}, ": the file is empty"),
        ("a.fa", ">a class=x\n>b class=y\nACGT\n", {}, ", line 1, record 'a': the record has no sequence"),
        ("a.npy", b"", {"labels": "self"}, ": the file is empty"),
        ("a.npz", b"", {}, ": the file is empty"),
        ("a.npz", b"PK\x03\x04 and nothing more", {}, ": it cannot be read as arrays of numbers"),
        ("a.txt", "some text", {}, ": the kind of file is not clear from its name; expected a table (.csv, .tsv"),
    ],
)
def test_every_fault_has_one_clear_message(tmp_path, cache_folder, name, content, options, message):
    path = _written(tmp_path / name, content)
    if options.get("labels"):
        options = {**options, "labels": path}
    assert fails(path, **options).startswith(f"{path}{message}")
    assert list(cache_folder.glob("own-*")) == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert fails(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: there is no such file or folder"
    path = write_table(tmp_path / "a.csv", make_texts())
    assert fails(path, labels=tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: there is no such file or folder"


_FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
_LINES = st.lists(
    st.sampled_from(
        ["a,1", "b,2", "a,x", "1 2,3", "[1],4", "nan inf,5", '"q""\n",6', "é\U0001f600,1", ",", "", "1e999,1e999"]
    )
    | st.text(max_size=6),
    max_size=12,
)


@given(lines=_LINES)
@_FUZZ
def test_any_table_gives_a_task_or_a_data_error(tmp_path, lines):
    path = _written(tmp_path / "a.csv", "\n".join(["text,label", *lines]).encode("utf-8", "surrogatepass"))
    with suppress(DataError):
        assert len(load("own", path).train) > 0


_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)


@given(
    texts=st.lists(_WORDS.filter(lambda text: any(letter.isalpha() for letter in text)), min_size=5, max_size=12),
    labels=st.tuples(_WORDS.filter(str.strip), _WORDS.filter(str.strip)),
    name=st.sampled_from(["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet"]),
    seed=st.integers(0, 99),
)
@_FUZZ
def test_any_well_formed_table_loads(tmp_path, texts, labels, name, seed):
    splits = ["train", "train", "train", "dev", "test"]
    first, second = (f"{prefix}{label.strip()}" for prefix, label in zip("pn", labels, strict=True))
    rows = [
        {"text": text, "label": first if i % 2 else second, "split": splits[i % 5], "id": str(i)}
        for i, text in enumerate(texts * 2)
    ]
    if name != "a.parquet" and ".jsonl" not in name:
        rows = [{key: value.replace('"', '""') for key, value in row.items()} for row in rows]
    task = load("own", write_table(tmp_path / name, rows), seed=seed)
    assert sum(map(len, task.splits.values())) == 2 * len(texts)
    assert set(task.classes) == {first, second}
    for id, (inputs, _) in by_id(task).items():
        text = (texts * 2)[int(id)]
        assert len(inputs) == 1 + len(text)


_COUNTS = st.integers(5, 12)


@given(
    shape=st.tuples(st.integers(5, 12), st.integers(1, 9))
    | st.tuples(st.integers(5, 12), st.integers(1, 5), st.just(2)),
    dtype=st.sampled_from(["uint8", "int32", "float32", "float64", ">i2", "bool"]),
    seed=st.integers(0, 99),
)
@_FUZZ
def test_any_well_formed_arrays_load(tmp_path, shape, dtype, seed):
    x = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 200, shape).astype(dtype)
    # All labels are in train, however the rows are split.
    np.savez(tmp_path / "a.npz", x_train=x, y_train=np.arange(len(x)) % 2, x_test=x[:2], y_test=np.arange(2))
    task = load("own", tmp_path / "a.npz", validation=0.05)
    assert sum(map(len, task.splits.values())) == len(x) + 2
    assert np.array_equal(task.test[1].inputs.numpy().reshape(x[1].shape), x[1].astype(np.float32))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(rows=st.lists(st.fixed_dictionaries({"text": _VALUES, "label": _VALUES}), max_size=8))
@_FUZZ
def test_any_json_gives_a_task_or_a_data_error(tmp_path, rows):
    path = _written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    with suppress(DataError):
        assert len(load("own", path).train) > 0


_X, _Y = make_arrays()


@pytest.fixture(scope="module")
def saved():
    """Good files of arrays."""
    found = {}
    for name, write in {
        "a.npy": lambda file: np.save(file, _X),
        "a.npz": lambda file: np.savez(file, x=_X, y=_Y),
    }.items():
        buffer = io.BytesIO()
        write(buffer)
        found[name] = buffer.getvalue()
    return found


@given(
    edits=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.none() | st.integers(0, 200),
    other=st.none() | st.binary(),
    sound=st.booleans(),
)
@_FUZZ
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "inner.npz"])
def test_any_arrays_give_a_task_or_a_data_error(tmp_path, saved, name, edits, cut, other, sound):
    whole = bytearray(saved[name.replace("inner", "a") if name != "inner.npz" else "a.npy"])
    for place, byte in edits:
        whole[place % len(whole)] = byte
    content = bytes(whole[:cut]) if other is None else other
    path = tmp_path / name
    if name == "inner.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
            archive.writestr("y.npy", saved["a.npy"] if sound else content)
    else:
        path.write_bytes(content)
    np.save(tmp_path / "y.npy", _Y)
    with suppress(DataError):
        found = load("own", path, labels=tmp_path / "y.npy" if name == "a.npy" else None)
        assert len(found.train) > 0


def test_labels_with_characters_that_do_not_exist_are_an_error(tmp_path):
    np.save(tmp_path / "a.npy", _X)
    np.save(tmp_path / "y.npy", np.full(20, 0x7FFFFFFF, np.uint32).view("<U1"))
    assert "its labels cannot be read" in fails(tmp_path / "a.npy", labels=tmp_path / "y.npy")
