"""The walkthroughs in examples/ run at a toy scale, by the commands that were recorded at full scale."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ("movie_reviews", "imdb_reviews", "arxiv_documents", "genome_windows", "espeak_voices")


@pytest.fixture
def load(monkeypatch):
    """Import a script of examples/ as it finds its neighbors when it is run."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return importlib.import_module


def read_commands(document):
    lines = [step["command"] for step in document["steps"] if "command" in step]
    return [re.sub(r"--minutes \S+", "--minutes 5", line) for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_walkthrough_runs_at_a_toy_scale_by_the_commands_that_were_recorded(script, load, tmp_path, monkeypatch):
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        walk = load(script).main(["--quick", "--folder", str(tmp_path / "folder")])
    except load("walkthrough").DataMissingError as error:
        pytest.skip(str(error))
    document = json.loads(json.dumps(walk.document()))
    for run in document["runs"]:
        assert 0 <= run["test"] <= 1
        assert run["baseline"]["name"]
        assert sum(run["sizes"].values()) >= 20
    record = ROOT / "results" / "walkthroughs" / f"{script}.json"
    if record.exists():
        recorded = json.loads(record.read_text())
        assert read_commands(document) == read_commands(recorded)
        assert [run["title"] for run in document["runs"]] == [run["title"] for run in recorded["runs"]]


def test_what_was_not_run_is_empty(load, tmp_path):
    page = load("record").make_page(tmp_path)
    assert "| Movie reviews | | | | | | |" in page
    assert "$ paramixer" not in page


def test_what_has_a_record_is_not_run_again(load, tmp_path, monkeypatch, capsys):
    record = load("record")
    monkeypatch.setattr(record, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(record, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(record, "make_page", str)
    ran = []
    monkeypatch.setattr(record, "record", lambda script, path: ran.append(script))
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "imdb_reviews.json").write_text("{}")
    record.main(["imdb_reviews", "movie_reviews"])
    assert ran == ["movie_reviews"]
    assert "imdb_reviews.json is there already" in capsys.readouterr().out


def test_missing_data_is_named(load, tmp_path, monkeypatch):
    monkeypatch.setenv("PARAMIXER_DATA", str(tmp_path))
    script = load("movie_reviews")
    with pytest.raises(SystemExit, match=r"skipped: there is no movie_reviews/movie_reviews.zip in .*PARAMIXER_DATA"):
        load("walkthrough").main(script.main)


def test_a_command_that_fails_ends_the_walkthrough(load, tmp_path):
    walk = load("walkthrough").Walkthrough("some", quick=True, folder=tmp_path / "folder")
    assert walk.run("echo one && echo two") == ["one", "two"]
    with pytest.raises(SystemExit, match="failed with code 3"):
        walk.run("exit 3")


def test_long_series_of_progress_are_thinned(load):
    lines = [f"epoch 1, step {step}: training loss 1" for step in range(20)]
    thinned = list(load("record").thin(["first", *lines, "last"]))
    assert thinned == ["first", *lines[:3], "... (14 lines)", *lines[-3:], "last"]
    assert list(load("record").thin(lines[:7])) == lines[:7]
