"""Sequences in numpy's own files: .npy with the labels in a second one, or .npz with both."""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.samples import Sample

SUFFIXES = (".npy", ".npz")
_X = ("x", "data", "sequences", "inputs", "signals", "values")
_Y = ("y", "labels", "label", "targets", "target", "classes")
_SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "validation", "valid", "dev"),
    "test": ("test", "testing"),
}
# What numpy raises for files that are damaged or hold objects.
_BROKEN = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError, OSError, EOFError),
    *(
        SyntaxError,
        TokenError,
        SystemError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
    ),
)


class Part(NamedTuple):
    """The sequences of one split, or of all."""

    split: str | None
    sequences: NDArray[Any]
    """``[sequences, length]`` or ``[sequences, length, features]``."""
    targets: list[str | float]
    where: str
    """The file and the array, for messages."""


def is_arrays(path: Path) -> bool:
    """Whether the name says that it holds arrays."""
    return path.suffix.lower() in SUFFIXES


def opened(source: Path, labels: Path | None, text: str | None, label: str | None) -> list[Part]:
    """The arrays of a source. A .npy is mapped, not read; a .npz is held in memory.

    Args:
        source: a .npy with the sequences, or a .npz with sequences and labels: two arrays x and y, data and labels or
            the like, or x_train, y_train, x_test, y_test and perhaps x_val, y_val.
        labels: a .npy with the labels, for a .npy.
        text: the name of the array of sequences in a .npz.
        label: the name of the array of labels in a .npz.
    """
    if source.suffix.lower() == ".npy":
        if labels is None or labels.suffix.lower() != ".npy":
            raise DataError("a .npy needs its labels in a second .npy; name it with --labels", source)
        return [_part(None, _mapped(source), str(source), _mapped(labels), str(labels))]
    if labels is not None:
        raise DataError("a .npz holds the labels itself; name their array with --label", source)
    found = held(source)
    return [
        _part(split, found[x], f"{source}, array {x!r}", found[y], f"{source}, array {y!r}")
        for split, x, y in _pairs(found, source, text, label)
    ]


def hold_tokens(parts: list[Part]) -> bool:
    """Whether the arrays are token ids: bytes, one a position, as pictures and letters are stored.

    Any other whole numbers are numbers like all others.
    """
    return all(part.sequences.dtype == np.uint8 and part.sequences.ndim == 2 for part in parts)


def samples(parts: list[Part]) -> Iterator[Sample]:
    """The sequences one after another."""
    for part in parts:
        for number, (sequence, target) in enumerate(zip(part.sequences, part.targets, strict=True), 1):
            place = f"{part.where}, row {number}"
            yield Sample(sequence, target, place, part.split, str(number))


def rows(source: Path, name: str | None) -> Iterator[NDArray[Any]]:
    """The sequences of a .npy, or of one array of a .npz: the named one, or the one that is named like sequences."""
    if source.suffix.lower() == ".npy":
        found = _mapped(source)
    else:
        named = held(source)
        known = [array for array in named if array.lower() in _X] or list(named)
        if name is None and len(known) != 1:
            raise DataError(f"which array holds the sequences? name it with --text; it has {', '.join(named)}", source)
        if (name or known[0]) not in named:
            raise DataError(f"there is no array {name!r}; it has {', '.join(named)}", source)
        found = named[name or known[0]]
    if found.ndim < 2:
        raise DataError(f"an array of shape {list(found.shape)}; wanted is [sequences, length]", source)
    yield from found


def _mapped(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise DataError("there is no such file", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _real(np.load(path, mmap_mode="r", allow_pickle=False))
    except _BROKEN as error:
        raise _unreadable(path, error) from error


def held(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a .npz."""
    if not path.is_file():
        raise DataError("there is no such file", path)
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as packed:
            warnings.simplefilter("ignore")
            found = {}
            for name in packed.namelist():
                with packed.open(name) as file:
                    found[name.removesuffix(".npy")] = _real(np.lib.format.read_array(file, allow_pickle=False))
            return found
    except _BROKEN as error:
        raise _unreadable(path, error) from error


def _real(array: NDArray[Any]) -> NDArray[Any]:
    """Items of no width take no room in the file, however many it claims to have."""
    if array.dtype.itemsize == 0:
        raise ValueError("its items have no width")
    return array


def _unreadable(path: Path, error: BaseException) -> DataError:
    if path.stat().st_size == 0:
        return DataError("the file is empty", path)
    return DataError(f"it cannot be read as arrays of numbers: {error or type(error).__name__}", path)


def _pairs(
    found: dict[str, NDArray[Any]], source: Path, text: str | None, label: str | None
) -> list[tuple[str | None, str, str]]:
    """Split, array of sequences and array of labels."""
    there = ", ".join(f"{name} {list(array.shape)}" for name, array in found.items()) or "none"
    lower = {name.lower(): name for name in found}
    if text is not None or label is not None:
        for name in (text, label):
            if name not in found:
                raise DataError(f"--text and --label name two arrays; there are {there}, and no {name!r}", source)
        assert text is not None
        assert label is not None
        return [(None, text, label)]
    for x in _X:
        split = [
            (name, lower[f"{x}_{word}"], lower[f"{y}_{word}"])
            for name, words in _SPLITS.items()
            for word in words
            for y in _Y
            if f"{x}_{word}" in lower and f"{y}_{word}" in lower
        ]
        if split:
            return [*split]
    whole = [(lower[x], lower[y]) for x in _X for y in _Y if x in lower and y in lower]
    if not whole and len(found) == 2:
        one, other = sorted(found, key=lambda name: -found[name].ndim)
        whole = [(one, other)] if found[one].ndim > found[other].ndim else []
    if len(whole) != 1:
        raise DataError(f"which arrays are sequences and labels? There are {there}; use --text and --label", source)
    return [(None, *whole[0])]


def _part(split: str | None, x: NDArray[Any], where: str, y: NDArray[Any], beside: str) -> Part:
    if x.dtype.kind not in "biuf" or x.ndim not in (2, 3):
        raise DataError(
            f"{x.dtype} {list(x.shape)}; wanted are numbers [sequences, length] or [sequences, length, features]", where
        )
    if 0 in x.shape:
        raise DataError(f"an array of shape {list(x.shape)} holds nothing", where)
    if y.dtype.kind not in "biufU" or y.shape not in ((len(x),), (len(x), 1)):
        raise DataError(f"{y.dtype} {list(y.shape)}; wanted are {len(x)} labels, one a sequence", beside)
    try:
        targets = y.reshape(-1).tolist()
    except _BROKEN as error:
        raise DataError(f"its labels cannot be read: {error}", beside) from error
    return Part(split, x, [str(target).lower() if isinstance(target, bool) else target for target in targets], where)
