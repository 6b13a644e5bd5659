from __future__ import annotations

import pytest

from benchmarks.settings import Settings


def test_settings_that_measure_nothing_are_refused():
    with pytest.raises(ValueError, match="rounds=0"):
        Settings(rounds=0)
    with pytest.raises(ValueError, match="threads=0"):
        Settings(threads=0)
    assert Settings(quick=True).turns == 1
