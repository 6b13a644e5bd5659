"""Data-dependent initialization, as LSUV: every block's output is centered and of size one before the first step.

Over thousands of positions sequences differ little from their common mean. Without this, a head that reads both learns
the mean, again and again as it moves, and nothing else.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paramixer.nn.paper import PaperParamixer
from paramixer.ops.checks import past_end

# How many sequences the means and sizes are computed from.
SEQUENCES = 32
# Row sums of A and sizes of values below this are too small to divide by.
_LEAST = 1e-4


@torch.no_grad()
def scale_by_data(model: PaperParamixer, inputs: Tensor, lengths: Tensor | None = None) -> None:
    """Shift and scale every g so that what the next block or the head reads has mean 0 and variance 1.

    The mean is taken per channel, the variance over all channels.

    Args:
        model: changed in place.
        inputs: some of the training sequences.
        lengths: their lengths, as for the model itself.
    """
    was_training = model.training
    model.eval()
    embedded = model.embed(inputs, lengths)
    counts, values = embedded.lengths, embedded.values
    inside = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
    if counts is not None:
        inside = ~past_end(counts, values.shape[1])
    blocks = model.paramixer_blocks()
    for number, block in enumerate(blocks):
        link_input = embedded.values if model.config.link_input == "first" else values
        read = inside.clone()
        if block is blocks[-1] and model.config.pooling == "cls":
            read[:, 1:] = False
        _, last = block.g.layers()
        output = block(values, link_input, counts)[read]
        # A shift of g is multiplied by the row sums of A.
        last.bias.add_(1)
        row_sum = (block(values, link_input, counts)[read] - output).mean()
        last.bias.sub_(1 + output.mean(0) / row_sum)
        size = block(values, link_input, counts)[read].std()
        if not (row_sum.abs() > _LEAST and size > _LEAST):
            raise ValueError(
                f"block {number + 1} maps the {len(inputs)} sequences to nearly equal values, which cannot be scaled; "
                "train without data-dependent initialization"
            )
        last.weight.div_(size)
        last.bias.div_(size)
        values = block(values, link_input, counts)
    model.train(was_training)
