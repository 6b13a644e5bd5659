from __future__ import annotations

import pytest

from paramixer.bench import figures, limits, scaling, step
from paramixer.bench.figures import FIGURES, FiguresOptions
from paramixer.bench.progress import silent


def test_the_figures_are_those_of_the_plan():
    bounds = [(figure.bound, figure.unit, figure.sense) for figure in FIGURES]
    least = [bound for bound, unit, sense in bounds if (unit, sense) == ("x", "at least")]
    assert least == [18, 5, 5, 4, 1.8, 18, 2, 4, 3, 1.7, 3]
    assert [bound for bound, unit, sense in bounds if (unit, sense) == ("%", "at least")] == [55, 40, 60, 45]
    assert [bound for bound, _, sense in bounds if sense == "at most"] == [20, 6, 1.5, 1.3, 1.3]


def test_what_was_not_measured_is_neither_reached_nor_missed():
    for figure in FIGURES:
        assert figure.read({}) is None
        assert figure.read({"cases": {}, "presets": {}, "protocols": {"chord": {"why": "wrong"}}}) is None


def test_a_figure_is_reached_on_its_side_of_the_bound():
    times, share = FIGURES[0], FIGURES[15]
    assert times.reached(18.0)
    assert not times.reached(17.9)
    assert share.reached(20)
    assert not share.reached(20.1)


def test_lengths_are_a_quarter_on_average():
    found = figures.given_lengths(figures.Case(batch=4, length=64, channels=4, hidden=4), 1, silent)
    assert found["why"] is None
    assert sum(found["lengths"]) == 4 * 64 / 4
    assert found["faster"] > 0


def test_two_threads_are_compared_with_one_and_the_setting_is_left_alone():
    import torch

    before = torch.get_num_threads()
    found = figures.two_threads(figures.Case(batch=1, length=64, channels=4, hidden=4), 1, silent)
    assert found["faster"] > 0
    assert torch.get_num_threads() == before


def test_every_figure_reads_what_the_run_measures(monkeypatch):
    """With the slow parts replaced by their quick selves; compiling by plain rolls."""
    plain = figures.block.WAYS["rolls"]
    monkeypatch.setitem(figures.block.WAYS, "compiled rolls", plain)
    monkeypatch.setattr(figures.memory, "peak", lambda job: {"before": 1, "peak": 2 * 10**9})
    measured = figures.measure(FiguresOptions(quick=True, threads=1), silent)
    for figure, found in zip(FIGURES, measured["figures"], strict=True):
        assert found["measured"] is not None, figure.what
        assert found["reached"] is None
    assert limits.Limits(**measured["limits"]).flops > 0
    assert set(measured["protocols"]) == set(scaling.LAWS)
    assert measured["presets"]["image"]["shares"].keys() == set(step.PARTS)


def test_the_figures_are_meant_for_two_threads():
    assert FiguresOptions().threads == 2
    with pytest.raises(ValueError, match="threads=0"):
        FiguresOptions(threads=0)
