from __future__ import annotations

import pytest
from torch.utils.flop_counter import FlopCounterMode

from paramixer.bench import cost, memory
from paramixer.bench.case import Case
from paramixer.bench.limits import DEFAULT, Limits
from paramixer.bench.ways import WAYS
from paramixer.machine import serving_engine

CASES = [
    Case(batch=3, length=33, channels=5, inputs=6, hidden=7),
    Case(batch=1, length=64, protocol="cdil", links=9, channels=8, hidden=16, factors=2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_flops_are_those_that_torch_counts(case):
    """The gather is all products, so torch's own counter sees every one of them."""
    tensors, run = case.tensors(), WAYS["gather"].prepare(case)
    with FlopCounterMode(display=False) as counter:
        output = run(*tensors)
    forward = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        output.backward(case.upstream())
    assert cost.forward_operations(case).products == forward
    assert cost.backward_operations(case).products == counter.get_total_flops() == 2 * forward


def test_operations_of_a_case_small_enough_to_count_by_hand():
    """Two factors of one token pair: 2 x (2x3 + 3x2 + 2x2) FLOPs a token and factor."""
    case = Case(batch=1, length=2, channels=2, hidden=3, links=2, factors=2)
    found = cost.forward_operations(case)
    assert found.products == 2 * 2 * 2 * (2 * 3 + 3 * 2 + 2 * 2)
    assert found.gelus == 2 * 2 * 3
    assert found.additions == 2 * 2 * (3 + 2 + 2)
    assert found.recomputed == 0
    # The hidden layer and the weights of both factors; with keep = 2 the first factor as well.
    assert cost.backward_operations(case, keep=1).recomputed == 2 * 2 * 2 * (2 * 3 + 3 * 2)
    extra = cost.backward_operations(case, keep=2).recomputed - cost.backward_operations(case, keep=1).recomputed
    assert extra == found.products // 2


@pytest.mark.parametrize("engine", cost.ENGINES)
def test_a_larger_keep_saves_memory_and_costs_time(engine):
    case = Case(length=4096)
    kept, saved = (cost.training_memory(case, engine, keep) for keep in (1, 4))
    assert saved < kept
    fast, slow = (cost.backward_seconds(case, engine, DEFAULT, keep) for keep in (1, 4))
    assert fast < slow
    assert cost.forward_memory(case, engine) < saved


@pytest.mark.parametrize("engine", cost.ENGINES)
def test_a_faster_machine_is_predicted_to_take_less(engine):
    twice = Limits(2 * DEFAULT.flops, 2 * DEFAULT.bandwidth)
    case = Case()
    assert cost.forward_seconds(case, engine, twice) == pytest.approx(cost.forward_seconds(case, engine, DEFAULT) / 2)


def test_keep_is_the_smallest_that_fits():
    case = Case(length=4096)
    needed = {keep: cost.training_memory(case, "cpu", keep) for keep in (1, 2, 3)}
    assert cost.choose_keep(case, "cpu", needed[1]) == 1
    assert cost.choose_keep(case, "cpu", needed[1] - 1) == 2
    assert cost.choose_keep(case, "cpu", needed[3]) == 3
    with pytest.raises(ValueError, match="needs .* GB even with keep = .*smaller batch"):
        cost.choose_keep(case, "cpu", 1)


def test_an_engine_without_a_model_is_refused():
    with pytest.raises(ValueError, match="no cost model for engine 'triton'; choose from cpu, reference"):
        cost.forward_memory(Case(), "triton")


def test_a_job_that_fails_in_its_process_says_why(monkeypatch):
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(ChildProcessError, match="forward of 2 x 64.*failed in its process: exit code 1"):
        memory.peak(memory.Job(what="forward", case=Case(length=64)))


# Tensors so large that the allocator gives them back as soon as they are freed.
LARGE = Case(batch=1, length=2**18, protocol="cdil", links=3, factors=6)
WIDE = Case(batch=1, length=2**17, channels=80, hidden=96, factors=3, links=5)


@pytest.mark.slow
@pytest.mark.parametrize("case", [LARGE, WIDE], ids=str)
@pytest.mark.parametrize(("what", "keep"), [("forward", 1), ("training", 1), ("training", 3)])
def test_predicted_memory_is_within_half_of_the_measured(case, what, keep):
    found = memory.peak(memory.Job(what=what, case=case, keep=keep))
    measured = found["peak"] - found["before"]
    engine = serving_engine()
    predicted = cost.forward_memory(case, engine) if what == "forward" else cost.training_memory(case, engine, keep)
    assert predicted / 1.5 < measured < predicted * 1.5
