"""The optimizer, its learning-rate schedule, and the learning-rate factors of parts of a model."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

import torch
from torch import nn

from paramixer.training.options import TrainingOptions


def build_optimizer(model: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    """Return Adam or AdamW over the model's parameters, one group for every learning-rate factor."""
    assert options.learning_rate is not None
    factors: dict[str, float] = {pattern: float(factor) for pattern, factor in (options.lr_factors or {}).items()}
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        factor = next((value for pattern, value in factors.items() if fnmatchcase(name, pattern)), 1.0)
        groups.setdefault(factor, []).append(parameter)
    parameters = [{"params": group, "lr_factor": factor} for factor, group in groups.items()]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=options.learning_rate, weight_decay=options.weight_decay or 0.0)
    return torch.optim.Adam(parameters, lr=options.learning_rate)


def set_lr(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step; every group takes its factor of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["lr_factor"]


def learning_rate(options: TrainingOptions, step: int, last: int | None, elapsed: float = 0.0) -> float:
    """Return the learning rate of a step.

    Args:
        options: with the schedule.
        step: counted from 0.
        last: the number of steps of the run, where it is known.
        elapsed: the share of the run's minutes that has passed.
    """
    assert options.learning_rate is not None
    rate, warmup = options.learning_rate, options.warmup or 0
    if step < warmup:
        return rate * (step + 1) / warmup
    if options.schedule == "cosine":
        done = 0.0 if last is None else (step - warmup) / max(1, last - warmup)
        return rate * 0.5 * (1 + math.cos(math.pi * min(1.0, max(done, elapsed))))
    return rate
