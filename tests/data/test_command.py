"""``paramixer data list`` and ``paramixer data prepare`` as a user sees them."""

from __future__ import annotations

import json
import xml.etree.ElementTree

import numpy as np
import pytest

import paramixer as pm
from paramixer.cli import main
from paramixer.data.summary import _bins, summarise, warnings


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    lines = [f"{'good' if n % 5 else 'terrible'} {'film ' * n},{'pos' if n % 5 else 'neg'}" for n in range(60)]
    path.write_text("\n".join(["text,label", *lines]))
    return path


def test_the_list_shows_every_task_and_whether_it_is_here(capsys, reviews, monkeypatch, tmp_path):
    assert main(["data", "list"]) == 0
    text = capsys.readouterr().out
    for name in pm.data.definitions():
        assert name in text
    assert "generated" in text
    assert "prepared" not in text.split("Prepared data is kept")[0]
    assert main(["data", "prepare", "text", "--source", str(reviews)]) == 0
    reviews.rename(tmp_path / "documents.csv")
    monkeypatch.setenv("PARAMIXER_DATA", str(tmp_path))
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "prepared 1x" in text
    assert "found" in text


def test_prepare_says_what_there_is_before_training(capsys, reviews, tmp_path):
    picture = tmp_path / "lengths.svg"
    assert main(["data", "prepare", str(reviews), "--length", "64", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "N = 64" in text
    assert "2 classes, judged by accuracy" in text
    assert "are longer than 64 and are cut" in text
    assert "class 'neg' is rare in train" in text
    assert "N = 64" in picture.read_text()
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_preparing_twice_does_nothing_new(capsys, reviews, cache_folder):
    assert main(["data", "prepare", str(reviews)]) == 0
    before = {path: path.stat().st_mtime_ns for path in cache_folder.rglob("*.arrow")}
    assert len(before) == 3
    assert main(["data", "prepare", str(reviews)]) == 0
    assert {path: path.stat().st_mtime_ns for path in cache_folder.rglob("*.arrow")} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "there is no task and no file 'nowhere.csv'"),
        (["txet"], "did you mean 'text'"),
        (["text"], "needs a source"),
        (["adding", "--difficulty", "hard"], "takes no difficulty"),
        (["adding", "--length", "1"], "at least 2 positions"),
        (["adding", "--target", "colour"], "target"),
    ],
)
def test_mistakes_are_one_line_and_a_failure(arguments, message, capsys):
    assert main(["data", "prepare", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("paramixer: ")
    assert message in error
    assert error.count("\n") == 1


def test_generated_tasks_are_summarised_too(capsys):
    assert (
        main(["data", "prepare", "adding", "--length", "16", "--train", "50", "--validation", "9", "--test", "8"]) == 0
    )
    text = capsys.readouterr().out
    assert "2 numbers a position, a value, judged by error" in text
    task = pm.data.load("adding", length=16, train=50, validation=9, test=8)
    found = summarise(task)
    assert [split.sequences for split in found.values()] == [50, 9, 8]
    assert found["train"].spread is not None
    assert found["train"].cut == found["train"].padded == 0
    assert warnings(task) == []


def test_prepared_facts_are_json_that_anyone_can_read(reviews, cache_folder):
    task = pm.data.load(str(reviews), length=64)
    (info,) = cache_folder.glob("own-*/facts.json")
    document = json.loads(info.read_text())
    assert document["fingerprint"] == task.fingerprint
    assert document["classes"] == ["neg", "pos"]
    assert document["vocabulary"]["symbols"][:3] == ["<pad>", "<unknown>", "<cls>"]


def test_a_histogram_begins_at_the_shortest_sequence():
    assert _bins(np.array([900, 1000]))[0] == 900
    assert _bins(np.array([7, 7]))[[0, -1]].tolist() == [7, 8]
    assert _bins(np.array([3, 40_000]))[0] == pytest.approx(3)
