from __future__ import annotations

from paramixer.bench import training
from paramixer.bench.progress import silent


def test_the_share_is_of_the_real_loop():
    found = training.measure(training.TrainingBenchOptions(quick=True), silent)
    assert 0 < found["lowest"] <= found["busy"] <= 1
    assert found["length"] == 64
