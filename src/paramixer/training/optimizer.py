"""The optimizer, its parameter groups and its learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from paramixer.nn.ngrams import row_sparse_names
from paramixer.training.options import TrainingOptions
from paramixer.training.row_sparse import RowSparseAdamW

_WARMUP_SHARE, _COOLING_SHARE = 0.1, 0.25

ParameterGroup = dict[str, Any]
"""``params`` and options of the optimizer for them, as torch takes them; ``lr_factor`` scales the learning rate."""


def build_optimizer(
    model: nn.Module, options: TrainingOptions, groups: Sequence[ParameterGroup] | None = None
) -> torch.optim.Optimizer:
    """Return Adam or AdamW over the model's parameters, or over groups of them.

    Weight decay is for the weights of linear layers alone. Parameters that their module lists as row-sparse get a group
    of their own, whose steps touch only rows with a gradient.
    """
    assert options.learning_rate is not None
    names = set(row_sparse_names(model))
    tables = {id(parameter) for name, parameter in model.named_parameters() if name in names}
    parameters = _mark_tables(_group(model) if groups is None else groups, tables)
    for group in parameters:
        if "lr" in group:
            raise ValueError(f"a parameter group has lr={group['lr']}, which the schedule sets; give it an lr_factor")
    decay, betas = options.weight_decay or 0.0, (0.9, options.beta2 or 0.999)
    if tables:
        # Adam, too: AdamW without weight decay is the same.
        return RowSparseAdamW(parameters, lr=options.learning_rate, betas=betas, weight_decay=decay)
    if options.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=options.learning_rate, betas=betas, weight_decay=decay)
    return torch.optim.Adam(parameters, lr=options.learning_rate, betas=betas)


def describe_groups(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Return the names of every group's parameters and the options that it does not share, as a record holds them."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    described = []
    for group in optimizer.param_groups:
        if any(parameter not in names for parameter in group["params"]):
            raise ValueError("a parameter group holds a tensor that is no parameter of the model; leave it out")
        options = {name: value for name, value in group.items() if name not in ("params", "lr")}
        own = {name: value for name, value in options.items() if value != optimizer.defaults.get(name)}
        # Betas are a tuple, which JSON gives back as a list.
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in own.items()}
        described.append({"params": [names[parameter] for parameter in group["params"]], **plain})
    return described


def _group(model: nn.Module) -> list[ParameterGroup]:
    """Return the weights of linear layers, which decay, and all other parameters, which do not."""
    linear = {id(module.weight) for module in model.modules() if isinstance(module, nn.Linear)}
    decayed = [parameter for parameter in model.parameters() if id(parameter) in linear]
    others = [parameter for parameter in model.parameters() if id(parameter) not in linear]
    return [group for group in ({"params": decayed}, {"params": others, "weight_decay": 0.0}) if group["params"]]


def _mark_tables(groups: Sequence[ParameterGroup], tables: set[int]) -> list[ParameterGroup]:
    """Return the groups with row-sparse tables in groups of their own."""
    marked: list[ParameterGroup] = []
    for group in groups:
        parameters = list(group["params"])
        plain = [parameter for parameter in parameters if id(parameter) not in tables]
        rows = [parameter for parameter in parameters if id(parameter) in tables]
        marked += [{**group, "params": plain}] if plain or not rows else []
        marked += [{**group, "params": rows, "row_sparse": True}] if rows else []
    return marked


def set_lr(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step; every group takes its factor of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("lr_factor", 1.0)


def cooling_end(start: int, options: TrainingOptions) -> int:
    """Return the step at which a run ends that has not improved for too long at this one.

    Where the schedule is to end at zero, it gets there first, within a quarter of the steps so far: weights that were
    taken along at a large rate are a point or two worse than those at its end.
    """
    return start + (math.ceil(_COOLING_SHARE * start) if options.schedule == "cosine" else 0)


def learning_rate(
    options: TrainingOptions, step: int, last: int | None, elapsed: float = 0.0, cooling: int | None = None
) -> float:
    """Return the learning rate of a step.

    Args:
        options: with the schedule.
        step: counted from 0.
        last: the number of steps of the run, where it is known.
        elapsed: the share of the run's minutes that has passed.
        cooling: the step at which there had been no improvement for too long.
    """
    assert options.learning_rate is not None
    rate, warmup = options.learning_rate, options.warmup or 0
    if cooling is not None:
        end = cooling_end(cooling, options)
        rate *= (end - step) / max(1, end - cooling)
    if step < warmup:
        # Where minutes are the budget, the warm-up takes a tenth of them at most: the rate must reach zero in time.
        rise = max((step + 1) / warmup, elapsed / _WARMUP_SHARE)
        if rise < 1:
            return rate * rise
    if options.schedule == "cosine":
        done = 0.0 if last is None else max(0, step - warmup) / max(1, last - warmup)
        return rate * 0.5 * (1 + math.cos(math.pi * min(1.0, max(done, elapsed))))
    return rate
