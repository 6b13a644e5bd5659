"""LRA's folders of Pathfinder pictures: PNG files, and lists of them with their labels.

A list has a row a picture: folder, file, number, label, and how it was drawn. LRA's lists are called .npy, but are
plain text; the program that draws such pictures writes true NumPy files. Both are read.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from paramixer.data.errors import DataError
from paramixer.data.samples import Sample
from paramixer.data.storage import cache

FOLDERS = {"easy": "curv_baseline", "medium": "curv_contour_length_9", "hard": "curv_contour_length_14"}
"""Of every difficulty."""
_NUMPY = b"\x93NUMPY"


def folders(source: Path, difficulties: Sequence[str]) -> list[Path]:
    """Where the pictures of these difficulties are: in the source, or the source itself."""
    if not source.is_dir():
        raise DataError("there is no such folder", source)
    if (source / "metadata").is_dir():
        actual = next((known for known, name in FOLDERS.items() if name == source.name), None)
        if len(difficulties) > 1 or actual not in (None, *difficulties):
            raise DataError(f"has the {actual or 'own'} pictures only; give its parent folder, or difficulty", source)
        return [source]
    found = [source / FOLDERS[difficulty] for difficulty in difficulties]
    for folder in found:
        if not (folder / "metadata").is_dir():
            raise DataError(f"there is no {folder.name}/metadata in it; give LRA's folder, like pathfinder32", source)
    return found


def identity(places: Iterable[Path]) -> list[Any]:
    """What the folders look like from outside. Hundreds of thousands of pictures are not looked at one by one."""
    return [
        [
            cache.identity(folder / "metadata"),
            [[part.name, part.stat().st_mtime_ns] for part in sorted(folder.glob("imgs/*"))],
        ]
        for folder in places
    ]


def samples(places: Iterable[Path], size: int, classes: tuple[str, str], empty: set[Path]) -> Iterator[Sample]:
    """Every picture as ``size * size`` gray values. Files of no bytes, one of which LRA has, are only collected."""
    for folder in places:
        for fields, place in _rows(folder / "metadata"):
            if len(fields) < 4:
                raise DataError(f"{len(fields)} fields; a row begins with folder, file, number and label", place)
            if fields[3] not in ("0", "1"):
                raise DataError(f"the label is {fields[3]!r}; it must be 0 or 1", place)
            relative = PurePosixPath(fields[0], fields[1])
            if relative.is_absolute() or ".." in relative.parts:
                raise DataError(f"{relative} is outside of the folder", place)
            file = folder / relative
            if not file.is_file():
                raise DataError(f"there is no picture {relative}", place)
            if file.stat().st_size == 0:
                empty.add(file)
                continue
            yield Sample(_pixels(file, size), classes[int(fields[3])], place, id=f"{folder.name}/{relative}")


def _rows(metadata: Path) -> Iterator[tuple[list[str], str]]:
    lists = sorted(metadata.glob("*.npy"), key=lambda file: (len(file.name), file.name))
    if not lists:
        raise DataError("there is no list (.npy) in it", metadata)
    for file in lists:
        data = file.read_bytes()
        if data.startswith(_NUMPY):
            for number, row in enumerate(_array(data, file)):
                yield row, f"{file}, row {number}"
            continue
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("is neither text in UTF-8 nor a NumPy file", file) from error
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield line.split(), f"{file}, line {number}"


def _array(data: bytes, file: Path) -> list[list[str]]:
    try:
        table: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    # Whatever a broken header makes of NumPy's parser.
    except Exception as error:
        raise DataError(
            f"cannot be read ({error}); it must be an array of strings, never of Python objects", file
        ) from error
    # Strings of no width take no room in the file, however many it claims to have.
    if table.ndim != 2 or table.dtype.kind not in "SU" or table.dtype.itemsize == 0:
        raise DataError(f"is an array of {table.dtype} with {table.ndim} axes; it must be a table of strings", file)
    if table.dtype.kind == "S":
        try:
            table = np.char.decode(table, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError("has strings that are not UTF-8", file) from error
    rows: list[list[str]] = table.tolist()
    return rows


def _pixels(file: Path, size: int) -> NDArray[np.uint8]:
    try:
        with Image.open(file, formats=("PNG",)) as picture:
            found = picture.size
            if found == (size, size):
                return np.asarray(picture.convert("L")).reshape(-1)
    # Pillow tells of broken files in many ways.
    except Exception as error:
        raise DataError(f"cannot be read as a PNG picture ({error})", file) from error
    raise DataError(f"is {found[0]} x {found[1]} pixels, not {size} x {size}; give size", file)
