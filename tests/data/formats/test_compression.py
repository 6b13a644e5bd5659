"""Compressed files: the content decides what they are, damage names the file, and a small file stays small."""

from __future__ import annotations

import gzip
import lzma

import pyarrow as pa
import pytest

from paramixer.data.errors import DataError
from paramixer.data.formats import compression, fasta
from paramixer.data.formats.tabular import tables

PACK = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}
ROWS = "text,label\n" + "".join(f"row {number * 7919 % 4001},{number % 3}\n" for number in range(4000))


@pytest.mark.parametrize("suffix", PACK)
def test_every_kind_reads_as_the_plain_file_does(tmp_path, suffix):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACK[suffix](ROWS.encode()))
    assert tables.is_table(path)
    assert [row[0] for _, row in tables.read(path, ["text"])][-1] == f"row {3999 * 7919 % 4001}"
    records = tmp_path / f"a.fa{suffix}"
    records.write_bytes(PACK[suffix](b">a\nACGT\n>b\nCC\n"))
    assert [record.sequence for record in fasta.read_records(records)] == ["ACGT", "CC"]
    assert compression.expand_bytes(PACK[suffix](b"some text"), "here") == b"some text"


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_that_is_cut_off_names_itself(tmp_path, suffix):
    path = tmp_path / f"a.csv{suffix}"
    whole = PACK[suffix](ROWS.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"a\.csv{suffix}, line \d+: reading stopped: damaged or not complete"):
        list(tables.read(path, ["text"]))
    with pytest.raises(DataError, match="^here: damaged or not complete"):
        compression.expand_bytes(whole[:-20], "here")


@pytest.mark.parametrize("suffix", PACK)
def test_a_small_file_cannot_expand_without_end(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(compression, "_HARMLESS", 1 << 16)
    monkeypatch.setattr(compression, "_MOST_EXPANDED", 20)
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACK[suffix](b"text\n" + b"a" * (1 << 22)))
    with pytest.raises(DataError, match="it expands to more than 20 times its size"):
        list(tables.read(path, ["text"]))
    monkeypatch.setattr(compression, "_MOST_EXPANDED", 1 << 30)
    monkeypatch.setattr(compression, "_LARGEST", 1 << 20)
    with pytest.raises(DataError, match="^here: it expands to more than"):
        compression.expand_bytes(path.read_bytes(), "here")
