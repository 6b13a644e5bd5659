from __future__ import annotations

from benchmarks import training
from paramixer.bench.status import ignore


def test_the_share_is_of_the_real_loop():
    shares = training.measure(training.LoopOptions(quick=True), ignore)
    assert 0 < shares["lowest"] <= shares["busy"] <= 1
    assert shares["length"] == 64
