"""Image: CIFAR-10 in gray, read pixel by pixel as 256 symbols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.formats import archives, arrays, pickles
from paramixer.data.formats.images import decode_image, to_gray
from paramixer.data.progress import Progress, no_progress
from paramixer.data.rng import permutation
from paramixer.data.samples import Row
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import BYTES

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
LENGTH = 32 * 32
# The splits of the source.
_GIVEN = ("train", "test")
# Bytes per image in the binary version.
_RECORD = 1 + 3 * LENGTH


class Part(NamedTuple):
    """Some images of one split."""

    split: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def load(*, source: Path, seed: int = 0, validation: int = 5000, progress: Progress = no_progress) -> Task:
    """Return all images; the validation images are cut from the training images.

    Args:
        source: CIFAR-10 in one of its forms.
        seed: of the random order in which the validation images are cut.
        validation: how many there are.
        progress: shows progress.
    """
    validation = check_integer("validation", validation, 1)
    settings = {"seed": seed, "validation": validation}

    def build(preparation: Preparation) -> TaskInfo:
        parts = list(preparation.track(_read_parts(source), f"reading {source}"))
        if {part.split for part in parts} != {"train", "test"}:
            raise DataError(
                "no images of both splits; expected CIFAR-10's python or binary batches, PNG rows with labels, "
                "or a gray .npz",
                source,
            )
        images = {split: np.concatenate([part.images for part in parts if part.split == split]) for split in _GIVEN}
        labels = {split: np.concatenate([part.labels for part in parts if part.split == split]) for split in _GIVEN}
        if validation >= len(images["train"]):
            raise DataError(f"validation={validation}; there are only {len(images['train'])} training images", source)
        is_validation = np.zeros(len(images["train"]), bool)
        is_validation[permutation(len(is_validation), seed)[:validation]] = True

        def rows() -> Iterator[tuple[str, Row]]:
            for split in _GIVEN:
                for number, (image, label) in enumerate(zip(images[split], labels[split], strict=True)):
                    name = "validation" if split == "train" and is_validation[number] else split
                    yield name, Row(image, float(label), LENGTH, f"{split}/{number}")

        preparation.write(rows(), "uint8", sum(map(len, labels.values())))
        return TaskInfo(
            name="image",
            preset="image",
            metric="accuracy",
            target="class",
            length=LENGTH,
            classes=CLASSES,
            vocabulary=BYTES,
            settings=settings,
        )

    return prepare("image", {"source": cache.identify(source), **settings}, build, progress)


def _read_parts(source: Path) -> Iterator[Part]:
    if source.suffix == ".npz":
        yield from _read_arrays(source)
        return
    sheets: dict[str, NDArray[np.uint8]] = {}
    labels: dict[str, NDArray[np.int64]] = {}
    for name, read in archives.walk(source):
        file = PurePosixPath(name)
        split = "train" if file.stem.startswith("data_batch") else "test" if file.stem == "test_batch" else None
        if file.suffix == ".json" and file.stem in _LABEL_FILES:
            labels[_LABEL_FILES[file.stem]] = _read_labels(read(), f"{source}, {name}")
        elif split is not None and file.suffix == ".png":
            sheets[name] = _decode_png(read(), f"{source}, {name}")
        elif split is not None and file.suffix in _READERS:
            yield _READERS[file.suffix](split, read(), f"{source}, {name}")
    yield from _add_labels(sheets, labels, source)


def _read_arrays(source: Path) -> Iterator[Part]:
    """Yield the images of an .npz, which are gray already."""
    by_name = arrays.read_npz(source)
    for split in _GIVEN:
        for name in (f"x_{split}", f"y_{split}"):
            if name not in by_name:
                raise DataError(f"there is no array {name!r}; it has {', '.join(by_name) or 'none'}", source)
        images = by_name[f"x_{split}"]
        if images.dtype != np.uint8 or images.size != len(images) * LENGTH or not len(images):
            shape = "x".join(map(str, images.shape))
            raise DataError(f"x_{split} is {images.dtype} {shape}, expected uint8 with {LENGTH} per image", source)
        yield Part(split, images.reshape(-1, LENGTH), _check_labels(by_name[f"y_{split}"], f"{source}, y_{split}"))


def _decode_binary(split: str, data: bytes, place: str) -> Part:
    """Return the images of records: a label, and 1024 bytes each of red, green and blue."""
    if not data or len(data) % _RECORD:
        raise DataError(f"{len(data)} bytes, not a multiple of {_RECORD}; is it cut off?", place)
    records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    return Part(split, _gray_planes(records[:, 1:]), _check_labels(records[:, 0], place))


def _decode_pickle(split: str, data: bytes, place: str) -> Part:
    content = pickles.read_pickle(data, place)
    batch = content if isinstance(content, dict) else {}
    named = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    if "data" not in named or "labels" not in named:
        raise DataError("there are no data and labels in it", place)
    state = named["data"].state if isinstance(named["data"], pickles.Call) else None
    raw = state[-1] if isinstance(state, tuple) and state else None
    planes = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(planes, bytes) or not planes or len(planes) % (3 * LENGTH):
        raise DataError("its data is not an array of 3072 bytes per image", place)
    images = _gray_planes(np.frombuffer(planes, np.uint8).reshape(-1, 3 * LENGTH))
    return _check_count(Part(split, images, _check_labels(named["labels"], place)), place)


def _gray_planes(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return to_gray(planes.reshape(-1, 3, LENGTH).transpose(0, 2, 1))


def _decode_png(data: bytes, place: str) -> NDArray[np.uint8]:
    """Return the images of a PNG file, whose rows are images of 1024 pixels each."""
    return to_gray(decode_image(data, "RGB", place, width=LENGTH))


def _add_labels(
    sheets: dict[str, NDArray[np.uint8]], labels: dict[str, NDArray[np.int64]], source: Path
) -> Iterator[Part]:
    for split in _GIVEN:
        names = [name for name in sorted(sheets) if ("test" in PurePosixPath(name).stem) == (split == "test")]
        if not names:
            continue
        if split not in labels:
            raise DataError(f"images of the {split} split, but no list of their labels ({split}_labels.json)", source)
        yield _check_count(
            Part(split, np.concatenate([sheets[name] for name in names]), labels[split]), f"{source}, {split}"
        )


def _read_labels(data: bytes, place: str) -> NDArray[np.int64]:
    try:
        return _check_labels(json.loads(data), place)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"not readable JSON ({error})", place) from error


def _check_labels(values: Any, place: str) -> NDArray[np.int64]:
    try:
        labels = np.asarray(values).reshape(-1).astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError("its labels are not whole numbers", place) from error
    if len(labels) == 0 or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise DataError(f"labels must be 0 to {len(CLASSES) - 1}", place)
    return labels


def _check_count(part: Part, place: str) -> Part:
    if len(part.images) != len(part.labels):
        raise DataError(f"{len(part.images)} images but {len(part.labels)} labels", place)
    return part


# The second spelling is that of the package with PNG rows.
_LABEL_FILES = {"train_lables": "train", "train_labels": "train", "test_lables": "test", "test_labels": "test"}
_READERS: dict[str, Callable[[str, bytes, str], Part]] = {".bin": _decode_binary, "": _decode_pickle}

TASKS = (
    Definition(
        name="image",
        title="tell what is on a small gray image, pixel by pixel",
        length="1024",
        classes="10",
        origin="CIFAR-10: its python or binary batches (or the .tar.gz), PNG rows, or a gray .npz",
        load=load,
    ),
)
