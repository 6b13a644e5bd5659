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

from paramixer.attribution import name_chains
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.model import Paramixer
from paramixer.nn.sequence_model import SequenceModel

_MAX_INT8 = 127


@dataclass(frozen=True)
class FactorData:
    """The factors of all chains for one sequence."""

    length: int
    """Positions of the ring."""
    blocks: list[dict[str, Any]]
    """Name, offsets, scales and rounded entries of each chain's factors; empty for a model without mixing matrices, or
    where windows of several positions are mixed."""
    omitted_blocks: int
    """Chains beyond the size limit."""

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
    if not isinstance(model, Paramixer) or model.window > 1:
        return FactorData(length * model.window, [], 0)
    chains: list[dict[str, Any]] = []
    names = name_chains(model)
    for block, link_inputs in zip(model.paramixer_blocks(), model.link_inputs(embedded), strict=True):
        # With heads there is a chain for each.
        entries = block.factors(link_inputs[:, :length])[0]
        by_chain = entries.reshape(-1, *entries.shape[-3:])
        offsets = block.offsets.expand(len(by_chain), *block.offsets.shape[-2:])
        for factors, chain_offsets in zip(by_chain, offsets, strict=True):
            # One byte per entry; base64 turns three bytes into four characters.
            if sum(len(packed["entries"]) for packed in chains) + factors.numel() * 4 // 3 > max_bytes:
                return FactorData(length, chains, len(names) - len(chains))
            packed = _pack(factors, chain_offsets) | {"name": names[len(chains)], "ring": block.ring}
            chains.append(packed | {"residual": block.residual if isinstance(block, ParamixerBlock) else "factor"})
    return FactorData(length, chains, 0)


def _pack(factors: Tensor, offsets: Tensor) -> dict[str, Any]:
    """Return the entries ``[factors, length, links]`` of a chain, rounded, and its offsets."""
    scales = factors.abs().amax(1).clamp_min(torch.finfo(factors.dtype).tiny)
    rounded = (factors / scales[:, None] * _MAX_INT8).round().to(torch.int8).numpy()
    return {
        "offsets": offsets.tolist(),
        "scales": [[float(f"{scale / _MAX_INT8:.6g}") for scale in row] for row in scales.tolist()],
        "entries": base64.b64encode(rounded.tobytes()).decode(),
    }
