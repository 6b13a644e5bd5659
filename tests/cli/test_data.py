"""``paramixer data list`` and ``paramixer data prepare`` as a user sees them."""

from __future__ import annotations

import xml.etree.ElementTree
from pathlib import Path

import pytest

import paramixer as pm
from paramixer.cli import main


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARAMIXER_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def reviews(tmp_path) -> Path:
    path = tmp_path / "reviews.csv"
    lines = [f"{'good' if n % 5 else 'terrible'} {'film ' * n},{'pos' if n % 5 else 'neg'}" for n in range(60)]
    path.write_text("\n".join(["text,label", *lines]))
    return path


def test_the_list_shows_every_task_and_whether_it_is_available(capsys, reviews, monkeypatch, tmp_path):
    assert main(["data", "list"]) == 0
    text = capsys.readouterr().out
    for name in pm.data.definitions():
        assert f" {name} " in text
    assert "generated" in text
    assert "prepared" not in text.split("Prepared data is in")[0]
    assert main(["data", "prepare", "text", "--source", str(reviews)]) == 0
    reviews.rename(tmp_path / "documents.csv")
    monkeypatch.setenv("PARAMIXER_DATA", str(tmp_path))
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "prepared 1x" in text
    assert f"found for documents: {tmp_path / 'documents.csv'}" in text


def test_tables_fit_into_80_columns(capsys, reviews):
    assert main(["data", "list"]) == 0
    tables = capsys.readouterr().out
    assert "available" in tables
    assert main(["data", "prepare", str(reviews), "--length", "64"]) == 0
    tables += capsys.readouterr().out
    # Paths are not broken, so that they can be copied.
    lines = [line for line in tables.splitlines() if "/" not in line]
    assert max(map(len, lines)) <= 80


def test_what_was_inferred_is_printed_once_with_the_flags_that_change_it(capsys, reviews):
    assert main(["data", "prepare", str(reviews)]) == 0
    text = capsys.readouterr().out
    assert "input: column 'text' (--text)\ntarget: column 'label', 2 classes (--label, --target value)" in text
    assert "was taken for" not in text


def test_prepare_says_what_there_is_before_training(capsys, reviews, tmp_path):
    picture = tmp_path / "lengths.svg"
    assert main(["data", "prepare", str(reviews), "--length", "64", "--picture", str(picture)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("kind: csv input: column 'text' (--text) target: column 'label', 2 classes")
    assert "length: 64, as given" in text
    assert "are longer than 64 and are cut" in text
    assert "class 'neg' is rare in train" in text
    assert "N = 64" in picture.read_text()
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_generated_tasks_are_summarized_too(capsys):
    words = "data prepare adding --length 16 --train 50 --validation 9 --test 8"
    assert main(words.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 numbers per position, a value, metric error" in text
    assert "train 50 16 16 16 0 0" in text
    assert "validation 9 16 16 16 0 0" in text


def test_preparing_twice_does_nothing_new(reviews, cache_folder):
    assert main(["data", "prepare", str(reviews)]) == 0
    before = {path: path.stat().st_mtime_ns for path in cache_folder.rglob("*.arrow")}
    assert len(before) == 3
    assert main(["data", "prepare", str(reviews)]) == 0
    assert {path: path.stat().st_mtime_ns for path in cache_folder.rglob("*.arrow")} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere.csv", "there is no task and no file 'nowhere.csv'"),
        ("txet", "did you mean 'text'"),
        ("text", "needs a source"),
        ("adding --difficulty hard", "takes no difficulty"),
        ("adding --length 1", "length=1; it must be a whole number of at least 2"),
        ("adding --target colour", "--target"),
        ("adding --validation -1", "validation=-1"),
        ("adding --train 0", "train=0"),
    ],
)
def test_mistakes_are_one_line_and_a_failure(words, message, capsys):
    assert main(["data", "prepare", *words.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("paramixer: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_size_of_images_is_no_hexadecimal_number(reviews, capsys):
    assert main(["data", "prepare", str(reviews), "--image-size", "0x3"]) == 2
    assert "image_size=0x3; write one number of pixels, 32, or width and height, 32x24" in capsys.readouterr().err
