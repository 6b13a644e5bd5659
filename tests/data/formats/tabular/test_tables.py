"""Tables row by row, and one clear error for whatever is wrong with one."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from paramixer.data.errors import DataError
from paramixer.data.formats.tabular import tables, text_tables

_FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def written(tmp_path):
    """Writes a file of this name, packed if the name says so."""

    def write(name, content):
        path = tmp_path / name
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def _rows(path, *wanted):
    return [(place.removeprefix(f"{path}, "), *values) for place, values in tables.read(path, wanted)]


def _fails(path, *wanted):
    with pytest.raises(DataError) as caught:
        list(tables.read(path, wanted))
    assert str(path) in str(caught.value)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.CSV.gz", "a.tsv.gz"])
def test_delimited_rows_have_their_values_and_the_line_they_begin_in(written, name):
    comma = "\t" if ".tsv" in name else ","
    lines = ["text,label", "plain,1", '"two\nlines, ""quoted""",2', "", 'with " inside,3', '"",4', "last,5"]
    path = written(name, "\r\n".join(lines).replace(", ", "\0").replace(",", comma).replace("\0", ", "))
    assert tables.read_names(path) == ["text", "label"]
    assert _rows(path, "label", "text") == [
        ("line 2", "1", "plain"),
        ("line 3", "2", 'two\nlines, "quoted"'),
        ("line 6", "3", 'with " inside'),
        ("line 7", "4", ""),
        ("line 8", "5", "last"),
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_json_lines_keep_their_values(written, name):
    rows = [{"x": "é\n", "y": 1}, {"y": 2.5, "x": [1, 2]}, {"x": True, "y": "z", "extra": None}]
    path = written(name, "\n\n".join(json.dumps(row) for row in rows))
    assert tables.read_names(path) == ["x", "y"]
    assert _rows(path, "x", "y") == [("line 1", "é\n", 1), ("line 3", [1, 2], 2.5), ("line 5", True, "z")]


def test_parquet_rows_are_counted_through_batches_and_row_groups(tmp_path):
    path = tmp_path / "a.parquet"
    count = 700
    table = pa.table(
        {"id": [f"r{i}" for i in range(count)], "n": range(count), "list": [[i, 0.5] for i in range(count)]}
    )
    parquet.write_table(table, path, row_group_size=300)
    assert tables.read_names(path) == ["id", "n", "list"]
    assert _rows(path, "list", "id") == [(f"row {i + 1}", [i, 0.5], f"r{i}") for i in range(count)]


def test_no_column_at_all_still_counts_rows(written, tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": [1, 2, 3]}), path)
    assert _rows(path) == [("row 1",), ("row 2",), ("row 3",)]
    assert _rows(written("a.csv", "x\n1\n2\n")) == [("line 2",), ("line 3",)]


@pytest.mark.parametrize(("name", "content"), [("a.csv", "x,y\n1,2\n"), ("a.jsonl", '{"x": "1", "y": "2"}\n')])
def test_a_byte_order_mark_is_no_part_of_the_first_column(written, name, content):
    assert _rows(written(name, b"\xef\xbb\xbf" + content.encode()), "x")[0][1] == "1"


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "a.jsonl.gz"])
def test_an_empty_file_is_named(written, name):
    assert "the file is empty" in _fails(written(name, b""), "x")
    with pytest.raises(DataError, match="the file is empty"):
        tables.read_names(written(name, b""))


def test_a_header_without_rows_is_an_error(written, tmp_path):
    assert "not a single row" in _fails(written("a.csv", "x,y\n"), "x")
    parquet.write_table(pa.table({"x": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert "not a single row" in _fails(tmp_path / "a.parquet", "x")


def test_a_missing_column_lists_those_there_are_and_the_nearest(written, tmp_path):
    parquet.write_table(pa.table({"label": ["a"], "text": ["b"]}), tmp_path / "a.parquet")
    csv_path = written("a.csv", "label,text\na,b\n")
    for path in (csv_path, tmp_path / "a.parquet"):
        assert _fails(path, "txet") == ": there is no column 'txet'; there are label, text; did you mean 'text'?"
    path = written("a.jsonl", '{"label": 1, "text": "a"}\n{"label": 1}\n')
    assert _fails(path, "text") == ", line 2: there is no column 'text'; there are label"


def test_a_column_that_stands_twice_is_an_error(written):
    assert "2 columns 'x'" in _fails(written("a.csv", "x,x\n1,2\n"), "x")


@pytest.mark.parametrize(("row", "fields"), [("a", 1), ("a\tb\tc", 3)])
def test_a_row_with_the_wrong_number_of_fields_names_its_line(written, row, fields):
    path = written("a.tsv", f'x\ty\n"1\n1"\t2\n{row}\n')
    assert _fails(path, "x") == f", line 4: {fields} fields, where the header has 2 (x, y)"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_text_that_is_not_utf8_names_its_line(written, name):
    path = written(name, b"x,y\n" + b"a,1\n" * 9000 + b"caf\xe9,1\n")
    assert _fails(path, "x").startswith(", line 9002: not UTF-8 (byte 0xe9 at position 3)")


def test_parquet_text_that_is_not_utf8_names_its_row(tmp_path):
    values = [b"fine"] * 200 + [b"caf\xe9", b"fine"]
    table = pa.table({"x": pa.array(values, pa.binary()).view(pa.string())})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert _fails(tmp_path / "a.parquet", "x").startswith(", row 201: not UTF-8")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"x": 1', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"x": ' + "1" * 5000 + "}", "not JSON"),
        ("[1, 2]", "expected a JSON object, got a list"),
        ('{"x": null}', "null in 'x'"),
        ('{"x": "\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_a_bad_line_of_json_is_named(written, line, what):
    message = _fails(written("a.jsonl", f'{{"x": "a"}}\n\n{line}\n'), "x")
    assert message.startswith(", line 3: ")
    assert what in message


def test_a_whole_surrogate_pair_in_json_is_a_character(written):
    assert _rows(written("a.jsonl", '{"x": "\\ud83d\\ude00"}\n'), "x") == [("line 1", "\U0001f600")]


def test_null_in_parquet_names_its_row_and_passes_where_it_is_allowed(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": ["a", None], "y": [1, 2]}), path)
    assert _fails(path, "y", "x") == ", row 2: null in 'x'"
    assert [values for _, values in tables.read(path, ["x"], nulls=True)] == [("a",), (None,)]


def test_a_quote_that_never_ends_names_the_line_where_it_begins(written):
    path = written("a.csv", 'x,y\na,1\n"b,2\n' + "c,3\n" * 100)
    assert _fails(path, "x").startswith(", line 3: a quoted field begins here and never ends")


def test_text_after_a_quoted_field_is_an_error(written):
    assert _fails(written("a.csv", 'x,y\n"a" b,1\n'), "x").startswith(", line 2: ' ' after the end of a quoted field")


def test_a_field_or_line_without_end_is_given_up(written, monkeypatch):
    monkeypatch.setattr(text_tables, "_LONGEST", 1000)
    assert "never ends" in _fails(written("a.csv", 'x\n"' + "a\n" * 800), "x")
    assert "a line of 1000 bytes or more" in _fails(written("a.csv", "x\n" + "a" * 1200), "x")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_gzip_that_is_cut_off_or_damaged_is_an_error(written, name):
    row = "text\n" if "csv" in name else '{"text": "a"}\n'
    path = written(name, "".join(row for _ in range(1000)))
    whole = path.read_bytes()
    for content in (whole[:-9], whole[:20] + b"\xff" * 10 + whole[30:], b"no gzip at all", whole + b"more"):
        path.write_bytes(content)
        assert "reading stopped" in _fails(path, "text")


def test_parquet_that_is_cut_off_or_damaged_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": ["some text"] * 1000}), path, compression="zstd", use_dictionary=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "not a parquet file" in _fails(path, "x")
    path.write_bytes(whole[:40] + bytes(20) + whole[60:])
    assert ", row 1: reading stopped" in _fails(path, "x")


def test_a_file_that_is_not_there_or_is_no_table(tmp_path):
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.csv.gz"):
        assert "there is no such file" in _fails(tmp_path / name, "x")
    with pytest.raises(DataError, match="a table is named .csv"):
        tables.read_names(tmp_path / "a.txt")
    assert not tables.is_table(tmp_path / "a.txt")
    assert all(tables.is_table(tmp_path / f"a{end}") for end in (".csv", ".tsv.gz", ".ndjson", ".parquet"))


def test_a_long_file_is_never_held(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + f'"{"a" * 5000}",1\n' * 8000)
    tracemalloc.start()
    try:
        assert sum(len(x) for _, (x,) in tables.read(path, ["x"])) == 40_000_000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_header_says_what_separates_fields(written, name, mark):
    path = written(name, f'text{mark}"a label"\n"one; two, three\tfour"{mark}1\nplain{mark}2\n')
    assert tables.read_names(path) == ["text", "a label"]
    assert _rows(path, "text", "a label") == [("line 2", "one; two, three\tfour", "1"), ("line 3", "plain", "2")]


def test_a_header_that_could_be_separated_in_two_ways_is_read_as_the_name_says(written):
    assert tables.read_names(written("a.csv", "a;b,c\n")) == ["a;b", "c"]
    assert tables.read_names(written("a.tsv", "a;b,c\n")) == ["a;b,c"]
    assert tables.read_names(written("b.csv", '"a;b"\n')) == ["a;b"]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2), min_size=1))
@_FUZZ
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_what_the_standard_library_writes_is_read_back(tmp_path, delimiter, rows):
    path = tmp_path / ("a.csv" if delimiter == "," else "a.tsv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerows([["x", "y"], *rows])
    assert [list(values) for _, values in tables.read(path, ["x", "y"])] == rows


_CELLS = st.fixed_dictionaries(
    {"x": st.text(st.characters(exclude_categories=["Cs"])), "y": st.lists(st.integers(-(2**40), 2**40), max_size=3)}
)


@given(rows=st.lists(_CELLS, min_size=1, max_size=9))
@_FUZZ
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.parquet"])
def test_well_formed_rows_are_read_back(tmp_path, name, rows):
    path = tmp_path / name
    if name == "a.parquet":
        schema = pa.schema({"x": pa.string(), "y": pa.list_(pa.int64())})
        parquet.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=4)
    else:
        content = "".join(json.dumps(row, ensure_ascii=len(rows) % 2 == 0) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert sorted(tables.read_names(path)) == ["x", "y"]
    assert [values for _, values in tables.read(path, ["y", "x"])] == [(row["y"], row["x"]) for row in rows]


_PIECES = st.lists(
    st.sampled_from(
        [b"x", b"y", b",", b"\t", b'"', b"\n", b"\r", b"\r\n", b"{", b"}", b"[", b'{"x": 1}', b"\xff", b"null"]
    )
    | st.binary(max_size=5)
).map(b"".join)


@given(content=_PIECES)
@_FUZZ
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "raw.csv.gz"])
def test_any_bytes_give_rows_or_a_data_error(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name == "a.csv.gz" else content)
    for heading in (content, b"x,y\n" + content):
        path.write_bytes(gzip.compress(heading) if name == "a.csv.gz" else heading)
        with suppress(DataError):
            wanted = tables.read_names(path)[:1]
            assert all(len(values) == 1 for _, values in tables.read(path, wanted))


def _damaged(whole, places):
    damaged = bytearray(whole)
    for place, byte in places:
        damaged[place % len(damaged)] = byte
    return bytes(damaged)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A good file of every packed kind."""
    folder = tmp_path_factory.mktemp("packed")
    table = pa.table({"x": [f"text {i}" for i in range(50)], "list": [[i, i + 1.5] for i in range(50)]})
    parquet.write_table(table, folder / "a.parquet")
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"some,thing\n" * 50))
    return {name: (folder / name).read_bytes() for name in ("a.parquet", "a.csv.gz")}


@given(places=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4))
@_FUZZ
@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz"])
def test_a_damaged_file_gives_rows_or_a_data_error(tmp_path, packed, name, places):
    path = tmp_path / name
    path.write_bytes(_damaged(packed[name], places))
    with suppress(DataError):
        wanted = tables.read_names(path)
        assert all(len(values) == len(wanted) for _, values in tables.read(path, wanted))
