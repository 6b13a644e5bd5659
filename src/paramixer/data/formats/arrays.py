"""Sequences in numpy's files: .npy with the labels in a second one, or .npz with both."""

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
# Errors of numpy for files that are damaged or hold objects.
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
    """The sequences of one split, or all of them."""

    split: str | None
    """None if the source has no splits."""
    sequences: NDArray[Any]
    """``[sequences, length]`` or ``[sequences, length, features]``."""
    targets: list[str | float]
    place: str
    """File and array, for messages."""


def is_arrays(path: Path) -> bool:
    """Return whether the file's name is that of numpy arrays."""
    return path.suffix.lower() in SUFFIXES


def read_parts(source: Path, labels: Path | None, text: str | None, label: str | None) -> list[Part]:
    """Return the arrays of a source. A .npy is memory-mapped; a .npz is read into memory.

    Args:
        source: a .npy with the sequences, or a .npz with sequences and labels: two arrays such as x and y or data
            and labels, or x_train, y_train, x_test, y_test and perhaps x_val, y_val.
        labels: a .npy with the labels, for a .npy.
        text: the name of the array of sequences in a .npz.
        label: the name of the array of labels in a .npz.
    """
    if source.suffix.lower() == ".npy":
        if labels is None or labels.suffix.lower() != ".npy":
            raise DataError("a .npy needs its labels in a second .npy; name it with --labels", source)
        return [_make_part(None, _map_array(source), str(source), _map_array(labels), str(labels))]
    if labels is not None:
        raise DataError("a .npz holds the labels itself; name their array with --label", source)
    arrays = read_npz(source)
    return [
        _make_part(split, arrays[x], f"{source}, array {x!r}", arrays[y], f"{source}, array {y!r}")
        for split, x, y in _find_pairs(arrays, source, text, label)
    ]


def hold_tokens(parts: list[Part]) -> bool:
    """Return whether the arrays are token ids: bytes, one per position, as images and letters are stored.

    All other whole numbers are real inputs.
    """
    return all(part.sequences.dtype == np.uint8 and part.sequences.ndim == 2 for part in parts)


def read_samples(parts: list[Part]) -> Iterator[Sample]:
    """Yield the sequences one after another."""
    for part in parts:
        for number, (sequence, target) in enumerate(zip(part.sequences, part.targets, strict=True), 1):
            place = f"{part.place}, row {number}"
            yield Sample(sequence, target, place, part.split, str(number))


def read_rows(source: Path, name: str | None) -> Iterator[NDArray[Any]]:
    """Yield the sequences of a .npy, or of one array of a .npz: the named one, or the one named like sequences."""
    if source.suffix.lower() == ".npy":
        sequences = _map_array(source)
    else:
        arrays = read_npz(source)
        candidates = [array for array in arrays if array.lower() in _X] or list(arrays)
        if name is None and len(candidates) != 1:
            raise DataError(f"which array holds the sequences? Name it with --text; it has {', '.join(arrays)}", source)
        if (name or candidates[0]) not in arrays:
            raise DataError(f"there is no array {name!r}; it has {', '.join(arrays)}", source)
        sequences = arrays[name or candidates[0]]
    if sequences.ndim < 2:
        raise DataError(f"an array of shape {list(sequences.shape)}; expected [sequences, length]", source)
    yield from sequences


def _map_array(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise DataError("there is no such file", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _check_items(np.load(path, mmap_mode="r", allow_pickle=False))
    except _BROKEN as error:
        raise _make_read_error(path, error) from error


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of a .npz by name."""
    if not path.is_file():
        raise DataError("there is no such file", path)
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter("ignore")
            arrays = {}
            for name in archive.namelist():
                with archive.open(name) as file:
                    arrays[name.removesuffix(".npy")] = _check_items(np.lib.format.read_array(file, allow_pickle=False))
            return arrays
    except _BROKEN as error:
        raise _make_read_error(path, error) from error


def _check_items(array: NDArray[Any]) -> NDArray[Any]:
    """Refuse items of no width: a small file can claim any number of them."""
    if array.dtype.itemsize == 0:
        raise ValueError("its items have no width")
    return array


def _make_read_error(path: Path, error: BaseException) -> DataError:
    if path.stat().st_size == 0:
        return DataError("the file is empty", path)
    return DataError(f"it cannot be read as arrays of numbers: {error or type(error).__name__}", path)


def _find_pairs(
    arrays: dict[str, NDArray[Any]], source: Path, text: str | None, label: str | None
) -> list[tuple[str | None, str, str]]:
    """Return (split, array of sequences, array of labels) for each split."""
    listing = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "none"
    lower = {name.lower(): name for name in arrays}
    if text is not None or label is not None:
        for name in (text, label):
            if name not in arrays:
                raise DataError(f"--text and --label name two arrays; there are {listing}, and no {name!r}", source)
        if text == label:
            raise DataError(f"--text and --label both name {text!r}; each target would be its own input", source)
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
    if not whole and len(arrays) == 2:
        one, other = sorted(arrays, key=lambda name: -arrays[name].ndim)
        whole = [(one, other)] if arrays[one].ndim > arrays[other].ndim else []
    if len(whole) != 1:
        raise DataError(f"which arrays are sequences and labels? There are {listing}; use --text and --label", source)
    return [(None, *whole[0])]


def _make_part(split: str | None, x: NDArray[Any], place: str, y: NDArray[Any], label_place: str) -> Part:
    if x.dtype.kind not in "biuf" or x.ndim not in (2, 3):
        raise DataError(
            f"{x.dtype} {list(x.shape)}; expected numbers [sequences, length] or [sequences, length, features]", place
        )
    if 0 in x.shape:
        raise DataError(f"an array of shape {list(x.shape)} holds nothing", place)
    if y.dtype.kind not in "biufU" or y.shape not in ((len(x),), (len(x), 1)):
        raise DataError(f"{y.dtype} {list(y.shape)}; expected {len(x)} labels, one per sequence", label_place)
    try:
        targets = y.reshape(-1).tolist()
    except _BROKEN as error:
        raise DataError(f"its labels cannot be read: {error}", label_place) from error
    return Part(split, x, [str(target).lower() if isinstance(target, bool) else target for target in targets], place)
