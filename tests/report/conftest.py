from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from paramixer.report.explanation import explain_sequence
from paramixer.report.run_report import build_report
from report.runs import train_run

GetRun = Callable[[str], Path]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> GetRun:
    """A function from a kind of run to its folder; each is trained once per session and must not be changed."""
    return cache(lambda kind: train_run(tmp_path_factory.mktemp(kind), kind))


@pytest.fixture(scope="session")
def page(run: GetRun) -> Callable[[str], str]:
    """A function from a kind of run to its page; each is built once per session."""
    return cache(lambda kind: build_report([run(kind)]))


@pytest.fixture(scope="session")
def explanation(run: GetRun) -> Callable[[str], tuple[bytes, str]]:
    """A function from a kind of run to figure and page of test sequence 2; each is drawn once per session."""
    return cache(lambda kind: explain_sequence(run(kind), index=2))
