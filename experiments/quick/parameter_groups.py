"""Learning-rate factors of the quick recipes: patterns of parameter names, and parameter groups made from them."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from torch import nn

from paramixer.training.optimizer import ParameterGroup


def group_parameters(model: nn.Module, factors: Mapping[str, float | str], length: int) -> list[ParameterGroup]:
    """Return a group for every factor of the learning rate, for :func:`paramixer.fit`.

    Args:
        model: whose parameters are grouped.
        factors: by patterns of names, such as ``{"head.linear.weight": 0.3}``; the first that matches counts, and a
            parameter that none matches has the whole learning rate.
        length: of the model, on which a factor may depend (see :func:`compute_factor`).
    """
    numbers = {pattern: compute_factor(factor, length) for pattern, factor in factors.items()}
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        factor = next((number for pattern, number in numbers.items() if fnmatchcase(name, pattern)), 1.0)
        groups.setdefault(factor, []).append(parameter)
    return [{"params": group, "lr_factor": factor} for factor, group in groups.items()]


def compute_factor(factor: float | str, length: int) -> float:
    """Return a factor as a number: "300/length" is 300 over the model's length, at most 1, rounded to one digit.

    A FLAT head has a weight for every position.
    """
    if not isinstance(factor, str):
        return float(factor)
    numerator, _, name = factor.partition("/")
    if name != "length":
        raise ValueError(f"learning-rate factor {factor!r}; write a number, or one over the length such as 300/length")
    return float(f"{min(1.0, float(numerator) / length):.1g}")
