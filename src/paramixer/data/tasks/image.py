"""Image: CIFAR-10 in gray, read pixel by pixel as 256 symbols."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from paramixer.data import task
from paramixer.data.errors import DataError
from paramixer.data.formats import archives, arrays, pickles
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.rng import permutation
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import Row
from paramixer.data.task import Preparation, Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
LENGTH = 32 * 32
_GIVEN = ("train", "test")
# Of red, green and blue.
_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)
_RECORD = 1 + 3 * LENGTH


class Part(NamedTuple):
    """Some images of one split."""

    split: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def load(*, source: Path, seed: int = 0, validation: int = 5000, count: Counter = silent) -> Task:
    """All images; the validation images are cut from the training images."""
    settings = {"seed": seed, "validation": validation}

    def build(preparation: Preparation) -> TaskInfo:
        parts = list(preparation.count(_parts(source), f"reading {source}"))
        if {part.split for part in parts} != {"train", "test"}:
            raise DataError(
                "no images of both splits; expected CIFAR-10's python or binary batches, PNG rows with labels, "
                "or a gray .npz",
                source,
            )
        images = {split: np.concatenate([part.images for part in parts if part.split == split]) for split in _GIVEN}
        labels = {split: np.concatenate([part.labels for part in parts if part.split == split]) for split in _GIVEN}
        if validation < 1 or validation >= len(images["train"]):
            raise DataError(f"validation={validation}; there are {len(images['train'])} training images", source)
        held_out = np.zeros(len(images["train"]), bool)
        held_out[permutation(len(held_out), seed)[:validation]] = True

        def rows() -> Iterator[tuple[str, Row]]:
            for split in _GIVEN:
                for number, (image, label) in enumerate(zip(images[split], labels[split], strict=True)):
                    own = "validation" if split == "train" and held_out[number] else split
                    yield own, Row(image, float(label), LENGTH, f"{split}/{number}")

        preparation.write(rows(), "uint8", sum(map(len, labels.values())))
        return TaskInfo(
            name="image",
            preset="image",
            metric="accuracy",
            target="class",
            length=LENGTH,
            classes=CLASSES,
            vocabulary=Vocabulary(symbols=tuple(map(str, range(256))), unit="number"),
            settings=settings,
        )

    return task.prepared("image", {"source": cache.identity(source), **settings}, build, count)


def gray(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Gray images ``[images, 1024]`` of colours ``[images, 1024, 3]``."""
    # Term by term in float32, so that halves are rounded alike everywhere.
    red, green, blue = (colours[..., colour].astype(np.float32) * _GRAY[colour] for colour in range(3))
    found: NDArray[np.uint8] = np.rint(red + green + blue).astype(np.uint8)
    return found


def _parts(source: Path) -> Iterator[Part]:
    if source.suffix == ".npz":
        yield from _from_arrays(source)
        return
    waiting: dict[str, NDArray[np.uint8]] = {}
    labels: dict[str, NDArray[np.int64]] = {}
    for name, read in archives.members(source):
        file = PurePosixPath(name)
        split = "train" if file.stem.startswith("data_batch") else "test" if file.stem == "test_batch" else None
        if file.suffix == ".json" and file.stem in _LABEL_FILES:
            labels[_LABEL_FILES[file.stem]] = _from_json(read(), f"{source}, {name}")
        elif split is not None and file.suffix == ".png":
            waiting[name] = _from_png(read(), f"{source}, {name}")
        elif split is not None and file.suffix in _READERS:
            yield _READERS[file.suffix](split, read(), f"{source}, {name}")
    yield from _with_labels(waiting, labels, source)


def _from_arrays(source: Path) -> Iterator[Part]:
    """An .npz with images that are gray already."""
    found = arrays.held(source)
    for split in _GIVEN:
        for name in (f"x_{split}", f"y_{split}"):
            if name not in found:
                raise DataError(f"there is no array {name!r}; it has {', '.join(found) or 'none'}", source)
        images = found[f"x_{split}"]
        if images.dtype != np.uint8 or images.size != len(images) * LENGTH or not len(images):
            shape = "x".join(map(str, images.shape))
            raise DataError(f"x_{split} is {images.dtype} {shape}, expected uint8 with {LENGTH} a row", source)
        yield Part(split, images.reshape(-1, LENGTH), _labels(found[f"y_{split}"], f"{source}, y_{split}"))


def _from_binary(split: str, data: bytes, where: str) -> Part:
    """Records of a label and 1024 bytes each of red, green and blue."""
    if not data or len(data) % _RECORD:
        raise DataError(f"{len(data)} bytes, which is no multiple of {_RECORD}; is it cut off?", where)
    records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    return Part(split, _from_planes(records[:, 1:]), _labels(records[:, 0], where))


def _from_pickle(split: str, data: bytes, where: str) -> Part:
    found = pickles.plain(data, where)
    named = {key.decode() if isinstance(key, bytes) else key: value for key, value in dict(found).items()}
    if "data" not in named or "labels" not in named:
        raise DataError("there are no data and labels in it", where)
    state = named["data"].state if isinstance(named["data"], pickles.Call) else None
    raw = state[-1] if isinstance(state, tuple) and state else None
    planes = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(planes, bytes) or not planes or len(planes) % (3 * LENGTH):
        raise DataError("its data is not an array of 3072 bytes an image", where)
    images = _from_planes(np.frombuffer(planes, np.uint8).reshape(-1, 3 * LENGTH))
    return _matched(Part(split, images, _labels(named["labels"], where)), where)


def _from_planes(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return gray(planes.reshape(-1, 3, LENGTH).transpose(0, 2, 1))


def _from_png(data: bytes, where: str) -> NDArray[np.uint8]:
    """A picture whose rows are images of 1024 pixels each."""
    try:
        with Image.open(io.BytesIO(data)) as picture:
            if picture.width != LENGTH:
                raise DataError(f"rows of {picture.width} pixels, expected {LENGTH}", where)
            return gray(np.asarray(picture.convert("RGB")))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not a readable picture ({error})", where) from error


def _with_labels(
    pictures: dict[str, NDArray[np.uint8]], labels: dict[str, NDArray[np.int64]], source: Path
) -> Iterator[Part]:
    for split in _GIVEN:
        own = [name for name in sorted(pictures) if ("test" in PurePosixPath(name).stem) == (split == "test")]
        if not own:
            continue
        if split not in labels:
            raise DataError(f"pictures of the {split} split, but no list of their labels ({split}_lables.json)", source)
        yield _matched(
            Part(split, np.concatenate([pictures[name] for name in own]), labels[split]), f"{source}, {split}"
        )


def _from_json(data: bytes, where: str) -> NDArray[np.int64]:
    try:
        return _labels(json.loads(data), where)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"not readable JSON ({error})", where) from error


def _labels(found: Any, where: str) -> NDArray[np.int64]:
    try:
        labels = np.asarray(found).reshape(-1).astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError("its labels are not whole numbers", where) from error
    if len(labels) == 0 or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise DataError(f"labels must be 0 to {len(CLASSES) - 1}", where)
    return labels


def _matched(part: Part, where: str) -> Part:
    if len(part.images) != len(part.labels):
        raise DataError(f"{len(part.images)} images but {len(part.labels)} labels", where)
    return part


# The package of PNG rows spells them so.
_LABEL_FILES = {"train_lables": "train", "train_labels": "train", "test_lables": "test", "test_labels": "test"}
_READERS: dict[str, Callable[[str, bytes, str], Part]] = {".bin": _from_binary, "": _from_pickle}

TASKS = (
    Definition(
        name="image",
        title="tell what is on a small gray picture, pixel by pixel",
        length="1024",
        classes="10",
        origin="CIFAR-10: its python or binary batches (or the .tar.gz), PNG rows, or a gray .npz",
        load=load,
    ),
)
