from __future__ import annotations

import pytest

from benchmarks import scaling, step, targets
from benchmarks.targets import TARGETS, TargetsOptions
from paramixer.bench.comparison import IMPLEMENTATIONS
from paramixer.bench.limits import Limits
from paramixer.bench.status import ignore


def test_the_figures_are_those_of_the_plan():
    bounds = [(target.bound, target.unit, target.sense) for target in TARGETS]
    least = [bound for bound, unit, sense in bounds if (unit, sense) == ("x", "at least")]
    assert least == [18, 5, 5, 4, 1.8, 18, 2, 4, 3, 1.7, 3, 5, 1.5]
    assert [bound for bound, unit, sense in bounds if (unit, sense) == ("%", "at least")] == [55, 40, 60, 45, 30]
    assert [bound for bound, _, sense in bounds if sense == "at most"] == [20, 6, 1.5, 1.3, 1.3]


def test_what_was_not_measured_is_neither_reached_nor_missed():
    for target in TARGETS:
        assert target.read({}) is None
        assert target.read({"cases": {}, "presets": {}, "protocols": {"chord": {"why": "wrong"}}}) is None


def test_a_figure_is_reached_on_its_side_of_the_bound():
    times, share = TARGETS[0], TARGETS[15]
    assert times.is_reached(18.0)
    assert not times.is_reached(17.9)
    assert share.is_reached(20)
    assert not share.is_reached(20.1)


def test_lengths_are_a_quarter_on_average():
    result = targets.compare_lengths(targets.Case(batch=4, length=64, channels=4, hidden=4), 1, ignore)
    assert result["why"] is None
    assert sum(result["lengths"]) == 4 * 64 / 4
    assert result["faster"] > 0


def test_two_threads_are_compared_with_one_and_the_setting_is_left_alone():
    import torch

    before = torch.get_num_threads()
    result = targets.compare_threads(targets.Case(batch=1, length=64, channels=4, hidden=4), 1, ignore)
    assert result["faster"] > 0
    assert torch.get_num_threads() == before


def test_every_figure_reads_what_the_run_measures(monkeypatch):
    """With the slow parts replaced by their quick selves; compiling by plain rolls."""
    monkeypatch.setitem(IMPLEMENTATIONS, "compiled rolls", IMPLEMENTATIONS["rolls"])
    monkeypatch.setattr(targets.memory, "measure_peak", lambda job: {"before": 1, "peak": 2 * 10**9})
    measured = targets.measure(TargetsOptions(quick=True, threads=1), ignore)
    for target, result in zip(TARGETS, measured["figures"], strict=True):
        assert result["measured"] is not None, target.what
        assert result["reached"] is None
    assert Limits(**measured["limits"]).flops > 0
    assert set(measured["protocols"]) == set(scaling.LAWS)
    assert measured["presets"]["image"]["shares"].keys() == set(step.PARTS)


def test_the_figures_are_meant_for_two_threads():
    assert TargetsOptions().threads == 2
    with pytest.raises(ValueError, match="threads=0"):
        TargetsOptions(threads=0)
