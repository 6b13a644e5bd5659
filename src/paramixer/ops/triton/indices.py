"""Offsets and lengths as the kernels read them: on the device, reduced to the ring, without waiting for the device."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor

# Tables of offsets that stay on their device: those of a few networks with all their lengths.
_MOST_TABLES = 256
_tables: OrderedDict[tuple[object, ...], Tensor] = OrderedDict()


def place_shifts(offsets: Tensor, lengths: Tensor | None, length: int, ring: bool, device: torch.device) -> Tensor:
    """Return int32 shifts of the offsets' shape; with lengths ``[batch, *shape]``, since each ring has its own length.

    On a ring they lie within [0, length), else within [-length, length].
    """
    if lengths is None:
        limit = torch.tensor(max(length, 1), device=offsets.device)
        return _on_device(_reduce(offsets, limit, ring), device)
    limits = lengths.clamp(1, max(length, 1)).reshape(-1, *[1] * offsets.dim())
    return _reduce(_on_device(offsets, device), limits, ring)


def place_lengths(lengths: Tensor | None, device: torch.device) -> Tensor | None:
    """Return the lengths on the device; a copy from the CPU does not wait for the device if their memory is pinned."""
    return None if lengths is None else lengths.to(device, non_blocking=True).contiguous()


def _reduce(offsets: Tensor, limits: Tensor, ring: bool) -> Tensor:
    reduced = torch.remainder(offsets, limits) if ring else torch.maximum(torch.minimum(offsets, limits), -limits)
    return reduced.to(torch.int32).contiguous()


def _on_device(table: Tensor, device: torch.device) -> Tensor:
    """Return a small table on the device, from a cache keyed by its contents: a copy would wait for the device."""
    if table.device == device:
        return table.contiguous()
    host = table.detach().cpu().contiguous()
    key = (host.numpy().tobytes(), host.dtype, host.shape, device)
    if key not in _tables:
        _tables[key] = host.to(device)
        if len(_tables) > _MOST_TABLES:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return _tables[key]
