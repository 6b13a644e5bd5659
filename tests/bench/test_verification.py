from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from paramixer.bench import comparison, rendering
from paramixer.bench.case import Case
from paramixer.bench.implementations import IMPLEMENTATIONS, PARAMIXER, Implementation, build_rolls
from paramixer.bench.limits import Limits

CASE = Case(batch=1, length=16, channels=4, hidden=4)


def compare(*names: str) -> dict[str, Any]:
    return comparison.compare_implementations(CASE, names, limits=Limits(1e11, 1e10), rounds=1)


def too_few_factors(case):
    return build_rolls(dataclasses.replace(case, factors=1))


def wrong_gradient(case):
    right = build_rolls(case)
    return lambda inputs, values, *rest: right(inputs.detach(), values, *rest)


def not_a_number(case):
    right = build_rolls(case)
    return lambda *tensors: torch.where(torch.arange(case.channels) == 0, torch.nan, right(*tensors))


def failing(case):
    raise RuntimeError("no compiler\nhere")


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (too_few_factors, "wrong: its"),
        (wrong_gradient, "wrong: its gradient of inputs"),
        (not_a_number, "wrong: its output"),
        (failing, "failed: no compiler"),
    ],
)
def test_an_implementation_that_is_wrong_gets_no_speed_and_the_table_says_so(monkeypatch, build, why):
    monkeypatch.setitem(IMPLEMENTATIONS, "rolls", Implementation(build, "a broken implementation"))
    result = compare("rolls", "gather")
    broken, sound = result["ways"]["rolls"], result["ways"]["gather"]
    assert broken["why"].startswith(why)
    assert "forward" not in broken
    assert "both" not in broken
    assert sound["why"] is None
    assert sound["both"]["seconds"] > 0
    table = rendering.comparison_table(result)
    (row,) = [row for row in table.rows if "a broken implementation" in row[0]]
    assert why in row[0]
    assert row[1:] == [""] * 6


def test_a_wrong_backend_leaves_nothing_to_compare_with(monkeypatch):
    monkeypatch.setitem(
        IMPLEMENTATIONS,
        PARAMIXER,
        Implementation(wrong_gradient, "a broken backend"),
    )
    result = compare("rolls")
    assert result["ways"][PARAMIXER]["why"]
    assert result["ways"]["rolls"]["both"]["times_engine"] is None


def test_another_function_is_timed_without_a_share_of_the_useful_work():
    result = compare("softmax")
    assert result["ways"]["softmax"]["both"]["times_engine"] > 0
    assert result["ways"]["softmax"]["both"]["share_of_peak"] is None
    assert result["ways"][PARAMIXER]["both"]["share_of_peak"] > 0
