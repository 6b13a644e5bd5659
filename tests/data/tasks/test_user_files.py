"""Several files as one, other encodings, alphabets, labels by simple words, and what is told about all of it."""

from __future__ import annotations

import random

import pytest

from paramixer.data import load
from paramixer.data.errors import DataError
from paramixer.data.vocabulary import AMINO_ACIDS, BASES


def fails(path, **options) -> str:
    with pytest.raises(DataError) as caught:
        load(path, **options)
    return str(caught.value)


def write(path, rows=40, begin=0, header="text,label"):
    lines = [f"film number {number},{'pos' if number % 2 else 'neg'}" for number in range(begin, begin + rows)]
    path.write_text("\n".join([header, *lines]))
    return path


def write_fasta(path, letters="ACGT", count=20, header=">r{0} chr{1} x|y_{1}", size=60):
    draw = random.Random(path.name)
    path.write_text(
        "".join(f"{header.format(n, n % 2)}\n{''.join(draw.choices(letters, k=size))}\n" for n in range(count))
    )
    return path


def test_several_files_are_read_as_one(tmp_path):
    parts = [write(tmp_path / f"part{number}.csv", begin=40 * number) for number in range(3)]
    whole = load(write(tmp_path / "whole.csv", rows=120))
    for source in (parts, str(tmp_path / "part*.csv"), [str(tmp_path / "part?.csv")]):
        task = load(source)
        assert [len(split) for split in task.splits.values()] == [96, 12, 12]
        assert task.describe()[0] == "kind: csv, 3 files read as one"
        assert task.train[5].inputs.tolist() == whole.train[5].inputs.tolist()
    assert load(**{"name": task.request["task"], **task.request["data"]}).fingerprint == task.fingerprint


def test_a_folder_of_tables_is_these_tables(tmp_path):
    (tmp_path / "folder").mkdir()
    for number in range(2):
        write(tmp_path / "folder" / f"{number}.csv", begin=40 * number)
    assert sum(map(len, load(tmp_path / "folder").splits.values())) == 80


def test_files_named_for_splits_are_these_splits(tmp_path):
    files = [write(tmp_path / f"{name}.csv", rows) for name, rows in (("train", 40), ("dev", 10), ("test", 20))]
    task = load(files)
    assert [len(split) for split in task.splits.values()] == [40, 10, 20]
    assert "splits: the names of the files" in task.describe()
    write_fasta(tmp_path / "train.fa")
    write_fasta(tmp_path / "test.fa")
    task = load([tmp_path / "train.fa", tmp_path / "test.fa"], label="header:2")
    assert [len(split) for split in task.splits.values()] == [18, 2, 20]


def test_files_that_do_not_fit_together_are_named(tmp_path):
    first, other = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", header="text,kind")
    assert fails([first, other]) == (
        f"{other}: its columns are text, kind, where those of {first} are text, label; give files of the same columns"
    )
    assert f"{tmp_path / 'c.fa'}: it is FASTA" in fails([first, write_fasta(tmp_path / "c.fa")])
    assert fails([first, first]) == f"{first}: it is given twice"
    assert "no file matches this pattern" in fails(str(tmp_path / "none*.csv"))
    with pytest.raises(DataError, match="task 'text' has one source, a file or folder; 2 were given"):
        load("text", [first, other])


@pytest.mark.parametrize(
    ("encoding", "suggested"), [("latin-1", "latin-1"), ("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-8-sig", None)]
)
def test_the_encoding_is_suggested_and_read(tmp_path, encoding, suggested):
    path = tmp_path / "a.csv"
    letter = "\u201c" if encoding == "cp1252" else "é"
    rows = [f"film {letter}{number},{number % 2}" for number in range(20)]
    path.write_bytes("\n".join(["text,label", *rows]).encode(encoding))
    if suggested is not None:
        assert f"give its encoding, perhaps --encoding {suggested}" in fails(path)
    task = load(path, encoding=encoding)
    assert letter in task.vocabulary.symbols
    assert task.settings["encoding"] == encoding


def test_a_wrong_encoding_is_named(tmp_path):
    path = write(tmp_path / "a.csv", rows=41)
    assert "not utf-16" in fails(path, encoding="utf-16")
    path.write_bytes(b"text,label\ncaf\xe9,1\n")
    assert f"{path}, line 2: not ascii (byte 0xe9 at position 3)" in fails(path, encoding="ascii")


@pytest.mark.parametrize(
    ("label", "classes"),
    [
        ("header:2", ("chr0", "chr1")),
        ("header:last", ("x|y_0", "x|y_1")),
        ("header:before:|", None),
        ("header:9", None),
        ("header:first", None),
        (r"_(\d)", ("0", "1")),
    ],
)
def test_labels_by_simple_words(tmp_path, label, classes):
    path = write_fasta(tmp_path / "a.fa")
    if classes is not None:
        task = load(path, label=label)
        assert task.classes == classes
        assert any("--label" in line for line in task.describe())
    elif label == "header:before:|":
        assert load(write_fasta(tmp_path / "b.fa", header=">{1}|x"), label=label).classes == ("0", "1")
    elif label == "header:9":
        assert "no label (--label header:9) in the header 'r0 chr0 x|y_0'" in fails(path, label=label)
    else:
        assert "write header:2 for the second word, header:last or header:before:|" in fails(path, label=label)


def test_a_file_for_each_class(tmp_path):
    files = [write_fasta(tmp_path / name) for name in ("fly.fa", "human.fa")]
    for options in ({}, {"label": "file"}):
        task = load(files, **options)
        assert (task.classes, len(task.train)) == (("fly", "human"), 32)
    assert "target: the name of the file, 2 classes (--label, --target value)" in task.describe()
    assert "--label file takes several files, one for each class" in fails(files[0], label="file")
    labeled = [write_fasta(tmp_path / f"l{n}.fa", header=">r{0} class={1}") for n in range(2)]
    assert load(labeled).classes == ("0", "1")


PROTEIN = "ACDEFGHIKLMNPQRSTVWY"


def test_the_alphabet_is_recognized(tmp_path):
    path = write_fasta(tmp_path / "a.faa", PROTEIN + PROTEIN.lower() + "*")
    task = load(path, label="header:2")
    assert (task.vocabulary, task.vocabulary.unit) == (AMINO_ACIDS, "character")
    assert "alphabet: proteins, 22 symbols (--alphabet)" in task.describe()
    assert not any("not in the vocabulary" in note for note in task.notes)
    assert "letters are not bases" in fails(path, label="header:2", alphabet="dna")
    draw = random.Random(0)
    for letters, vocabulary in (("acgtuN", BASES), (PROTEIN, AMINO_ACIDS), (PROTEIN.lower(), None), ("ACGT ", None)):
        table = tmp_path / "a.csv"
        rows = [f"{''.join(draw.choices(letters, k=40))}A,{n % 2}" for n in range(40)]
        table.write_text("\n".join(["text,label", *rows]))
        task = load(table)
        assert (task.vocabulary == vocabulary) == (vocabulary is not None), letters
        assert load(table, alphabet="text").vocabulary.cls is not None


def test_letters_that_an_alphabet_does_not_have(tmp_path):
    table = tmp_path / "a.csv"
    rows = [f"{'ACGU' * 8},{n % 2}" for n in range(120)]
    table.write_text("\n".join(["text,label", *rows, "ACGTX,1"]))
    task = load(table)
    assert task.settings["alphabet"] == "dna"
    assert "".join(task.vocabulary.symbols[number] for number in task.train[0].inputs[:4]) in ("ACGT", "ACGTN"[:4])
    assert "line 122: 'X' is not a letter of DNA" in fails(table, strict=True)


def test_what_is_cut_is_told_with_the_flag(tmp_path):
    path = tmp_path / "a.jsonl"
    lengths = [90 + number % 10 for number in range(300)] + [5000, 6000]
    path.write_text("".join(f'{{"text": "{"ab" * (n // 2)}", "label": {n % 2}}}\n' for n in lengths))
    task = load(path)
    assert task.length == 128
    assert task.describe()[-1] == (
        "length: 128, 99 % of the sequences are not longer; 2 of 302 sequences are cut, the longest has 6001 (--length)"
    )
    assert load(path, length=50).describe()[-1].startswith("length: 50, as given; 302 of 302")


def test_generated_tasks_infer_nothing():
    assert load("order", length=16, train=8, validation=2, test=2).describe() == []
