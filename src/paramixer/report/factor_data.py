"""The factors of one sequence, small enough for a page: every row and column of A can be made from them again.

A factor has as many entries as positions times links. They are rounded to 8 bits, each link of each factor on a scale
of its own; the page multiplies them out for the position it is asked about, never for all.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paramixer.explain import linked_blocks
from paramixer.nn.model import Paramixer

_STEPS = 127


@dataclass(frozen=True)
class Mixing:
    """The blocks of a model for one sequence, as the page reads them."""

    length: int
    """Positions of the ring."""
    blocks: list[dict[str, Any]]
    """Offsets, scales and rounded entries of each block's factors; empty for a rival."""
    left_out: int
    """Blocks that would have made the page too large."""

    @property
    def size(self) -> int:
        """Bytes on the page."""
        return sum(len(block["entries"]) for block in self.blocks)


@torch.no_grad()
def mixing_of(model: Paramixer, sequence: Tensor, most: int) -> Mixing:
    """What a page needs to follow the mixing of a sequence.

    Args:
        model: in evaluation mode.
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        most: bytes it may take; blocks beyond are left out.
    """
    batch, lengths = model._padded(sequence[None], None)
    first = model._embed(batch)
    length = int(lengths[0]) if lengths is not None else batch.shape[1]
    blocks: list[dict[str, Any]] = []
    linked = linked_blocks(model, first, lengths) or []
    for block, written_from in linked:
        entries = block.factors(written_from[:, :length])[0]
        # Each entry is a byte, and base64 makes four characters of three.
        if sum(len(one["entries"]) for one in blocks) + entries.numel() * 4 // 3 > most:
            break
        scales = entries.abs().amax(1).clamp_min(torch.finfo(entries.dtype).tiny)
        rounded = (entries / scales[:, None] * _STEPS).round().to(torch.int8).numpy()
        blocks.append(
            {
                "offsets": block.offsets.tolist(),
                "scales": [[float(f"{scale / _STEPS:.6g}") for scale in row] for row in scales.tolist()],
                "entries": base64.b64encode(rounded.tobytes()).decode(),
                "residual": block.residual,
                "ring": block.ring,
            }
        )
    return Mixing(length, blocks, len(linked) - len(blocks))
