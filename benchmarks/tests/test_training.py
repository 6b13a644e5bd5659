from __future__ import annotations

from benchmarks import training
from paramixer.bench.progress import ignore


def test_the_share_is_of_the_real_loop():
    found = training.measure(training.LoopOptions(quick=True), ignore)
    assert 0 < found["lowest"] <= found["busy"] <= 1
    assert found["length"] == 64
