"""Offsets and lengths as the kernels read them: on the device, reduced to the ring, without waiting for the device."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor

# Tables of offsets that stay on their device.
_MOST_TABLES = 256
_tables: OrderedDict[tuple[object, ...], Tensor] = OrderedDict()


def place_shifts(offsets: Tensor, lengths: Tensor | None, length: int, ring: bool, device: torch.device) -> Tensor:
    """Return int32 shifts of the offsets' shape; with lengths ``[batch, *shape]``, since each ring has its own length.

    On a ring they lie within [0, length), else within [-length, length].
    """
    # Reduced on the device: so one copy of the offsets serves every length.
    table, longest = _on_device(offsets, device), max(length, 1)
    limits: Any = longest if lengths is None else lengths.clamp(1, longest).reshape(-1, *[1] * offsets.dim())
    reduced = torch.remainder(table, limits) if ring else table.clamp(-limits, limits)
    return reduced.to(torch.int32).contiguous()


def place_lengths(lengths: Tensor | None, device: torch.device) -> Tensor | None:
    """Return the lengths on the device; a copy from the CPU does not wait for the device if their memory is pinned."""
    return None if lengths is None else lengths.to(device, non_blocking=True).contiguous()


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
