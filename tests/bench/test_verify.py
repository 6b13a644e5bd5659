from __future__ import annotations

import dataclasses

import pytest
import torch

from bench import samples
from paramixer.bench import block, tables, ways
from paramixer.bench.case import Case
from paramixer.bench.limits import Limits
from paramixer.bench.progress import silent

CASE = Case(batch=1, length=16, channels=4, hidden=4)


def too_few_factors(case):
    return ways.rolls(dataclasses.replace(case, factors=1))


def wrong_gradient(case):
    right = ways.rolls(case)
    return lambda inputs, values, *rest: right(inputs.detach(), values, *rest)


def not_a_number(case):
    right = ways.rolls(case)
    return lambda *tensors: torch.where(torch.arange(case.channels) == 0, torch.nan, right(*tensors))


def failing(case):
    raise RuntimeError("no compiler\nhere")


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (too_few_factors, "wrong: its"),
        (wrong_gradient, "wrong: its gradient of inputs"),
        (not_a_number, "wrong: its output"),
        (failing, "failed: no compiler"),
    ],
)
def test_a_way_that_is_wrong_gets_no_speed_and_the_table_says_so(monkeypatch, prepare, why):
    monkeypatch.setitem(ways.WAYS, "rolls", ways.Way(prepare, "a broken way"))
    found = block.compare(CASE, ["rolls", "gather"], Limits(1e11, 1e10), 1, silent)
    broken, sound = found["ways"]["rolls"], found["ways"]["gather"]
    assert broken["why"].startswith(why)
    assert "forward" not in broken
    assert "both" not in broken
    assert sound["why"] is None
    assert sound["both"]["seconds"] > 0
    (table,) = tables.tables(samples.record("block", {"cases": {"block": found}}))
    (row,) = [row for row in table.rows if "a broken way" in row[0]]
    assert why in row[0]
    assert row[1:] == [""] * 6


def test_a_wrong_engine_leaves_nothing_to_compare_with(monkeypatch):
    monkeypatch.setitem(ways.WAYS, ways.ENGINE, ways.Way(wrong_gradient, "a broken engine"))
    found = block.compare(CASE, ["rolls"], Limits(1e11, 1e10), 1, silent)
    assert found["ways"][ways.ENGINE]["why"]
    assert found["ways"]["rolls"]["both"]["times_engine"] is None


def test_another_function_is_timed_without_a_share_of_the_useful_work():
    found = block.compare(CASE, ["softmax"], Limits(1e11, 1e10), 1, silent)
    assert found["ways"]["softmax"]["both"]["times_engine"] > 0
    assert found["ways"]["softmax"]["both"]["share_of_peak"] is None
    assert found["ways"][ways.ENGINE]["both"]["share_of_peak"] > 0
