from __future__ import annotations

import pytest

from benchmarks import memory
from paramixer.bench import cost
from paramixer.bench.case import Case
from paramixer.machine import serving_backend


def test_a_job_that_fails_in_its_process_says_why(monkeypatch):
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(ChildProcessError, match="forward of 2 x 64.*failed in its process: exit code 1"):
        memory.measure_peak(memory.Job(what="forward", case=Case(length=64)))


# Tensors so large that the allocator gives them back as soon as they are freed.
LARGE = Case(batch=1, length=2**18, protocol="cdil", links=3, factors=6)
WIDE = Case(batch=1, length=2**17, channels=80, hidden=96, factors=3, links=5)


@pytest.mark.slow
@pytest.mark.parametrize("case", [LARGE, WIDE], ids=str)
@pytest.mark.parametrize(("what", "every"), [("forward", 1), ("training", 1), ("training", 3)])
def test_predicted_memory_is_within_half_of_the_measured(case, what, every):
    peaks = memory.measure_peak(memory.Job(what=what, case=case, checkpoint_every=every))
    measured = peaks["peak"] - peaks["before"]
    backend = serving_backend()
    predicted = cost.forward_memory(case, backend) if what == "forward" else cost.training_memory(case, backend, every)
    assert predicted / 1.5 < measured < predicted * 1.5
