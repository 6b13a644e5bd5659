from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score

from paramixer.training.assessment.metrics import METRICS, compute_loss, compute_metrics


def test_accuracy_and_error_count_answers():
    answers = torch.tensor([[2.0, 1.0], [0.0, 3.0], [5.0, 4.0], [1.0, 2.0]])
    targets = torch.tensor([0, 1, 1, 1])
    assert compute_metrics(answers, targets, "accuracy")["accuracy"] == 0.75
    assert compute_metrics(answers, targets, "error")["error"] == 0.25


def test_the_adding_problems_error_counts_answers_that_are_off_by_0_04_or_more():
    targets = torch.zeros(4)
    assert METRICS["error"].measure(torch.tensor([0.0, 0.0399, 0.0401, -0.5]), targets) == 0.5


def test_roc_auc_is_computed_from_scores_not_labels(generator):
    answers, targets = torch.randn(200, 2, generator=generator), torch.randint(2, (200,), generator=generator)
    expected = roc_auc_score(targets.numpy(), answers.softmax(-1)[:, 1].numpy())
    assert METRICS["roc_auc"].measure(answers, targets) == pytest.approx(expected)
    assert math.isnan(METRICS["roc_auc"].measure(answers, torch.zeros(200, dtype=torch.int64)))
    several, classes = torch.randn(90, 3, generator=generator), torch.arange(90) % 3
    expected = roc_auc_score(classes.numpy(), several.softmax(-1).numpy(), multi_class="ovr")
    assert METRICS["roc_auc"].measure(several, classes) == pytest.approx(expected, abs=1e-6)


def test_losses_of_classes_and_of_values(generator):
    answers = torch.randn(5, 3, generator=generator)
    assert compute_loss(answers, torch.tensor([0, 1, 2, 0, 1])).item() == pytest.approx(
        float(-answers.log_softmax(-1)[range(5), [0, 1, 2, 0, 1]].mean())
    )
    assert compute_loss(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item() == 2


def test_better_and_reached_know_the_direction():
    assert METRICS["accuracy"].is_better(0.9, 0.8)
    assert not METRICS["error"].is_better(0.9, 0.8)
    assert METRICS["error"].has_reached(0.004, 0.005)
    assert not METRICS["accuracy"].has_reached(0.97, 0.98)
    for metric in METRICS.values():
        assert metric.is_better(0.5, None)
        assert not metric.is_better(math.nan, None)
        assert not metric.is_better(math.nan, 0.5)
