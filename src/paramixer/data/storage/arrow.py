"""Sequences in an Arrow file, from which one sequence is read at a time."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.samples import Item, Row
from paramixer.extras import needed_for

# Bytes of sequences per record batch.
_BATCH_BYTES = 8 << 20


class Writer:
    """Writes sequences of one dtype to a file; use as a context manager.

    Args:
        path: the file.
        dtype: of the sequences.
        weighted: whether rows have weights. The file of rows without weights has no column for them.
    """

    def __init__(self, path: Path, dtype: str, weighted: bool = False) -> None:
        with needed_for("prepared data"):
            import pyarrow as pa
        self._file = path.open("wb")
        self._dtype = np.dtype(dtype)
        item = pa.from_numpy_dtype(self._dtype)
        columns = {"sequence": pa.large_list(item), "target": pa.float64(), "full": pa.int64(), "id": pa.string()}
        self._weighted = weighted
        self._schema = pa.schema({**columns, "weight": pa.float64()} if weighted else columns)
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self._rows: list[Row] = []
        self._bytes = 0

    def add(self, row: Row) -> None:
        """Add one sequence."""
        flat = np.ascontiguousarray(row.sequence, self._dtype).reshape(-1)
        self._rows.append(row._replace(sequence=flat))
        self._bytes += flat.nbytes
        if self._bytes >= _BATCH_BYTES:
            self._flush()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._flush()
                self._writer.close()
        finally:
            self._file.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        sequences, targets, fulls, ids, weights = zip(*self._rows, strict=True)
        ends = np.cumsum([0, *(len(sequence) for sequence in sequences)])
        columns = [
            pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(np.concatenate(sequences))),
            pa.array(targets, pa.float64()),
            pa.array(fulls, pa.int64()),
            pa.array(ids, pa.string()),
            *([pa.array(weights, pa.float64())] if self._weighted else []),
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        self._rows, self._bytes = [], 0


class StoredSequences:
    """The sequences of one split, read from disk on access.

    Args:
        path: file that a :class:`Writer` wrote.
        features: numbers per position, or None for token ids.
        classes: whether targets are classes; otherwise they are values.
    """

    def __init__(self, path: Path, features: int | None, classes: bool) -> None:
        self.path, self.features, self.classes = path, features, classes
        self._open()

    def _open(self) -> None:
        with needed_for("prepared data"):
            import pyarrow as pa
        # Sequences are read from the file, not from a memory map: touching one byte of a map can make megabytes around
        # it count as this process's memory. The map serves the small columns, and its pages are released at once.
        self._descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        self._map = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
        whole = pa.py_buffer(self._map)
        reader = pa.ipc.open_file(pa.BufferReader(whole))
        self._dtype = np.dtype(reader.schema.field("sequence").type.value_type.to_pandas_dtype())
        self._ids: list[Any] = []
        weighted = "weight" in reader.schema.names
        begins, widths, targets, fulls, weights = [], [], [], [], []
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            column = batch.column("sequence")
            ends = column.offsets.to_numpy()
            begins.append(column.values.buffers()[1].address - whole.address + ends[:-1] * self._dtype.itemsize)
            widths.append(np.diff(ends))
            targets.append(np.array(batch.column("target")))
            fulls.append(np.array(batch.column("full")))
            if weighted:
                weights.append(np.array(batch.column("weight")))
            self._ids.append(batch.column("id"))
            self._release()
        self._firsts = np.cumsum([0, *map(len, widths)])
        self._begins = _join(begins, np.int64)
        self.lengths: NDArray[np.int64] = _join(widths, np.int64) // (self.features or 1)
        """Length of every sequence."""
        self.targets: NDArray[Any] = _join(targets, np.int64 if self.classes else np.float64)
        """Class or value of every sequence."""
        self.full_lengths: NDArray[np.int64] = _join(fulls, np.int64)
        """Length of every sequence before it was cut."""
        self.weights: NDArray[np.float64] | None = _join(weights, np.float64) if weighted else None
        """How much every sequence counts in training; None for all alike."""

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, index: int) -> Item:
        """Return one sequence and its target."""
        index = self._index(index)
        values = self.part(index, 0, int(self.lengths[index]))
        return Item.from_array(values, self.targets[index], self.classes)

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return [self[index] for index in indices]

    def id(self, index: int) -> str:
        """Return the source's name for the sequence."""
        index = self._index(index)
        number = int(np.searchsorted(self._firsts, index, "right")) - 1
        name = str(self._ids[number][index - int(self._firsts[number])])
        self._release()
        return name

    def part(self, index: int, begin: int, end: int) -> NDArray[Any]:
        """Return positions ``begin`` to ``end`` of one sequence as stored. The rest is not read."""
        index = self._index(index)
        begin, end, _ = slice(begin, end).indices(int(self.lengths[index]))
        size = self._dtype.itemsize * (self.features or 1)
        place = int(self._begins[index]) + begin * size
        values = np.frombuffer(self._bytes(place, max(0, end - begin) * size), self._dtype)
        return values if self.features is None else values.reshape(-1, self.features)

    def _index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        return index % len(self)

    def _bytes(self, place: int, count: int) -> bytes:
        # Windows has no pread; there a map does not count as memory.
        return os.pread(self._descriptor, count, place) if hasattr(os, "pread") else self._map[place : place + count]

    def _release(self) -> None:
        """Release the pages of the map."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker process needs to open the file itself."""
        return {"path": self.path, "features": self.features, "classes": self.classes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _join(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)
