"""docs/results.md is what the records make."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments import figures, records
from experiments.page import compose as page
from experiments.tests.small import list_times, make_cell, sweep_cells

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_records_make(tmp_path):
    text = (ROOT / "docs" / "results.md").read_text()
    assert page.make_page(ROOT / "results", tmp_path) == text
    pictures = re.findall(r"]\((results/[^)]*)\)", text)
    assert len(pictures) >= 5
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)
    for path in tmp_path.iterdir():
        assert path.read_text() == (ROOT / "docs" / "results" / path.name).read_text()


@pytest.mark.parametrize(("file", "draw"), figures.DRAWINGS.values(), ids=figures.DRAWINGS)
def test_pictures_of_the_docs_are_what_is_drawn(file, draw, tmp_path):
    draw(tmp_path / file)
    assert (tmp_path / file).read_bytes() == (ROOT / "docs" / "figures" / file).read_bytes()


def test_every_picture_of_the_docs_is_drawn():
    assert sorted(path.name for path in (ROOT / "docs" / "figures").iterdir()) == sorted(
        file for file, _ in figures.DRAWINGS.values()
    )


def test_notes_and_earlier_runs_are_on_the_page(tmp_path):
    sweep_cells(make_cell())
    (path,) = list_times()
    earlier = Path("results", records.SUPERSEDED, "x", path.name)
    earlier.parent.mkdir(parents=True)
    path.rename(earlier)
    # A recipe that changed twice without its settings leaves two runs of one key.
    again = json.loads(earlier.read_text())
    again["record"]["steps"] = 77777
    earlier.with_name("before.json").write_text(json.dumps(again))
    Path("results/notes.md").write_text("What readers should know.\n")
    text = page.make_page(Path("results"), tmp_path)
    assert "What readers should know." in text
    assert "Runs by earlier recipes" in text
    assert text.count(f"| {again['row']} | {again['column']} |") == 2
    assert "| 77777 |" in text
    assert "Synthetic tasks" not in text
