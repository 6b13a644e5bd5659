from __future__ import annotations

import pytest
import torch

from paramixer import machine
from paramixer.bench import limits
from paramixer.bench.case import Case
from paramixer.bench.progress import silent
from paramixer.bench.settings import Settings, threads
from paramixer.bench.timing import Timing, inference, interleaved, training
from paramixer.bench.ways import rolls


def test_ratios_are_taken_within_a_round():
    """A machine that is three times slower in one round changes no ratio."""
    fast, slow = Timing((1.0, 3.0, 1.0)), Timing((5.0, 15.0, 5.0))
    assert slow.times(fast) == 5
    assert fast.seconds == 1
    assert fast.document() == {"seconds": 1.0, "rounds": [1.0, 3.0, 1.0]}


def test_runs_warm_up_once_and_then_take_turns_there_and_back():
    order: list[str] = []
    runs = {name: (lambda name=name: order.append(name)) for name in "ab"}
    found = interleaved(runs, 3, silent, turn=0)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert all(len(timing.rounds) == 3 for timing in found.values())


def test_a_fast_run_is_repeated_for_its_turn():
    calls: list[int] = []
    interleaved({"fast": lambda: calls.append(1)}, 2, silent, turn=0.01)
    assert len(calls) > 10
    calls.clear()
    interleaved({"fast": lambda: calls.append(1)}, 1, silent, turn=0.01)
    assert len(calls) == 2


def test_inference_makes_no_graph_and_training_fills_every_gradient():
    case = Case(batch=1, length=8, channels=2, hidden=2)
    tensors = case.tensors()
    inference(rolls(case), tensors)()
    assert all(tensor.grad is None for tensor in tensors)
    step = training(rolls(case), tensors, case.upstream())
    step()
    first = [tensor.grad.clone() for tensor in tensors]
    step()
    assert all(torch.equal(tensor.grad, gradient) for tensor, gradient in zip(tensors, first, strict=True))


def test_threads_hold_within_the_block_only():
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
        assert machine.machine()["threads"] == 1
    assert torch.get_num_threads() == before


def test_settings_that_measure_nothing_are_refused():
    with pytest.raises(ValueError, match="rounds=0"):
        Settings(rounds=0)
    with pytest.raises(ValueError, match="threads=0"):
        Settings(threads=0)
    assert Settings(quick=True).turns == 1


def test_limits_are_positive():
    found = limits.measure(silent, quick=True)
    assert found.flops > 0
    assert found.bandwidth > 0
