"""The optimizer, and how large a step each part of the model takes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from paramixer.nn.block import ParamixerBlock
from paramixer.nn.model import Paramixer
from paramixer.training.options import TrainingOptions


def optimizer_for(model: Paramixer, options: TrainingOptions) -> torch.optim.Optimizer:
    """Adam or AdamW over the model's parameters; the link MLPs and the head's weights take steps of their own size."""
    assert options.learning_rate is not None
    assert options.link_rate is not None
    assert options.head_rate is not None
    links = [parameter for block in model.blocks for parameter in _links(block)]
    head = [model.head.linear.weight]
    apart = {id(parameter) for parameter in (*links, *head)}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in apart]
    shares = (rest, 1.0), (links, options.link_rate), (head, options.head_rate)
    groups: list[dict[str, Any]] = [{"params": part, "share": share} for part, share in shares if part]
    if options.link_rate == options.head_rate == 1:
        groups = [{"params": list(model.parameters()), "share": 1.0}]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=options.learning_rate, weight_decay=options.weight_decay)
    return torch.optim.Adam(groups, lr=options.learning_rate)


def pace(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the step size of the step to come."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["share"]


def _links(block: nn.Module) -> list[nn.Parameter]:
    return [block.w1, block.b1, block.w2, block.b2] if isinstance(block, ParamixerBlock) else []
