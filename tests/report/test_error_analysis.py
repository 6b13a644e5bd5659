"""Confusion matrix, ROC curve, calibration and mistakes, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paramixer.report.error_analysis import Predictions


def test_four_predictions_by_hand():
    outputs = torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 3.0], [0.5, 0.0]])
    targets = torch.tensor([0, 1, 0, 1])
    losses = torch.nn.functional.cross_entropy(outputs, targets, reduction="none").double().numpy()
    predictions = Predictions(np.arange(4), 4, outputs, targets, {}, losses)
    assert predictions.compute_confusion().tolist() == [[1, 1], [1, 1]]
    assert predictions.rank_mistakes() == [2, 3]
    false_positives, true_positives = predictions.compute_roc()
    assert float(np.trapezoid(true_positives, false_positives)) == pytest.approx(0.5)
    confidence, accuracy, counts, error = predictions.compute_calibration()
    assert counts.tolist() == [1, 1, 2]
    assert accuracy.tolist() == [0, 1, 0.5]
    exact = outputs.double().softmax(-1).amax(-1)
    assert confidence[0] == pytest.approx(float(exact[3]))
    by_hand = (exact[3] + (1 - exact[1]) + 2 * abs((exact[0] + exact[2]) / 2 - 0.5)) / 4
    assert error == pytest.approx(float(by_hand))
