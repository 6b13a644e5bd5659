"""The factors of one sequence, packed for a page, which computes any row and column of A from them.

A factor has length x links entries. They are rounded to 8 bits with one scale per link and factor. The page multiplies
them for one position at a time.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paramixer.nn.model import Paramixer
from paramixer.nn.sequence_model import SequenceModel

_MAX_INT8 = 127


@dataclass(frozen=True)
class FactorData:
    """The factors of all blocks for one sequence."""

    length: int
    """Positions of the ring."""
    blocks: list[dict[str, Any]]
    """Offsets, scales and rounded entries of each block's factors; empty for a model without mixing matrices."""
    omitted_blocks: int
    """Blocks beyond the size limit."""

    @property
    def size(self) -> int:
        """Bytes on the page."""
        return sum(len(block["entries"]) for block in self.blocks)


@torch.no_grad()
def pack_factors(model: SequenceModel, sequence: Tensor, max_bytes: int) -> FactorData:
    """Compute and pack the factors of a sequence.

    Args:
        model: in evaluation mode.
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        max_bytes: size limit; blocks beyond it are omitted.
    """
    embedded = model.embed(sequence[None])
    length = int(embedded.lengths[0]) if embedded.lengths is not None else embedded.values.shape[1]
    blocks: list[dict[str, Any]] = []
    linked = []
    if isinstance(model, Paramixer):
        linked = list(zip(model.paramixer_blocks(), model.link_inputs(embedded), strict=True))
    for block, link_inputs in linked:
        entries = block.factors(link_inputs[:, :length])[0]
        # One byte per entry; base64 turns three bytes into four characters.
        if sum(len(packed["entries"]) for packed in blocks) + entries.numel() * 4 // 3 > max_bytes:
            break
        scales = entries.abs().amax(1).clamp_min(torch.finfo(entries.dtype).tiny)
        rounded = (entries / scales[:, None] * _MAX_INT8).round().to(torch.int8).numpy()
        blocks.append(
            {
                "offsets": block.offsets.tolist(),
                "scales": [[float(f"{scale / _MAX_INT8:.6g}") for scale in row] for row in scales.tolist()],
                "entries": base64.b64encode(rounded.tobytes()).decode(),
                "residual": block.residual,
                "ring": block.ring,
            }
        )
    return FactorData(length, blocks, len(model.blocks) - len(blocks))
