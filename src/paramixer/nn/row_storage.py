"""Tables in files: the rows that are not zero, by number. What comes back has the same bits.

A table ``name`` becomes ``name:rows``, int32 and ascending, and ``name:values``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paramixer.nn.ngrams import row_sparse_names
from paramixer.ops.lazy_zeros import lazy_zeros

_ROWS, _VALUES = ":rows", ":values"
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class RowStorage:
    """Which of a file's tensors are tables, and how large they are when they are unpacked."""

    tables: Mapping[str, Sequence[int]]
    """``[rows, width]`` of each table, by name."""

    @classmethod
    def of(cls, model: nn.Module) -> RowStorage:
        """Return the tables in a model's state_dict."""
        state = model.state_dict()
        return cls({name: tuple(state[name].shape) for name in row_sparse_names(model)})

    def pack(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors as a file stores them."""
        packed: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            if name in self.tables:
                # By bits: a row of negative zeros comes back, too.
                table = tensor.detach().cpu().contiguous()
                rows = (table.view(_INTEGERS[table.itemsize]) != 0).any(1).nonzero().flatten()
                packed[name + _ROWS], packed[name + _VALUES] = rows.int(), table[rows]
            else:
                packed[name] = tensor
        return packed

    def unpack_shapes(self, shapes: Mapping[str, Sequence[int]], origin: object) -> dict[str, Sequence[int]]:
        """Return the shapes that tensors of a file will have, or raise one clear error.

        Args:
            shapes: of the tensors in the file.
            origin: the file, for messages.
        """
        unpacked = dict(shapes)
        whole = [name for name in self.tables if name in shapes]
        if whole:
            raise ValueError(f"{origin}: {whole[0]} is stored whole, expected its rows only; save the model again")
        for name, shape in self.tables.items():
            if name + _ROWS not in shapes or name + _VALUES not in shapes:
                continue
            rows, values = unpacked.pop(name + _ROWS), unpacked.pop(name + _VALUES)
            if len(rows) != 1 or rows[0] > shape[0] or list(values) != [rows[0], shape[1]]:
                raise ValueError(
                    f"{origin}: {name} is stored as rows {list(rows)} and values {list(values)}, which do not fit into "
                    f"a table of shape {list(shape)}"
                )
            unpacked[name] = shape
        return unpacked

    def unpack(self, tensors: Mapping[str, Tensor], origin: object) -> dict[str, Tensor]:
        """Return the tensors that were packed, or raise one clear error. Other tensors are returned as they are."""
        self.unpack_shapes({name: tensor.shape for name, tensor in tensors.items()}, origin)
        unpacked = dict(tensors)
        for name, shape in self.tables.items():
            rows, values = unpacked.pop(name + _ROWS, None), unpacked.pop(name + _VALUES, None)
            if rows is not None and values is not None:
                unpacked[name] = _fill(rows, values, shape, f"{origin}: {name}")
        return unpacked


def _fill(rows: Tensor, values: Tensor, shape: Sequence[int], what: str) -> Tensor:
    if rows.dtype != torch.int32 or not values.is_floating_point():
        raise ValueError(f"{what} has rows of {rows.dtype} and values of {values.dtype}, expected int32 and floats")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < shape[0]:
        raise ValueError(f"{what} has rows {int(rows.min())} to {int(rows.max())}, its table has {shape[0]}")
    if not bool((rows[1:] > rows[:-1]).all()):
        raise ValueError(f"{what} has rows that are not in ascending order; the file is damaged")
    return lazy_zeros(shape[0], shape[1], values.dtype).index_copy_(0, rows.long(), values)
