"""docs/walkthroughs.md is what the records of the walkthroughs make."""

from __future__ import annotations

import importlib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_records_make(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    record = importlib.import_module("record")
    assert record.make_page(record.RECORDS) == (ROOT / "docs" / "walkthroughs.md").read_text()
    assert {path.stem for path in record.RECORDS.iterdir()} <= set(record.SCRIPTS)
