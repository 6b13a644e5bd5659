"""A user's own file: every kind of it becomes the same kind of task, and every fault has one clear message."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from paramixer.data import load
from paramixer.data.errors import DataError
from paramixer.data.tasks.user_file import LONGEST
from paramixer.data.vocabulary import AMINO_ACIDS

_COUNT = 30


def _table(path, rows):
    """Rows, which are dictionaries, in the format that the name says."""
    name = path.name
    if name.endswith(".parquet"):
        parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    if ".jsonl" in name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        comma = "\t" if ".tsv" in name else ","
        text = "\n".join([comma.join(rows[0]), *(comma.join(f'"{value}"' for value in row.values()) for row in rows)])
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def _texts(count=_COUNT, **more):
    return [{"text": f"The text, {i}", "label": "good" if i % 3 else "bad", **more} for i in range(count)]


def _fails(path, **options):
    with pytest.raises(DataError) as caught:
        load("own", path, **options)
    return str(caught.value)


def _all(found):
    """Every sequence by its id."""
    return {split.id(i): split[i] for split in found.splits.values() for i in range(len(split))}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.ndjson.gz", "a.csv.gz", "a.parquet"])
def test_the_same_texts_are_the_same_task_in_every_format(tmp_path, name):
    rows = [{"id": f"r{i}", **row} for i, row in enumerate(_texts())]
    if "ndjson" in name:
        path = tmp_path / name
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    else:
        path = _table(tmp_path / name, rows)
    found = load(str(path))
    assert (found.name, found.preset, found.metric, found.target) == ("own", "text", "accuracy", "class")
    assert found.classes == ("bad", "good")
    assert found.vocabulary.cls is not None
    assert found.length == len("The text, 29") + 1
    items = _all(found)
    assert len(items) == _COUNT
    for i, row in enumerate(rows):
        inputs, target = items[f"r{i}"]
        letters = [found.vocabulary.symbols[number] for number in inputs[1:]]
        assert all(one in (other, "<unknown>") for one, other in zip(letters, row["text"], strict=True))
        assert found.classes[target] == row["label"]
    reference = load(str(_table(tmp_path / "reference.csv", rows)))
    assert found.fingerprint == reference.fingerprint


def test_columns_that_were_guessed_are_told(tmp_path):
    rows = [{"title": f"t{i}", "review": f"I saw it {i}", "stars": i % 5} for i in range(60)]
    found = load("own", _table(tmp_path / "a.jsonl", rows))
    lines = found.describe()
    assert "input: column 'review' (--text)" in lines
    assert any(line.startswith("target: column 'stars'") and "--label" in line for line in lines)
    assert (found.settings["text"], found.settings["label"]) == ("review", "stars")
    given = load("own", tmp_path / "a.jsonl", text="title", label="stars")
    assert "input: column 'title' (--text)" in given.describe()
    assert given.length == len("t10") + 1


@pytest.mark.parametrize(
    ("row", "text", "label"),
    [
        ({"Text": "abc", "Label": "x"}, "Text", "Label"),
        ({"seq": "ACGT", "y": "1", "score": "3"}, "seq", "y"),
        ({"name": "ab", "what was said": "a long text that is no name", "kind": "x"}, None, None),
        ({"what was said": "a long text that is no name", "kind": "x"}, "what was said", "kind"),
        ({"signal": [1.0, 2.0], "value": 0.5, "note": None}, "signal", "value"),
        ({"numbers": [1.0, 2.0], "result": 0.5}, "numbers", "result"),
    ],
)
def test_columns_are_guessed_from_names_and_from_what_they_hold(tmp_path, row, text, label):
    rows = []
    for i in range(20):
        varied = {key: f"{value}{i % 2}" if isinstance(value, str) else value for key, value in row.items()}
        rows.append({key: value + i if isinstance(value, float) else value for key, value in varied.items()})
    path = _table(tmp_path / "a.jsonl", rows)
    if text is None:
        assert "which column holds the labels or values? It could be name, kind; name it with --label" in _fails(path)
        return
    found = load("own", path)
    assert (found.settings["text"], found.settings["label"]) == (text, label)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("text,seq,label", "which column holds the texts or sequences? It could be text, seq; name it with --text"),
        ("a,b,c", "which column holds the texts or sequences? It could be a, b, c; name it with --text"),
        ("text,label,class", "which column holds the labels or values? It could be label, class; name it with --label"),
        ("text,a,b", "which column holds the labels or values? It could be a, b; name it with --label"),
    ],
)
def test_a_guess_that_could_be_wrong_lists_the_columns_and_the_flag(tmp_path, columns, message):
    path = tmp_path / "a.csv"
    path.write_text(f"{columns}\n" + "x,y,z\n" * 9)
    assert _fails(path) == f"{path}: {message}"


@pytest.mark.parametrize("column", ["split", "part"])
def test_a_column_of_splits_is_honoured(tmp_path, column):
    names = ["Train", "train", "val", "dev", "test", "TEST"]
    rows = [{**row, column: names[i % 6], "id": str(i)} for i, row in enumerate(_texts(60))]
    found = load("own", _table(tmp_path / "a.csv", rows), **({} if column == "split" else {"split": column}))
    assert [len(split) for split in found.splits.values()] == [20, 20, 20]
    assert {int(found.test.id(i)) % 6 for i in range(20)} == {4, 5}


def test_a_column_named_split_that_means_something_else_is_left_alone(tmp_path):
    rows = [{**row, "split": f"plot {i}"} for i, row in enumerate(_texts())]
    path = _table(tmp_path / "a.csv", rows)
    found = load("own", path)
    assert len(found.train) == 24
    assert "column 'split' names neither train, validation nor test, and was not used" in found.notes
    assert _fails(path, split="split").startswith(f"{path}, line 2: split 'plot 0'; expected train, validation or test")


@pytest.mark.parametrize("row", [0, 3, 150])
def test_an_unknown_name_in_a_column_of_splits_is_refused(tmp_path, row):
    """Splits cut at random instead would mix the user's test rows into train."""
    rows = [{**line, "split": ["train", "train", "val", "test"][i % 4]} for i, line in enumerate(_texts(200))]
    rows[row]["split"] = "holdout"
    message = _fails(_table(tmp_path / "a.csv", rows))
    assert message.startswith(f"{tmp_path / 'a.csv'}, line {row + 2}: split 'holdout'; expected train, validation")
    assert message.endswith("change it, or rename what holds the splits to have them cut at random")


def test_a_column_of_splits_may_begin_with_many_unknown_names(tmp_path):
    rows = [{**line, "split": "holdout" if i < 150 else "train"} for i, line in enumerate(_texts(200))]
    assert "line 2: split 'holdout'" in _fails(_table(tmp_path / "a.csv", rows))


def test_an_unknown_split_in_the_first_header_is_refused(tmp_path):
    path = tmp_path / "a.fa"
    parts = ["holdout", "train", "validation", "test"]
    path.write_text("".join(f">s{i} class={'ab'[i // 4 % 2]} split={parts[i % 4]}\nACG\n" for i in range(40)))
    assert "split 'holdout'; expected train, validation or test" in _fails(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("features", [None, 1, 3])
def test_lists_of_numbers_are_read_in_every_format(tmp_path, name, features):
    shape = (4,) if features is None else (4, features)
    lists = [np.arange(i, i + np.prod(shape)).reshape(shape).astype(float) for i in range(20)]
    rows = [{"id": str(i), "values": numbers.tolist(), "y": 0.5 * i} for i, numbers in enumerate(lists)]
    found = load("own", _table(tmp_path / name, rows))
    assert (found.preset, found.target, found.metric) == ("adding", "value", "mse")
    assert (found.features, found.length, found.vocabulary) == (features or 1, 4, None)
    for id, (inputs, target) in _all(found).items():
        assert np.array_equal(inputs.numpy().reshape(shape), lists[int(id)])
        assert target.item() == 0.5 * int(id)


@pytest.mark.parametrize("written", ["{0} {1} 3", "{0},{1}, 3", "{0};{1};3", "[{0}, {1}, 3]"])
def test_lists_of_numbers_can_be_written_as_text(tmp_path, written):
    rows = [{"signal": written.format(i, -1.5 * i), "label": i % 2} for i in range(20)]
    found = load("own", _table(tmp_path / "a.csv", rows))
    assert found.features == 1
    inputs, target = found.train[0]
    assert inputs.flatten().tolist() == [inputs[0].item(), -1.5 * inputs[0].item(), 3]
    assert target.item() == inputs[0].item() % 2


@pytest.mark.parametrize("cell", ["0,5 0,7 1", "0,5;0,7"])
def test_commas_that_may_stand_inside_of_numbers_are_refused(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text("signal;label\n" + "".join(f'"{cell}";{i % 2}\n' for i in range(20)))
    assert "line 2: it is not clear whether commas in 'signal' stand inside of numbers" in _fails(path)


def test_a_column_for_each_step_is_refused_with_what_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"t{i}" for i in range(12)) + ",label\n" + f"{'0.5,' * 12}a\n{'1,' * 12}b\n" * 9)
    assert "12 columns hold one number per row (t0, t1, t2, ...); a series with a column for each step" in _fails(path)


def test_arrays_that_may_have_their_channels_first_are_noted(tmp_path):
    draw = np.random.default_rng(0)
    for name, shape in (("first", (40, 3, 12)), ("last", (40, 12, 3))):
        np.savez(tmp_path / f"{name}.npz", x=draw.normal(size=shape), y=np.arange(40) % 2)
    note = "[40, 3, 12] is read as sequences of length 3 with 12 numbers per position; if the series run along the last"
    assert any(line.startswith(note) for line in load("own", tmp_path / "first.npz").notes)
    assert not any("last axis" in line for line in load("own", tmp_path / "last.npz").notes)


def test_texts_of_one_number_each_are_texts(tmp_path):
    rows = [{"text": f"{i:05}", "label": i % 2} for i in range(20)]
    assert load("own", _table(tmp_path / "a.csv", rows)).features is None


def test_a_text_among_written_numbers_names_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("values,label\n" + "1 2,a\n3 4,b\n" * 60 + "some text,a\n")
    assert _fails(path) == f"{path}, line 122: not a list of numbers, as the first rows of 'values' are"


def test_true_and_false_are_classes(tmp_path):
    rows = [{"text": f"t{i}", "label": i % 2 == 0} for i in range(30)]
    for name in ("a.jsonl", "a.parquet"):
        assert load("own", _table(tmp_path / name, rows)).classes == ("false", "true")


def test_whether_classes_or_values_can_be_said(tmp_path):
    path = _table(tmp_path / "a.csv", [{"text": f"t{i}", "stars": i % 5} for i in range(60)])
    assert load("own", path).target == "class"
    found = load("own", path, target="value")
    assert (found.target, found.metric, found.outputs) == ("value", "mse", 1)
    assert "choose from class, value" in _fails(path, target="number")


def test_long_texts_are_cut_to_the_limit_unless_a_length_is_said(tmp_path):
    rows = [{"text": "ab" * LONGEST, "label": i % 2} for i in range(5)] * 4
    path = _table(tmp_path / "a.csv", rows)
    found = load("own", path)
    assert found.length == LONGEST == found.train.lengths[0]
    assert found.train.full_lengths[0] == 2 * LONGEST + 1
    assert load("own", path, length=2 * LONGEST).train.lengths[0] == 2 * LONGEST


def test_preparing_twice_reads_nothing_and_any_setting_prepares_anew(tmp_path, cache_folder, monkeypatch):
    path = _table(tmp_path / "a.csv", _texts())
    first = load("own", path)
    for options in (
        {"seed": 1},
        {"length": 5},
        {"validation": 0.2},
        {"test": 0.2},
        {"strict": False},
        {"text": "text"},
    ):
        load("own", path, **options)
    assert len(list(cache_folder.glob("own-*"))) == 6
    monkeypatch.setattr("paramixer.data.formats.tabular.tables.read", None)
    assert load("own", path).fingerprint == first.fingerprint


# FASTA


def _fasta(path, header="seq{i} class={label}", count=20, letters="ACGT"):
    text = "".join(
        f">{header.format(i=i, label='intron' if i % 2 else 'exon')}\n{letters * (1 + i)}\nac\n" for i in range(count)
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.fa", "a.fasta", "a.fna", "a.fa.gz"])
@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("seq{i} class={label}", {}),
        ("seq{i} label={label} class=no", {}),
        ("seq{i} kind:{label}", {"label": "kind"}),
        ("seq{i}|kind={label}|x", {"label": "kind"}),
        ("seq{i} [kind={label}]", {"label": "kind"}),
        ("seq{i} of an {label}.", {"label": r"of an? (\w+)"}),
    ],
)
def test_the_label_of_a_record_is_found_in_its_header(tmp_path, name, header, options):
    found = load("own", _fasta(tmp_path / name, header), **options)
    assert (found.preset, found.classes, found.length) == ("hfdna", ("exon", "intron"), 82)
    letters = "".join(found.vocabulary.symbols[number] for number in found.train[0].inputs)
    assert letters == "ACGT" * (len(letters) // 4) + "AC"
    for id, (inputs, target) in _all(found).items():
        if header.startswith("seq{i} "):
            assert target.item() == int(id[3:]) % 2
            assert len(inputs) == 4 * (1 + int(id[3:])) + 2


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.parquet"])
def test_labels_of_records_can_stand_in_a_table(tmp_path, name):
    rows = [{"id": f"seq{i}", "label": i % 2, "split": ["train", "dev", "test"][i % 3]} for i in range(20)]
    found = load("own", _fasta(tmp_path / "a.fa", "seq{i} some gene"), labels=str(_table(tmp_path / name, rows)))
    assert found.classes == ("0", "1")
    assert [len(split) for split in found.splits.values()] == [7, 7, 6]
    other = [{"gene": row["id"], "kind": row["label"] + 5} for row in rows]
    options = {"labels": _table(tmp_path / "o.csv", other), "id": "gene", "label": "kind"}
    assert load("own", tmp_path / "a.fa", **options).classes == ("5", "6")


def test_a_header_without_a_known_key_lists_its_own(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text("".join(f">s{i} kind={'ab'[i % 2]} len=3\nACG\n" for i in range(40)))
    assert "in the header 's0 kind=a len=3', whose keys are kind, len; name it with --label kind, " in _fails(path)
    assert load("own", path, label="kind").classes == ("a", "b")


def test_splits_of_records_can_stand_in_their_headers(tmp_path):
    path = tmp_path / "a.fa"
    parts = ["train", "train", "validation", "test"]
    path.write_text("".join(f">s{i} class={'ab'[i // 4 % 2]} part={parts[i % 4]}\nACG\n" for i in range(40)))
    found = load("own", path, split="part")
    assert [len(split) for split in found.splits.values()] == [20, 10, 10]
    assert "no split (nothing=...) in the header" in _fails(path, split="nothing")


def test_splits_in_headers_are_used_unasked_and_beside_a_file_for_each_class(tmp_path):
    parts = ["train", "train", "validation", "test"]
    for name in ("fly", "human"):
        records = (f">s{i} split={parts[i % 4]}\n{'ACG' * (i + 1)}\n" for i in range(20))
        (tmp_path / f"{name}.fa").write_text("".join(records))
    found = load([tmp_path / "fly.fa", tmp_path / "human.fa"])
    assert found.classes == ("fly", "human")
    assert [len(split) for split in found.splits.values()] == [20, 10, 10]
    assert "splits: split= in the headers" in found.describe()
    (tmp_path / "human.fa").write_text(">s0 split=test\nACG\n>s1\nACGT\n")
    with pytest.raises(DataError, match="no split"):
        load([tmp_path / "fly.fa", tmp_path / "human.fa"])


def test_a_key_split_that_names_something_else_is_no_split(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text("".join(f">s{i} class={'ab'[i % 2]} split={i}\n{'ACG' * (i + 1)}\n" for i in range(20)))
    assert [len(split) for split in load("own", path).splits.values()] == [16, 2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "kind"}, ", line 1, record 'seq0': no label (--label kind) in the header 'seq0 class=exon'"),
        ({"label": "(a"}, ": --label '(a' is not a regular expression"),
        ({"label": "(a)(b)"}, ": --label '(a)(b)' has 2 groups; one must hold the label"),
        ({"text": "sequence"}, ": FASTA has no columns"),
        ({"id": "name"}, ": a record's id is the first word of its header"),
    ],
)
def test_a_label_that_is_not_found_is_said_with_the_remedy(tmp_path, options, message):
    path = _fasta(tmp_path / "a.fa")
    assert _fails(path, **options).startswith(f"{path}{message}")


def test_a_record_without_label_or_a_label_that_stands_twice_is_named(tmp_path):
    path = _fasta(tmp_path / "a.fa")
    labels = tmp_path / "l.csv"
    labels.write_text("id,label\nseq0,a\nseq1,b\n")
    assert _fails(path, labels=labels).startswith(f"{labels}: there is no label for 'seq2', at line 7, record 'seq2'")
    labels.write_text("id,label\nseq0,a\nseq0,b\n")
    assert _fails(path, labels=labels) == f"{labels}, line 3: 'seq0' is in it twice"


def test_letters_that_are_no_bases_are_refused_in_strict_mode(tmp_path):
    path = _fasta(tmp_path / "a.fa", letters="ACGT-ACGTACGT")
    assert load("own", path).classes == ("exon", "intron")
    message = _fails(path, strict=True)
    assert message.startswith(f"{path}, line 2, record 'seq0': '-' is not a base")


def test_proteins_are_not_taken_for_bases(tmp_path):
    path = _fasta(tmp_path / "a.fa", letters="MEEPQSDLFI")
    task = load("own", path)
    assert (task.vocabulary, task.settings["alphabet"]) == (AMINO_ACIDS, "protein")
    assert "letters are not bases; put other sequences into a table" in _fails(path, alphabet="dna")


# numpy


def _arrays(count=20, shape=(6,), dtype=np.float32):
    rng = np.random.default_rng(0)
    return (rng.random((count, *shape)) * 200).astype(dtype), np.arange(count) % 2


@pytest.mark.parametrize(
    ("shape", "dtype", "features", "preset"),
    [
        ((6,), np.float32, 1, "adding"),
        ((6,), np.float64, 1, "adding"),
        ((6,), np.int64, 1, "adding"),
        ((6,), np.uint16, 1, "adding"),
        ((6,), ">f4", 1, "adding"),
        ((6,), bool, 1, "adding"),
        ((6, 3), np.float16, 3, "adding"),
        ((6, 3), np.uint8, 3, "adding"),
        ((6,), np.uint8, None, "image"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_are_numbers_but_rows_of_bytes_are_token_ids(tmp_path, shape, dtype, features, preset, kind):
    x, y = _arrays(20, shape, dtype)
    if kind == "npy":
        np.save(tmp_path / "a.npy", x)
        np.save(tmp_path / "y.npy", y)
        found = load("own", tmp_path / "a.npy", labels=tmp_path / "y.npy")
    else:
        np.savez_compressed(tmp_path / "a.npz", X=x, y=y)
        found = load("own", tmp_path / "a.npz")
    assert (found.features, found.preset, found.length, found.classes) == (features, preset, 6, ("0", "1"))
    if features is None:
        assert len(found.vocabulary) == 256
    for id, (inputs, target) in _all(found).items():
        number = int(id) - 1
        assert inputs.dtype == (torch.int64 if features is None else torch.float32)
        assert np.array_equal(inputs.numpy().reshape(x[number].shape), x[number].astype(np.float32))
        assert target.item() == y[number]


@pytest.mark.parametrize("with_validation", [False, True])
def test_arrays_named_for_their_splits(tmp_path, with_validation):
    x, y = _arrays(40)
    parts = {"train": slice(0, 20), "test": slice(20, 30)} | ({"val": slice(30, 40)} if with_validation else {})
    named = {f"{name}_{part}": array[where] for part, where in parts.items() for name, array in (("x", x), ("y", y))}
    np.savez(tmp_path / "a.npz", **named)
    found = load("own", tmp_path / "a.npz")
    assert [len(split) for split in found.splits.values()] == ([20, 10, 10] if with_validation else [18, 2, 10])
    assert np.array_equal(found.test[3].inputs.flatten(), x[23])


@pytest.mark.parametrize(
    ("names", "options"),
    [(("data", "labels"), {}), (("signals_of_it", "kinds"), {}), (("a", "b"), {"text": "a", "label": "b"})],
)
def test_two_arrays_of_any_names(tmp_path, names, options):
    x, y = _arrays()
    np.savez(tmp_path / "a.npz", **dict(zip(names, (x, np.array(["n", "p"])[y]), strict=True)))
    assert load("own", tmp_path / "a.npz", **options).classes == ("n", "p")


def _npz(path, **arrays):
    np.savez(path, **arrays)
    return path


_X, _Y = _arrays()


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (
            {"a": _X, "b": _X, "c": _Y},
            {},
            "which arrays are sequences and labels? There are a [20, 6], b [20, 6], c [20]",
        ),
        (
            {"x": _X, "y": _Y},
            {"text": "z"},
            "--text and --label name two arrays; there are x [20, 6], y [20], and no 'z'",
        ),
        ({"x": _X, "y": _Y[:5]}, {}, "array 'y': int64 [5]; expected 20 labels, one per sequence"),
        ({"x": _X, "y": _X}, {}, "array 'y': float32 [20, 6]; expected 20 labels"),
        ({"x": _X[0], "y": _Y[:6]}, {}, "array 'x': float32 [6]; expected numbers"),
        ({"x": _X.astype(complex), "y": _Y}, {}, "array 'x': complex128 [20, 6]; expected numbers"),
        ({"x": _X[:, :0], "y": _Y}, {}, "array 'x': an array of shape [20, 0] holds nothing"),
        ({"x": _X, "y": _Y}, {"split": "s"}, "arrays have no columns; --split is for tables"),
        ({"x": _X, "y": np.where(_Y, np.nan, 0.5)}, {}, "array 'x', row 2: the target is NaN or infinite"),
        (
            {"x": _X.astype(object), "y": _Y},
            {},
            "it cannot be read as arrays of numbers: Object arrays cannot be loaded",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, arrays, options, message):
    assert message in _fails(_npz(tmp_path / "a.npz", **arrays), **options)


def test_a_npy_wants_its_labels_beside_it_and_a_npz_does_not(tmp_path):
    np.save(tmp_path / "a.npy", _X)
    assert "a .npy needs its labels in a second .npy; name it with --labels" in _fails(tmp_path / "a.npy")
    path = _npz(tmp_path / "a.npz", x=_X, y=_Y)
    assert "a .npz holds the labels itself" in _fails(path, labels=tmp_path / "a.npy")
    assert "there is no such file" in _fails(tmp_path / "a.npy", labels=tmp_path / "none.npy")


# What is wrong with a file


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
    assert _fails(path, **options).startswith(f"{path}{message}")
    assert list(cache_folder.glob("own-*")) == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert _fails(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: there is no such file or folder"
    path = _table(tmp_path / "a.csv", _texts())
    assert _fails(path, labels=tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: there is no such file or folder"


# Any bytes at all


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
    task = load("own", _table(tmp_path / name, rows), seed=seed)
    assert sum(map(len, task.splits.values())) == 2 * len(texts)
    assert set(task.classes) == {first, second}
    for id, (inputs, _) in _all(task).items():
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
    assert "its labels cannot be read" in _fails(tmp_path / "a.npy", labels=tmp_path / "y.npy")


# Real data


@pytest.mark.slow
def test_the_review_set_is_read_without_saying_anything_about_it(shared_data):
    found = load(str(shared_data / "imdb" / "imdb50k.parquet"))
    assert [len(split) for split in found.splits.values()] == [22_500, 2_500, 25_000]
    assert (found.classes, found.length) == (("0", "1"), 5_184)
    assert "123 of the 25000 test sequences also stand in train or validation" in found.notes
