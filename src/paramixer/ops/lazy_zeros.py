"""Zeros that take no memory until they are written: for large tables of which few rows are used."""

from __future__ import annotations

import itertools
import mmap

import torch
from torch import Tensor

# In bytes: below, torch's own zeros are as good.
_LARGE = 2**22
_LINE, _PAGE = 64, 4096
# A table and its moments must not begin at the same place in a page: for addresses that differ by whole pages only, a
# processor takes loads for stores that are under way, and waits. An update of rows took twice the time.
_starts = itertools.cycle(range(0, _PAGE, _LINE))


def lazy_zeros(rows: int, width: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
    """Return zeros ``[rows, width]``, aligned to cache lines. On a CPU the system maps each page when it is written.

    Args:
        device: torch's default device if None.
    """
    size = rows * width * dtype.itemsize
    if (device or torch.get_default_device()).type != "cpu" or size < _LARGE or not hasattr(mmap, "MAP_ANONYMOUS"):
        return torch.zeros(rows, width, dtype=dtype, device=device)
    try:
        memory = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"a table of {rows:,} rows of {width} numbers takes {size / 1e9:,.1f} GB: {error}; choose fewer rows"
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Rows are read in random order; with small pages most reads would wait for address translation.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype, count=rows * width, offset=next(_starts)).view(rows, width)
