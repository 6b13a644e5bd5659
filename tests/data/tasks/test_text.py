"""Text and documents: folders, archives and tables give the same task; what is wrong is named."""

from __future__ import annotations

import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import paramixer as pm
from paramixer.data import DataError, registry

REVIEWS = {
    "train": {"neg": [f"bad film {n}" for n in range(12)], "pos": [f"good film {n} é" for n in range(12)]},
    "test": {"neg": ["bad €film", "worst"], "pos": ["good", "best"]},
}


@pytest.fixture
def folder(tmp_path):
    """IMDB's own layout, with the files beside the reviews that are not reviews."""
    root = tmp_path / "aclImdb"
    for split, classes in REVIEWS.items():
        for label, texts in classes.items():
            (root / split / label).mkdir(parents=True)
            for number, text in enumerate(texts):
                (root / split / label / f"{number}_7.txt").write_text(text, encoding="utf-8")
        (root / split / "urls_pos.txt").write_text("an address\n")
    (root / "train" / "unsup").mkdir()
    (root / "train" / "unsup" / "0_0.txt").write_text("no label")
    (root / "README").write_text("read me")
    return root


def as_table(path):
    rows = [(s, label, text) for s, classes in REVIEWS.items() for label, texts in classes.items() for text in texts]
    columns = {
        name: list(column) for name, column in zip(("split", "label", "text"), zip(*rows, strict=True), strict=True)
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_a_review_is_read_character_by_character_behind_cls(folder):
    task = pm.data.load("text", source=folder, length=8)
    assert task.classes == ("neg", "pos")
    assert task.vocabulary is not None
    assert list(task.vocabulary.symbols[3:]) == sorted(task.vocabulary.symbols[3:])
    assert [len(split) for split in task.splits.values()] == [22, 2, 4]
    inputs, target = task.test[0]
    symbols = task.vocabulary.symbols
    assert [symbols[token] for token in inputs.tolist()] == ["<cls>", *"bad ", "<unknown>", *"fi"]
    assert target.item() == 0
    assert task.test.full_lengths.tolist() == [10, 6, 5, 5]
    assert task.test.lengths.tolist() == [8, 6, 5, 5]
    assert task.test.id(0) == "0_7"


def test_folder_archives_and_table_are_one_task(folder, tmp_path):
    with tarfile.open(tmp_path / "reviews.tar.gz", "w:gz") as packed:
        packed.add(folder, "aclImdb")
    with zipfile.ZipFile(tmp_path / "reviews.zip", "w") as zipped:
        for file in sorted(folder.rglob("*.txt")):
            zipped.write(file, file.relative_to(folder.parent))
    sources = folder, tmp_path / "reviews.tar.gz", tmp_path / "reviews.zip", as_table(tmp_path / "reviews.parquet")
    tasks = [pm.data.load("text", source=source, length=20) for source in sources]
    for task in tasks:
        assert task.vocabulary == tasks[0].vocabulary
        found = sorted((tuple(item.inputs.tolist()), item.target.item()) for item in task.test)
        assert found == sorted((tuple(item.inputs.tolist()), item.target.item()) for item in tasks[0].test)


def test_validation_comes_from_train_and_test_is_untouched(folder):
    tasks = [pm.data.load("text", source=folder, length=20, seed=seed, validation=0.25) for seed in (0, 1)]
    validations = []
    for task in tasks:
        assert len(task.validation) == 6
        assert len(task.train) == 18
        assert len(task.test) == 4
        validations.append(sorted(tuple(item.inputs.tolist()) for item in task.validation))
    assert validations[0] != validations[1]


def test_duplicates_across_splits_are_reported(folder):
    (folder / "test" / "pos" / "0_7.txt").write_text("good film 3 é", encoding="utf-8")
    task = pm.data.load("text", source=folder)
    assert "1 of the 4 test sequences also stand in train or validation" in task.notes


def test_documents_without_splits_are_cut_70_20_10(tmp_path):
    for label in ("cs.AI", "math.GR"):
        (tmp_path / "papers" / label).mkdir(parents=True)
        for number in range(50):
            (tmp_path / "papers" / label / f"{number}.txt").write_text(f"a paper on {label}, number {number}")
    task = pm.data.load("documents", source=tmp_path / "papers")
    assert [len(split) for split in task.splits.values()] == [70, 20, 10]
    assert task.preset == "documents-16k"
    assert pm.data.load("documents", source=tmp_path / "papers", length=32768).preset == "documents-32k"


def test_what_is_wrong_is_named(folder, tmp_path):
    (folder / "train" / "pos" / "3_7.txt").write_bytes(b"caf\xe9")
    with pytest.raises(
        DataError,
        match=r"train/pos/3_7.txt: not UTF-8 .* perhaps --encoding latin-1",
    ):
        pm.data.load("text", source=folder)
    assert len(pm.data.load("text", source=folder, encoding="latin-1").train) == 22
    (folder / "train" / "pos" / "3_7.txt").write_bytes(b"")
    with pytest.raises(DataError, match=r"3_7.txt: a sequence of length 0"):
        pm.data.load("text", source=folder)
    (folder / "train" / "pos" / "3_7.txt").write_text("fine")
    (folder / "test" / "mixed").mkdir()
    (folder / "test" / "mixed" / "0_5.txt").write_text("so so")
    with pytest.raises(DataError, match=r"mixed/0_5.txt: label 'mixed' is only in test"):
        pm.data.load("text", source=folder)
    with pytest.raises(DataError, match="no such file or folder"):
        pm.data.load("text", source=tmp_path / "nothing")
    with pytest.raises(DataError, match="'text' needs a source.*aclImdb"):
        pm.data.load("text")
    with pytest.raises(DataError, match="takes no difficulty; it takes source, length, seed"):
        pm.data.load("text", source=folder, difficulty="hard")
    with pytest.raises(DataError, match="did you mean 'text'"):
        pm.data.load("txet")


def test_data_at_hand_is_found_by_the_tasks_name(folder, monkeypatch):
    folder.rename(folder.parent / "text")
    monkeypatch.setenv("PARAMIXER_DATA", str(folder.parent))
    assert len(pm.data.load("text", length=9).test) == 4


def test_a_folder_around_a_single_file_stands_for_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PARAMIXER_DATA", str(tmp_path))
    (tmp_path / "documents").mkdir()
    assert registry.find_local("documents") == tmp_path / "documents"
    (tmp_path / "documents" / "papers.parquet").touch()
    assert registry.find_local("documents") == tmp_path / "documents" / "papers.parquet"
    (tmp_path / "documents" / "more.parquet").touch()
    assert registry.find_local("documents") == tmp_path / "documents"


@pytest.mark.slow
def test_the_real_reviews(shared_data):
    task = pm.data.load("text", source=shared_data / "imdb" / "imdb50k.parquet")
    assert [len(split) for split in task.splits.values()] == [22_500, 2_500, 25_000]
    assert "123 of the 25000 test sequences also stand in train or validation" in task.notes
    assert task.vocabulary is not None
    inputs, target = task.train[11]
    assert inputs.dtype == torch.int64
    assert inputs[0] == task.vocabulary.cls
    assert len(inputs) <= 4096
    assert target.item() in (0, 1)


@pytest.mark.slow
def test_the_real_papers(shared_data):
    source = shared_data / "documents" / "arxiv_papers_3x1000_32k.parquet"
    task = pm.data.load("documents", source=source, length=32768)
    assert [len(split) for split in task.splits.values()] == [2085, 300, 600]
    assert task.classes == ("cs.AI", "cs.CL", "cs.LG")
