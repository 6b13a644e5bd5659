from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch):
    """A cache of one's own: tests neither find nor leave prepared data."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PARAMIXER_CACHE", str(folder))
    return folder
