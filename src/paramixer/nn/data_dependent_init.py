"""A start from data: what each block hands on is centred and of size one before the first step.

Over thousands of positions sequences differ little from their common mean. A head that reads both learns the mean,
again and again as it moves, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from paramixer.nn.block import ParamixerBlock
from paramixer.nn.model import Paramixer
from paramixer.ops.checks import past_end

# How many sequences tell what is common to all.
SEQUENCES = 32
# Row sums of A and sizes of values below this are nothing to divide by.
_LEAST = 1e-4


@torch.no_grad()
def settle(
    model: Paramixer, inputs: Tensor, lengths: Tensor | None = None, tick: Callable[[int], None] = lambda done: None
) -> None:
    """Shift and scale every g so that what the next block or the head reads has mean 0 and variance 1.

    The mean is taken in every channel, the variance over all of them.

    Args:
        model: of Paramixer's own blocks; changed in place.
        inputs: some of the training sequences.
        lengths: their lengths, as for the model itself.
        tick: is told of every block that is done.
    """
    was = model.training
    model.eval()
    inputs, counts = model._padded(inputs, lengths)
    first = values = model._embed(inputs)
    own = torch.ones(first.shape[:2], dtype=torch.bool, device=first.device)
    if counts is not None:
        own = ~past_end(counts, first.shape[1])
    for number, block in enumerate(model.blocks):
        assert isinstance(block, ParamixerBlock)
        links = first if model.config.link_input == "first" else values
        read = own.clone()
        if number == model.config.blocks - 1 and model.config.pooling == "cls":
            read[:, 1:] = False
        last = block.g[2]
        assert isinstance(last, nn.Linear)
        found = block(values, links, counts)[read]
        # A shift of g arrives as large as the rows of A sum up to.
        last.bias.add_(1)
        sums = (block(values, links, counts)[read] - found).mean()
        last.bias.sub_(1 + found.mean(0) / sums)
        size = block(values, links, counts)[read].std()
        if not (sums.abs() > _LEAST and size > _LEAST):
            raise ValueError(
                f"settle: block {number + 1} gives the {len(inputs)} sequences nothing to scale; leave it out"
            )
        last.weight.div_(size)
        last.bias.div_(size)
        values = block(values, links, counts)
        tick(1)
    model.train(was)
