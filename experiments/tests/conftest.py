"""Every test in a folder of its own, with its own cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
