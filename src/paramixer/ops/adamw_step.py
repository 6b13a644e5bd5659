"""The numbers of one step of AdamW, as backends get them."""

from __future__ import annotations

import math
from typing import NamedTuple


class AdamWStep(NamedTuple):
    """What one step of AdamW multiplies with, after bias correction."""

    decay: float
    """The factor of the weights, ``1 - lr * weight_decay``."""
    beta1: float
    """Of the first moment."""
    beta2: float
    """Of the second moment."""
    size: float
    """``lr / (1 - beta1**step)``."""
    scale: float
    """``sqrt(1 - beta2**step)``, which divides the root of the second moment."""
    eps: float
    """Added to that root."""

    @classmethod
    def at(cls, step: int, lr: float, betas: tuple[float, float], eps: float, weight_decay: float) -> AdamWStep:
        """Return the factors of a step, counted from 1."""
        beta1, beta2 = betas
        scale = math.sqrt(1 - beta2**step)
        return cls(1 - lr * weight_decay, beta1, beta2, lr / (1 - beta1**step), scale, eps)
