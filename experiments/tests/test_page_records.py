"""Pages that show the output of a run: its record is under results/, and says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "results" / "pages").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_verdict_of_a_page_is_that_of_its_record(path):
    document = json.loads(path.read_text())
    text = (ROOT / "docs" / f"{document['page']}.md").read_text()
    assert document["record"]["verdict"] in text


def test_every_verdict_of_tutorial_and_guides_has_a_record():
    known = [json.loads(path.read_text())["record"]["verdict"].splitlines()[0] for path in RECORDS]
    for page in ("tutorial", "index", "training", "guides/dna", "guides/images", "guides/tables", "guides/time-series"):
        lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
        verdicts = [line for line in lines if line.startswith(("test accuracy ", "test mse "))]
        assert verdicts, page
        assert set(verdicts) <= set(known), page
