from __future__ import annotations

import torch

from paramixer import machine
from paramixer.bench.case import Case
from paramixer.bench.implementations import build_rolls
from paramixer.bench.limits import measure_limits
from paramixer.bench.status import ignore
from paramixer.bench.timing import Timing, make_forward, make_forward_backward, time_in_turns, use_threads


def test_ratios_are_taken_within_a_round():
    """A machine that is three times slower in one round changes no ratio."""
    fast, slow = Timing((1.0, 3.0, 1.0)), Timing((5.0, 15.0, 5.0))
    assert slow.ratio_to(fast) == 5
    assert fast.seconds == 1
    assert fast.document() == {"seconds": 1.0, "rounds": [1.0, 3.0, 1.0]}


def test_runs_warm_up_once_and_then_take_turns_there_and_back():
    order: list[str] = []
    runs = {name: (lambda name=name: order.append(name)) for name in "ab"}
    timings = time_in_turns(runs, 3, ignore, turn=0)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert all(len(timing.rounds) == 3 for timing in timings.values())


def test_a_fast_run_is_repeated_for_its_turn():
    calls: list[int] = []
    time_in_turns({"fast": lambda: calls.append(1)}, 2, ignore, turn=0.01)
    assert len(calls) > 10
    calls.clear()
    time_in_turns({"fast": lambda: calls.append(1)}, 1, ignore, turn=0.01)
    assert len(calls) == 2


def test_forward_makes_no_graph_and_backward_fills_every_gradient():
    case = Case(batch=1, length=8, channels=2, hidden=2)
    tensors = case.tensors()
    make_forward(build_rolls(case), tensors)()
    assert all(tensor.grad is None for tensor in tensors)
    step = make_forward_backward(build_rolls(case), tensors, case.upstream())
    step()
    first = [tensor.grad.clone() for tensor in tensors]
    step()
    assert all(torch.equal(tensor.grad, gradient) for tensor, gradient in zip(tensors, first, strict=True))


def test_threads_hold_within_the_block_only():
    before = torch.get_num_threads()
    with use_threads(1):
        assert torch.get_num_threads() == 1
        assert machine.describe_machine()["threads"] == 1
    assert torch.get_num_threads() == before


def test_limits_are_positive():
    limits = measure_limits(ignore, quick=True)
    assert limits.flops > 0
    assert limits.bandwidth > 0
