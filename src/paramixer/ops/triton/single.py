"""Operators of one kernel each: ``link_mix``, its gradients, and dropout."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from paramixer.ops.reference import dropout_keys, dropout_scale, dropout_threshold
from paramixer.ops.triton import launch
from paramixer.ops.triton.indices import place_lengths, place_shifts
from paramixer.ops.triton.masking import drop
from paramixer.ops.triton.mixing import mix_stored, weight_gradients

_DROPOUT_TILE = 1024


def link_mix(weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
    """Return the mix of values along links with these weights."""
    weights, values = weights.detach().contiguous(), values.detach().contiguous()
    mixed = torch.empty_like(values)
    _mix(weights, values, offsets, lengths, ring, mixed, transposed=False)
    return mixed


def link_mix_backward(
    grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of weights and values."""
    grad, weights, values = (tensor.detach().contiguous() for tensor in (grad, weights, values))
    dweights, dvalues = torch.empty_like(weights), torch.empty_like(values)
    _mix(weights, grad, offsets, lengths, ring, dvalues, transposed=True)
    batch, length, heads, widths = _shape(weights, values)
    launch.launch_tiles(
        weight_gradients,
        batch,
        length,
        heads,
        launch.choose(widths["C"]),
        grad=grad,
        values=values,
        dweights=dweights,
        **_indices(offsets, lengths, length, ring, values),
        **widths,
    )
    return dweights, dvalues


def dropout(values: Tensor, p: float, seed: int) -> Tensor:
    """Return the values with the reference's mask."""
    values = values.detach().contiguous()
    dropped = torch.empty_like(values)
    flat, out = values.view(-1), dropped.view(-1)
    for number, start in enumerate(range(0, flat.numel(), 2**32)):
        part = slice(start, start + 2**32)
        _drop(flat[part], out[part], p, dropout_keys(seed, number))
    return dropped


def _drop(values: Tensor, dropped: Tensor, p: float, keys: tuple[int, int, int]) -> None:
    launch.run(
        drop,
        lambda meta: (triton.cdiv(values.numel(), meta["TILE"]),),
        launch.Choice(_DROPOUT_TILE),
        values=values,
        dropped=dropped,
        count=values.numel(),
        threshold=dropout_threshold(p),
        scale=dropout_scale(p),
        **{f"key{number}": _as_int32(key) for number, key in enumerate(keys)},
    )


def _as_int32(bits: int) -> int:
    """Return the number of these 32 bits with a sign: a kernel is compiled again for arguments beyond int32."""
    return bits - 2**32 if bits >= 2**31 else bits


def _mix(
    weights: Tensor,
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ring: bool,
    mixed: Tensor,
    transposed: bool,
) -> None:
    batch, length, heads, widths = _shape(weights, values)
    launch.launch_tiles(
        mix_stored,
        batch,
        length,
        heads,
        launch.choose(widths["C"]),
        weights=weights,
        values=values,
        residual=None,
        passed=None,
        mixed=mixed,
        factor=0,
        M=1,
        TRANSPOSED=transposed,
        BY_LINK=False,
        HAS_RESIDUAL=False,
        PASSES=False,
        VALUES_BY_HEAD=False,
        MIXED_BY_HEAD=False,
        **_indices(offsets, lengths, length, ring, values),
        **widths,
    )


def _shape(weights: Tensor, values: Tensor) -> tuple[int, int, int, dict[str, int]]:
    heads = weights.shape[2] if weights.dim() == 4 else 1
    batch, length, channels = values.shape
    C = channels // heads
    launch.check_widths(channels=C)
    return batch, length, heads, {"K": weights.shape[-1], "C": C, "CP": launch.pad(C)}


def _indices(offsets: Tensor, lengths: Tensor | None, length: int, ring: bool, values: Tensor) -> dict[str, Any]:
    counts = place_lengths(lengths, values.device)
    return {
        "shifts": place_shifts(offsets, counts, length, ring, values.device),
        "lengths": counts,
        "HAS_LENGTHS": counts is not None,
        "RING": ring,
    }
