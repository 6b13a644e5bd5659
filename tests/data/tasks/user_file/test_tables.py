"""A table of one's own: every format of it becomes the same task."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from paramixer.data import load
from paramixer.data.tasks.user_file import LONGEST
from tests.data.tasks.user_file.files import COUNT, by_id, fails, make_texts, write_table


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.ndjson.gz", "a.csv.gz", "a.parquet"])
def test_the_same_texts_are_the_same_task_in_every_format(tmp_path, name):
    rows = [{"id": f"r{i}", **row} for i, row in enumerate(make_texts())]
    if "ndjson" in name:
        path = tmp_path / name
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    else:
        path = write_table(tmp_path / name, rows)
    found = load(str(path))
    assert (found.name, found.preset, found.metric, found.target) == ("own", "text", "accuracy", "class")
    assert found.classes == ("bad", "good")
    assert found.vocabulary.cls is not None
    assert found.length == len("The text, 29") + 1
    items = by_id(found)
    assert len(items) == COUNT
    for i, row in enumerate(rows):
        inputs, target = items[f"r{i}"]
        letters = [found.vocabulary.symbols[number] for number in inputs[1:]]
        assert all(one in (other, "<unknown>") for one, other in zip(letters, row["text"], strict=True))
        assert found.classes[target] == row["label"]
    reference = load(str(write_table(tmp_path / "reference.csv", rows)))
    assert found.fingerprint == reference.fingerprint


def test_columns_that_were_guessed_are_told(tmp_path):
    rows = [{"title": f"t{i}", "review": f"I saw it {i}", "stars": i % 5} for i in range(60)]
    found = load("own", write_table(tmp_path / "a.jsonl", rows))
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
    path = write_table(tmp_path / "a.jsonl", rows)
    if text is None:
        assert "which column holds the labels or values? It could be name, kind; name it with --label" in fails(path)
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
    assert fails(path) == f"{path}: {message}"


@pytest.mark.parametrize("column", ["split", "part"])
def test_a_column_of_splits_is_honoured(tmp_path, column):
    names = ["Train", "train", "val", "dev", "test", "TEST"]
    rows = [{**row, column: names[i % 6], "id": str(i)} for i, row in enumerate(make_texts(60))]
    found = load("own", write_table(tmp_path / "a.csv", rows), **({} if column == "split" else {"split": column}))
    assert [len(split) for split in found.splits.values()] == [20, 20, 20]
    assert {int(found.test.id(i)) % 6 for i in range(20)} == {4, 5}


def test_a_column_named_split_that_means_something_else_is_left_alone(tmp_path):
    rows = [{**row, "split": f"plot {i}"} for i, row in enumerate(make_texts())]
    path = write_table(tmp_path / "a.csv", rows)
    found = load("own", path)
    assert len(found.train) == 24
    assert "column 'split' names neither train, validation nor test, and was not used" in found.notes
    assert fails(path, split="split").startswith(f"{path}, line 2: split 'plot 0'; expected train, validation or test")


@pytest.mark.parametrize("row", [0, 3, 150])
def test_an_unknown_name_in_a_column_of_splits_is_refused(tmp_path, row):
    """Splits cut at random instead would mix the user's test rows into train."""
    rows = [{**line, "split": ["train", "train", "val", "test"][i % 4]} for i, line in enumerate(make_texts(200))]
    rows[row]["split"] = "holdout"
    message = fails(write_table(tmp_path / "a.csv", rows))
    assert message.startswith(f"{tmp_path / 'a.csv'}, line {row + 2}: split 'holdout'; expected train, validation")
    assert message.endswith("change it, or rename what holds the splits to have them cut at random")


def test_a_column_of_splits_may_begin_with_many_unknown_names(tmp_path):
    rows = [{**line, "split": "holdout" if i < 150 else "train"} for i, line in enumerate(make_texts(200))]
    assert "line 2: split 'holdout'" in fails(write_table(tmp_path / "a.csv", rows))


def test_an_unknown_split_in_the_first_header_is_refused(tmp_path):
    path = tmp_path / "a.fa"
    parts = ["holdout", "train", "validation", "test"]
    path.write_text("".join(f">s{i} class={'ab'[i // 4 % 2]} split={parts[i % 4]}\nACG\n" for i in range(40)))
    assert "split 'holdout'; expected train, validation or test" in fails(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("features", [None, 1, 3])
def test_lists_of_numbers_are_read_in_every_format(tmp_path, name, features):
    shape = (4,) if features is None else (4, features)
    lists = [np.arange(i, i + np.prod(shape)).reshape(shape).astype(float) for i in range(20)]
    rows = [{"id": str(i), "values": numbers.tolist(), "y": 0.5 * i} for i, numbers in enumerate(lists)]
    found = load("own", write_table(tmp_path / name, rows))
    assert (found.preset, found.target, found.metric) == ("adding", "value", "mse")
    assert (found.features, found.length, found.vocabulary) == (features or 1, 4, None)
    for id, (inputs, target) in by_id(found).items():
        assert np.array_equal(inputs.numpy().reshape(shape), lists[int(id)])
        assert target.item() == 0.5 * int(id)


@pytest.mark.parametrize("written", ["{0} {1} 3", "{0},{1}, 3", "{0};{1};3", "[{0}, {1}, 3]"])
def test_lists_of_numbers_can_be_written_as_text(tmp_path, written):
    rows = [{"signal": written.format(i, -1.5 * i), "label": i % 2} for i in range(20)]
    found = load("own", write_table(tmp_path / "a.csv", rows))
    assert found.features == 1
    inputs, target = found.train[0]
    assert inputs.flatten().tolist() == [inputs[0].item(), -1.5 * inputs[0].item(), 3]
    assert target.item() == inputs[0].item() % 2


@pytest.mark.parametrize("cell", ["0,5 0,7 1", "0,5;0,7"])
def test_commas_that_may_stand_inside_of_numbers_are_refused(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text("signal;label\n" + "".join(f'"{cell}";{i % 2}\n' for i in range(20)))
    assert "line 2: it is not clear whether commas in 'signal' stand inside of numbers" in fails(path)


def test_a_column_for_each_step_is_refused_with_what_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"t{i}" for i in range(12)) + ",label\n" + f"{'0.5,' * 12}a\n{'1,' * 12}b\n" * 9)
    assert "12 columns hold one number per row (t0, t1, t2, ...); a series with a column for each step" in fails(path)


def test_arrays_that_may_have_their_channels_first_are_noted(tmp_path):
    draw = np.random.default_rng(0)
    for name, shape in (("first", (40, 3, 12)), ("last", (40, 12, 3))):
        np.savez(tmp_path / f"{name}.npz", x=draw.normal(size=shape), y=np.arange(40) % 2)
    note = "[40, 3, 12] is read as sequences of length 3 with 12 numbers per position; if the series run along the last"
    assert any(line.startswith(note) for line in load("own", tmp_path / "first.npz").notes)
    assert not any("last axis" in line for line in load("own", tmp_path / "last.npz").notes)


def test_texts_of_one_number_each_are_texts(tmp_path):
    rows = [{"text": f"{i:05}", "label": i % 2} for i in range(20)]
    assert load("own", write_table(tmp_path / "a.csv", rows)).features is None


def test_a_text_among_written_numbers_names_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("values,label\n" + "1 2,a\n3 4,b\n" * 60 + "some text,a\n")
    assert fails(path) == f"{path}, line 122: not a list of numbers, as the first rows of 'values' are"


def test_true_and_false_are_classes(tmp_path):
    rows = [{"text": f"t{i}", "label": i % 2 == 0} for i in range(30)]
    for name in ("a.jsonl", "a.parquet"):
        assert load("own", write_table(tmp_path / name, rows)).classes == ("false", "true")


def test_whether_classes_or_values_can_be_said(tmp_path):
    path = write_table(tmp_path / "a.csv", [{"text": f"t{i}", "stars": i % 5} for i in range(60)])
    assert load("own", path).target == "class"
    found = load("own", path, target="value")
    assert (found.target, found.metric, found.outputs) == ("value", "mse", 1)
    assert "choose from class, value" in fails(path, target="number")


def test_long_texts_are_cut_to_the_limit_unless_a_length_is_said(tmp_path):
    rows = [{"text": "ab" * LONGEST, "label": i % 2} for i in range(5)] * 4
    path = write_table(tmp_path / "a.csv", rows)
    found = load("own", path)
    assert found.length == LONGEST == found.train.lengths[0]
    assert found.train.full_lengths[0] == 2 * LONGEST + 1
    assert load("own", path, length=2 * LONGEST).train.lengths[0] == 2 * LONGEST


def test_preparing_twice_reads_nothing_and_any_setting_prepares_anew(tmp_path, cache_folder, monkeypatch):
    path = write_table(tmp_path / "a.csv", make_texts())
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


@pytest.mark.slow
def test_the_review_set_is_read_without_saying_anything_about_it(shared_data):
    found = load(str(shared_data / "imdb" / "imdb50k.parquet"))
    assert [len(split) for split in found.splits.values()] == [22_500, 2_500, 25_000]
    assert (found.classes, found.length) == (("0", "1"), 5_184)
    assert "123 of the 25000 test sequences also stand in train or validation" in found.notes
