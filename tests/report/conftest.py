from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from report import runs

MakeRun = Callable[[str], Path]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """A run by its name, made once."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = runs.train(tmp_path_factory.mktemp(name), name)
        return made[name]

    return make
