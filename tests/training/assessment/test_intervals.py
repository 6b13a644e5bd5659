"""Intervals of metrics and of differences, against known values and against what chance does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

from paramixer.training.assessment.intervals import _weigh, measure_difference, measure_interval, wilson
from paramixer.training.assessment.metrics import METRICS


def test_wilson_gives_the_textbook_values():
    # Newcombe 1998, table I: 81 of 263 and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=1e-4)
    assert wilson(20, 20)[1] == 1
    assert wilson(0, 0) == (0, 1)


@pytest.mark.parametrize("metric", ["roc_auc", "mse"])
@pytest.mark.parametrize("classes", [2, 4])
def test_with_every_item_once_the_resampled_metric_is_the_metric(metric, classes):
    generator = torch.Generator().manual_seed(0)
    if metric == "mse":
        answers, targets = torch.randn(50, generator=generator), torch.randn(50, generator=generator)
    else:
        # Rounded, so that scores are equal.
        answers = torch.randn(50, classes, generator=generator).round()
        targets = torch.randint(0, classes, (50,), generator=generator)
    measured = _weigh(metric, answers, targets)(np.ones((2, 50)))
    assert measured == pytest.approx(METRICS[metric].measure(answers, targets))


def test_a_resample_is_measured_like_its_items():
    generator = np.random.default_rng(0)
    answers, targets = torch.randn(40, 2), torch.randint(0, 2, (40,))
    counts = generator.multinomial(40, np.full(40, 1 / 40), 5)
    for row, measured in zip(counts, _weigh("roc_auc", answers, targets)(counts.astype(float)), strict=True):
        chosen = np.repeat(np.arange(40), row)
        expected = roc_auc_score(targets[chosen], (answers[:, 1] - answers[:, 0])[chosen])
        assert measured == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_the_interval_holds_the_truth_as_often_as_it_says(metric):
    generator = torch.Generator().manual_seed(0)
    hits = 0
    for _ in range(60):
        # Under the balanced accuracy one class is rare.
        targets = (torch.rand(200, generator=generator) < (0.1 if metric == "balanced_accuracy" else 0.5)).long()
        scores = torch.randn(200, generator=generator) + 2 * targets
        answers = torch.stack([torch.ones(200), scores], 1)
        low, high = measure_interval(metric, answers, targets)
        # Normal scores two deviations apart, cut in the middle; and the chance that one is above the other.
        hits += low <= (0.9214 if metric == "roc_auc" else 0.8413) <= high
    assert hits >= 50


def test_the_interval_is_the_same_every_time():
    answers, targets = torch.randn(70), torch.randn(70)
    assert measure_interval("mse", answers, targets) == measure_interval("mse", answers, targets)


def test_a_metric_without_a_value_has_no_interval():
    assert measure_interval("roc_auc", torch.randn(5, 2), torch.zeros(5, dtype=torch.int64)) is None


def test_a_difference_is_paired_and_its_sign_says_who_is_better():
    targets = torch.zeros(400, dtype=torch.int64)
    right, wrong = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    hard = torch.arange(400) % 2 == 0
    first = torch.where(hard[:, None], wrong, right)
    second = first.clone()
    second[1:40:2] = wrong
    better = measure_difference("accuracy", first, second, targets)
    assert better.value == pytest.approx(0.05)
    # Each alone has an interval that is 0.1 wide; half of the sequences are hard for both.
    assert 0.025 < better.low < better.high < 0.08
    assert measure_difference("error", first, second, targets).value == pytest.approx(0.05)
    assert measure_difference("accuracy", second, first, targets).high < 0
    # Textbook values of Bonett and Price for 20 of 400 pairs that differ, all in one direction.
    assert (better.low, better.high) == pytest.approx((0.0274, 0.0721), abs=1e-4)


@pytest.mark.parametrize("metric", ["accuracy", "error", "balanced_accuracy", "roc_auc"])
@pytest.mark.parametrize("count", [2, 18, 120])
def test_answers_that_agree_on_few_sequences_are_not_certainly_equal(metric, count):
    targets = torch.arange(count) % 2
    answers = F.one_hot(targets).float()
    value, low, high = measure_difference(metric, answers, answers, targets)
    assert value == 0
    assert low < 0 < high
    # The rule of three, roughly; for a balanced metric of half of the sequences.
    assert 2 / (count + 2) < high <= 6 / count
    ends = measure_interval(metric, answers, targets)
    assert 0 <= ends[0] < ends[1] <= 1


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says():
    generator, hits = torch.Generator().manual_seed(0), 0
    for _ in range(100):
        targets = (torch.rand(100, generator=generator) < 0.2).long()
        # Right in 90 and in 80 %, half of the time for the same reason.
        shared = torch.rand(100, generator=generator) < 0.5
        draws = [torch.rand(100, generator=generator) for _ in range(2)]
        draws[1] = torch.where(shared, draws[0], draws[1])
        answers = [
            F.one_hot(torch.where(draw < share, targets, 1 - targets), 2).float()
            for draw, share in zip(draws, (0.9, 0.8), strict=True)
        ]
        low, high = measure_difference("balanced_accuracy", *answers, targets)[1:]
        hits += low <= 0.1 <= high
    assert hits >= 90
