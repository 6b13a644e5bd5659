"""LRA's folders of Pathfinder images: PNG files, and lists of them with their labels.

A list has a row per image: folder, file, number, label, and how it was drawn. LRA's lists are named .npy but are plain
text; the program that draws such images writes true NumPy files. Both are read.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats.images import decode_image
from paramixer.data.samples import Sample
from paramixer.data.storage import cache

FOLDERS = {"easy": "curv_baseline", "medium": "curv_contour_length_9", "hard": "curv_contour_length_14"}
"""The folder of every difficulty."""
_NUMPY = b"\x93NUMPY"


def find_folders(source: Path, difficulties: Sequence[str]) -> list[Path]:
    """Return the folders of these difficulties: inside the source, or the source itself."""
    if not source.is_dir():
        raise DataError("there is no such folder", source)
    if (source / "metadata").is_dir():
        actual = next((known for known, name in FOLDERS.items() if name == source.name), None)
        if len(difficulties) > 1 or actual not in (None, *difficulties):
            raise DataError(f"only the {actual or 'own'} images; give its parent folder, or difficulty", source)
        return [source]
    folders = [source / FOLDERS[difficulty] for difficulty in difficulties]
    for folder in folders:
        if not (folder / "metadata").is_dir():
            raise DataError(f"there is no {folder.name}/metadata in it; give LRA's folder, like pathfinder32", source)
    return folders


def identify(folders: Iterable[Path]) -> list[Any]:
    """Return what identifies the folders' content, without reading the status of every image."""
    return [
        [
            cache.identify(folder / "metadata"),
            [[part.name, part.stat().st_mtime_ns] for part in sorted(folder.glob("imgs/*"))],
        ]
        for folder in folders
    ]


def read_samples(folders: Iterable[Path], size: int, classes: tuple[str, str], empty: set[Path]) -> Iterator[Sample]:
    """Yield every image as ``size * size`` gray values. Empty files, of which LRA has one, are only collected."""
    for folder in folders:
        for fields, place in _read_rows(folder / "metadata"):
            if len(fields) < 4:
                raise DataError(f"{len(fields)} fields; expected folder, file, number and label first", place)
            if fields[3] not in ("0", "1"):
                raise DataError(f"the label is {fields[3]!r}; it must be 0 or 1", place)
            relative = PurePosixPath(fields[0], fields[1])
            if relative.is_absolute() or ".." in relative.parts:
                raise DataError(f"{relative} is outside the folder", place)
            file = folder / relative
            if not file.is_file():
                raise DataError(f"there is no image {relative}", place)
            if file.stat().st_size == 0:
                empty.add(file)
                continue
            pixels = decode_image(file, "L", file, width=size, height=size, formats=("PNG",)).reshape(-1)
            yield Sample(pixels, classes[int(fields[3])], place, id=f"{folder.name}/{relative}")


def _read_rows(metadata: Path) -> Iterator[tuple[list[str], str]]:
    lists = sorted(metadata.glob("*.npy"), key=lambda file: (len(file.name), file.name))
    if not lists:
        raise DataError("there is no list (.npy) in it", metadata)
    for file in lists:
        data = file.read_bytes()
        if data.startswith(_NUMPY):
            for number, row in enumerate(_read_array(data, file)):
                yield row, f"{file}, row {number}"
            continue
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("neither text in UTF-8 nor a NumPy file", file) from error
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield line.split(), f"{file}, line {number}"


def _read_array(data: bytes, file: Path) -> list[list[str]]:
    try:
        table: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    # A broken header makes NumPy's parser raise many kinds of errors.
    except Exception as error:
        raise DataError(
            f"it cannot be read ({error}); expected an array of strings, never of Python objects", file
        ) from error
    # A small file can claim any number of strings of no width.
    if table.ndim != 2 or table.dtype.kind not in "SU" or table.dtype.itemsize == 0:
        raise DataError(f"an array of {table.dtype} with {table.ndim} axes; expected a table of strings", file)
    if table.dtype.kind == "S":
        try:
            table = np.char.decode(table, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError("strings that are not UTF-8", file) from error
    rows: list[list[str]] = table.tolist()
    return rows
