"""FASTA as it is downloaded is read right, and whatever is wrong with a file names the file and the line."""

from __future__ import annotations

import gzip
import re
import string
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paramixer.data import DataError
from paramixer.data.formats import fasta
from paramixer.data.formats.fasta import Record, read_records

FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
# Bytes that mean something to the reader come up often.
FASTA_LIKE = st.lists(
    st.sampled_from(
        [b">", b"\n", b"\r\n", b"ACGT", b"acgun", b"RYK", b" ", b"\t", b"-", b"*", b"1", b";", b"\xff", b"\0"]
    )
    | st.binary(max_size=8),
    max_size=40,
).map(b"".join)


def written(folder, content: bytes, name="some.fa"):
    path = folder / name
    path.write_bytes(content)
    return path


def refused(path, strict=False) -> str:
    with pytest.raises(DataError) as error:
        list(read_records(path, strict))
    assert str(error.value).startswith(str(path))
    return str(error.value)


def outcome(path, strict=False) -> list[Record] | DataError:
    try:
        return list(read_records(path, strict))
    except DataError as error:
        return error


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_records_of_several_lines_are_joined(tmp_path, ending, compress):
    lines = [b">chr1 first one\tof two", b"ACGT", b"GG", b"", b"> chr2", b"TTTT", b"A"]
    path = written(tmp_path, compress(ending.join(lines)))
    assert list(read_records(path)) == [
        Record("chr1", "ACGTGG", "line 1, record 'chr1'", "first one\tof two"),
        Record("chr2", "TTTTA", "line 5, record 'chr2'"),
    ]


def test_case_and_letters_fold_to_five_symbols(tmp_path):
    every = string.ascii_uppercase + string.ascii_lowercase
    (record,) = read_records(written(tmp_path, b">x\n" + every.encode()))
    bases = {"A": "A", "C": "C", "G": "G", "T": "T", "U": "T"}
    assert record.sequence == "".join(bases.get(letter.upper(), "N") for letter in every)
    assert record.unknown == 2 * (26 - len("ACGTUN" + "RYSWKMBDHV"))


def test_strict_takes_exactly_bases_and_ambiguity_letters(tmp_path):
    for point in range(33, 127):
        letter = chr(point)
        path = written(tmp_path, f">x\nACG\nA{letter}C\n".encode())
        if letter in "ACGTUNRYSWKMBDHVacgtunryswkmbdhv":
            assert len(next(read_records(path, strict=True)).sequence) == 6
        else:
            assert "line 3" in refused(path, strict=True)


@pytest.mark.parametrize("letter", ["-", ".", "*", "7", "X", "e"])
def test_strange_letters_are_n_unless_strict(tmp_path, letter):
    path = written(tmp_path, f">x\nAC{letter}GT\n".encode())
    (record,) = read_records(path)
    assert (record.sequence, record.unknown) == ("ACNGT", 1)
    message = refused(path, strict=True)
    assert f"line 2, record 'x': {letter!r} is not a base" in message


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\n \n\r\n", "empty"),
        (b"\n\nACGT\n>x\nACGT\n", "line 3: not FASTA: it begins with 'ACGT"),
        (b"@read\nACGT\n+\nIIII\n", "line 1: not FASTA: .*FASTQ"),
        (b"id,sequence\n1,ACGT\n", "line 1: not FASTA"),
        (b"PK\x03\x04\xff\xfe", "line 1: not FASTA"),
        (b">x\n>y\nACGT\n", "line 1, record 'x': the record has no sequence"),
        (b">y\nACGT\n>x\n", "line 3, record 'x': the record has no sequence"),
        (b">x\n\n \t\n>y\nACGT", "line 1, record 'x': the record has no sequence"),
        (b">", "line 1, record '': the record has no sequence"),
        (b">x\nAC\nAC\xc3\xa9GT\n", "line 3, record 'x': .*not a base"),
        (b">x\nAC\0GT\n", "line 2, record 'x': .*not a base"),
        (b">x\nACGT\n;comment\nACGT\n", "line 3, record 'x': ';' is not a base"),
        (b">x\nACGT>y\nACGT\n", "line 2: a '>' within a line"),
        (b">caf\xc3\xa9\nACGT\n", "line 1: the header has bytes that are not ASCII"),
        (b">x\rACGT\r>y\rACGT\r", "line 1: lines end in a bare carriage return"),
        (b">" + b"x" * (1 << 17), "line 1: a header of more than"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, content, says, compress):
    assert re.search(says, refused(written(tmp_path, compress(content))))


def test_a_gzip_file_cut_short_is_refused_after_its_whole_part(tmp_path, monkeypatch):
    monkeypatch.setattr(fasta, "_BLOCK", 64)
    whole = gzip.compress(b"".join(b">r%d\nACGTACGTTTGACA\n" % number for number in range(1000)))
    path = written(tmp_path, whole[:-20], "some.fa.gz")
    assert re.search(r"after line \d{3,}: damaged or not complete", refused(path))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    refused(written(tmp_path, bytes(damaged), "damaged.fa.gz"))
    refused(written(tmp_path, whole + b"and more", "longer.fa.gz"))


def test_gzip_is_told_by_content_and_may_have_several_members(tmp_path):
    path = written(tmp_path, gzip.compress(b">x\nAC") + gzip.compress(b"GT\n"), "misnamed.fa")
    assert [record.sequence for record in read_records(path)] == ["ACGT"]


def test_files_that_cannot_be_opened_are_named(tmp_path):
    refused(tmp_path / "absent.fa")
    refused(tmp_path)


@FUZZ
@given(content=FASTA_LIKE | st.binary(max_size=200), compressed=st.booleans(), strict=st.booleans())
def test_any_bytes_give_records_or_a_data_error(tmp_path, content, compressed, strict):
    path = written(tmp_path, gzip.compress(content) if compressed else content)
    found = outcome(path, strict)
    if isinstance(found, DataError):
        assert str(found).startswith(str(path))
    else:
        assert found
        assert all(record.sequence and set(record.sequence) <= set("ACGTN") for record in found)
        assert not strict or all(record.unknown == 0 for record in found)


@FUZZ
@given(content=FASTA_LIKE, place=st.integers(0, 200), value=st.integers(0, 255), cut=st.integers(0, 60))
def test_any_damage_to_a_gzip_file_gives_records_or_a_data_error(tmp_path, content, place, value, cut):
    packed = bytearray(gzip.compress(b">x\nACGT\n" + content))
    packed[place % len(packed)] = value
    found = outcome(written(tmp_path, bytes(packed[: len(packed) - cut])))
    assert found if isinstance(found, list) else str(found).startswith(str(tmp_path))


@FUZZ
@given(
    parts=st.lists(
        st.tuples(
            st.text("abc", min_size=1, max_size=12),
            st.lists(st.text("ACGTNacgt", max_size=9), min_size=1, max_size=5).filter(any),
        ),
        min_size=1,
        max_size=6,
    ),
    block=st.integers(1, 20),
)
def test_where_blocks_end_does_not_matter(tmp_path, parts, block):
    lines, wanted = [], []
    for name, sequence in parts:
        lines.append(f">{name}")
        wanted.append(Record(name, "".join(sequence).upper(), f"line {len(lines)}, record {name!r}"))
        lines.extend(sequence)
    path = written(tmp_path, "\n".join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "_BLOCK", block)
        assert list(read_records(path)) == wanted


@FUZZ
@given(
    parts=st.lists(
        st.tuples(
            st.from_regex(r"[a-z0-9|.]{1,9}( [a-z=]{1,9}){0,2}", fullmatch=True),
            st.lists(st.text("ACGTNacgtnRYKMu-", min_size=1, max_size=9), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=6,
    ),
    ending=st.sampled_from(["\n", "\r\n"]),
    compressed=st.booleans(),
)
def test_well_formed_files_are_read_as_dnaio_reads_them(tmp_path, parts, ending, compressed):
    dnaio = pytest.importorskip("dnaio")
    content = "".join(f">{header}{ending}{ending.join(lines)}{ending}" for header, lines in parts).encode()
    path = written(tmp_path, gzip.compress(content) if compressed else content, "a.fa.gz" if compressed else "a.fa")
    folded = str.maketrans("Uu", "Tt") | str.maketrans("RYKM-", "NNNNN")
    with dnaio.open(path, fileformat="fasta", open_threads=0) as reader:
        expected = [(record.name, record.sequence.translate(folded).upper()) for record in reader]
    assert [
        (f"{record.name} {record.description}".strip(), record.sequence) for record in read_records(path)
    ] == expected


@pytest.mark.parametrize("line", [80, None])
def test_a_chromosome_is_held_once(tmp_path, line):
    bases = 24_000_000
    text = b"ACGTTGCA" * 10
    path = written(tmp_path, b">x\n" + (text + (b"\n" if line else b"")) * (bases // 80))
    tracemalloc.start()
    try:
        (record,) = read_records(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(record.sequence) == bases
    assert peak < 1.5 * bases


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a.fa", True), ("a.FASTA", True), ("a.cdna.all.fa.gz", True), ("a.fna.GZ", True), ("fa", False), ("a.gz", False)],
)
def test_fasta_files_are_known_by_name(tmp_path, name, is_one):
    assert fasta.is_fasta(tmp_path / name) == is_one
