"""How sure a classifier's answers may be, measured on validation.

Training goes on while accuracy still rises, and answers get too sure long before. Divided by one number, the
temperature, they are as sure as they are right (Guo et al. 2017); which class is the likeliest does not change.
"""

from __future__ import annotations

from torch import Tensor

_HALVINGS = 50
# Answers that say less than nothing on validation are divided by this at most.
_LARGEST = 100.0


def measure_temperature(answers: Tensor, targets: Tensor) -> float:
    """Return the number by which logits must be divided for the smallest loss.

    It is 1 where they would have to grow: on few sequences that are all right there would be no end to it.

    Args:
        answers: logits ``[items, classes]``.
        targets: ``[items]``.
    """
    logits, right = answers.double(), targets.long()[:, None]
    if not len(logits) or not bool(logits.isfinite().all()):
        return 1.0

    def slope(sharpness: float) -> float:
        """Return the derivative of the loss by what multiplies the logits; the loss is convex in it."""
        expected = (logits.mul(sharpness).softmax(1) * logits).sum(1)
        return float((expected - logits.gather(1, right)[:, 0]).mean())

    low, high = 1 / _LARGEST, 1.0
    if slope(high) <= 0:
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 1 / high
