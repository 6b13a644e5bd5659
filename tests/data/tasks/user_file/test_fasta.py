"""Records of FASTA: where their labels and splits stand, and which letters they have."""

from __future__ import annotations

import gzip

import pytest

from paramixer.data import load
from paramixer.data.errors import DataError
from paramixer.data.vocabulary import AMINO_ACIDS
from tests.data.tasks.user_file.files import by_id, fails, write_table


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
    for id, (inputs, target) in by_id(found).items():
        if header.startswith("seq{i} "):
            assert target.item() == int(id[3:]) % 2
            assert len(inputs) == 4 * (1 + int(id[3:])) + 2


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.parquet"])
def test_labels_of_records_can_stand_in_a_table(tmp_path, name):
    rows = [{"id": f"seq{i}", "label": i % 2, "split": ["train", "dev", "test"][i % 3]} for i in range(20)]
    found = load("own", _fasta(tmp_path / "a.fa", "seq{i} some gene"), labels=str(write_table(tmp_path / name, rows)))
    assert found.classes == ("0", "1")
    assert [len(split) for split in found.splits.values()] == [7, 7, 6]
    other = [{"gene": row["id"], "kind": row["label"] + 5} for row in rows]
    options = {"labels": write_table(tmp_path / "o.csv", other), "id": "gene", "label": "kind"}
    assert load("own", tmp_path / "a.fa", **options).classes == ("5", "6")


def test_a_header_without_a_known_key_lists_its_own(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text("".join(f">s{i} kind={'ab'[i % 2]} len=3\nACG\n" for i in range(40)))
    assert "in the header 's0 kind=a len=3', whose keys are kind, len; name it with --label kind, " in fails(path)
    assert load("own", path, label="kind").classes == ("a", "b")


def test_splits_of_records_can_stand_in_their_headers(tmp_path):
    path = tmp_path / "a.fa"
    parts = ["train", "train", "validation", "test"]
    path.write_text("".join(f">s{i} class={'ab'[i // 4 % 2]} part={parts[i % 4]}\nACG\n" for i in range(40)))
    found = load("own", path, split="part")
    assert [len(split) for split in found.splits.values()] == [20, 10, 10]
    assert "no split (nothing=...) in the header" in fails(path, split="nothing")


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
    assert fails(path, **options).startswith(f"{path}{message}")


def test_a_record_without_label_or_a_label_that_stands_twice_is_named(tmp_path):
    path = _fasta(tmp_path / "a.fa")
    labels = tmp_path / "l.csv"
    labels.write_text("id,label\nseq0,a\nseq1,b\n")
    assert fails(path, labels=labels).startswith(f"{labels}: there is no label for 'seq2', at line 7, record 'seq2'")
    labels.write_text("id,label\nseq0,a\nseq0,b\n")
    assert fails(path, labels=labels) == f"{labels}, line 3: 'seq0' is in it twice"


def test_letters_that_are_no_bases_are_refused_in_strict_mode(tmp_path):
    path = _fasta(tmp_path / "a.fa", letters="ACGT-ACGTACGT")
    assert load("own", path).classes == ("exon", "intron")
    message = fails(path, strict=True)
    assert message.startswith(f"{path}, line 2, record 'seq0': '-' is not a base")


def test_proteins_are_not_taken_for_bases(tmp_path):
    path = _fasta(tmp_path / "a.fa", letters="MEEPQSDLFI")
    task = load("own", path)
    assert (task.vocabulary, task.settings["alphabet"]) == (AMINO_ACIDS, "protein")
    assert "letters are not bases; put other sequences into a table" in fails(path, alphabet="dna")
