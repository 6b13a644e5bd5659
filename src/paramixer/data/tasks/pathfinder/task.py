"""Pathfinder: does a dashed path lead from one marked end to the other? Pictures are read pixel by pixel.

Every picture has two long dashed curves, the contours, and shorter ones to distract. The discs mark where one contour
begins and where either the same one or the other ends. Both kinds are scenes of one distribution, and a scene does not
know which kind it will be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.rng import bits
from paramixer.data.samples import Shares, write_samples
from paramixer.data.storage.arrow import Row
from paramixer.data.task import SPLITS, Preparation, Task, TaskInfo, prepared
from paramixer.data.tasks.pathfinder import canvas, lra_files
from paramixer.data.tasks.pathfinder.scenes import CONTOUR_LENGTHS, Scenes, grown, measures, plan
from paramixer.data.vocabulary import Vocabulary
from paramixer.data.workers import in_order

Difficulty = Literal["easy", "medium", "hard", "pooled"]

CLASSES = ("no path", "path")
VOCABULARY = Vocabulary(symbols=tuple(map(str, range(256))), unit="number")
"""Shades of gray."""

# LRA has 200 000 pictures a difficulty and trains on 80 % of the hard ones; the paper pools all and trains on 90 %.
_SIZES = {"train": 160_000, "validation": 20_000, "test": 20_000}
_POOLED_SIZES = {"train": 540_000, "validation": 30_000, "test": 30_000}
# How scenes are drawn; what was prepared by another way is not taken for them.
_SCENES = 2
# Of one difficulty; fewer at once would take longer.
_PICTURES_A_JOB = 512
# So many are drawn at once; more would not stay in the processor's cache.
_DRAWN_AT_ONCE = 16
# Paddles of smaller pictures would be fainter than the eye, or a model, can follow.
_SMALLEST = 16


class Job(NamedTuple):
    """The pictures ``first`` to ``last`` of a split."""

    split: str
    first: int
    last: int
    seed: int
    size: int
    difficulty: Difficulty


class Group(NamedTuple):
    """Scenes of one difficulty, and what is marked in them."""

    indices: list[int]
    scenes: Scenes
    discs: NDArray[np.float64]
    """Middles of the discs, ``[scenes, 2, 2]``."""
    paths: NDArray[np.bool_]
    """Whether a path leads from one to the other."""


class Pictures(NamedTuple):
    """Some pictures ``[pictures, size, size]`` and whether each has a path."""

    pixels: NDArray[np.uint8]
    paths: NDArray[np.bool_]


def groups(job: Job) -> Iterator[Group]:
    """The job's scenes. Each follows from seed, split and its index; pooled difficulties take turns."""
    levels = _levels(job.difficulty)
    for number, level in enumerate(levels):
        indices = [index for index in range(job.first, job.last) if index // 2 % len(levels) == number]
        if not indices:
            continue
        # The first word of a scene is for its label.
        scenes = grown(
            plan(CONTOUR_LENGTHS[level], measures(job.size)),
            lambda index, count: bits(count + 1, job.seed, job.split, index)[1:],
            indices,
        )
        paths = np.array([_has_path(job.seed, job.split, index) for index in indices])
        contours = np.array([_marked_first(job.seed, job.split, index) for index in indices])
        yield Group(indices, scenes, scenes.marked(contours, paths), paths)


def _levels(difficulty: Difficulty) -> list[str]:
    return list(CONTOUR_LENGTHS) if difficulty == "pooled" else [difficulty]


def _has_path(seed: int, split: str, index: int) -> bool:
    """Of two pictures that follow each other one has a path, so that there are as many with as without."""
    first = index - index % 2
    return bool((int(bits(1, seed, split, first)[0]) >> 63) ^ (index - first))


def _marked_first(seed: int, split: str, index: int) -> int:
    """Which contour's beginning is marked."""
    return int(bits(1, seed, split, index)[0]) >> 62 & 1


def pictures(job: Job) -> Pictures:
    """The job's pictures in the order of their indices."""
    pixels = np.empty((job.last - job.first, job.size, job.size), np.uint8)
    paths = np.empty(len(pixels), np.bool_)
    for group in groups(job):
        places = np.array(group.indices) - job.first
        paths[places] = group.paths
        for first in range(0, len(places), _DRAWN_AT_ONCE):
            some = slice(first, first + _DRAWN_AT_ONCE)
            scenes = group.scenes._replace(points=group.scenes.points[some], headings=group.scenes.headings[some])
            pixels[places[some]] = canvas.drawn(scenes, group.discs[some])
    return Pictures(pixels, paths)


def rows(
    seed: int, sizes: dict[str, int], size: int, difficulty: Difficulty, workers: int | None = None
) -> Iterator[tuple[str, Row]]:
    """Every picture with its split."""
    together = _PICTURES_A_JOB * len(_levels(difficulty))
    jobs = [
        Job(split, first, min(first + together, count), seed, size, difficulty)
        for split, count in sizes.items()
        for first in range(0, count, together)
    ]
    for job, found in zip(jobs, in_order(pictures, jobs, workers), strict=True):
        for index, (pixels, path) in enumerate(zip(found.pixels, found.paths.tolist(), strict=True), job.first):
            yield job.split, Row(pixels.reshape(-1), int(path), pixels.size, f"{job.split}/{seed}/{index}")


def load(
    *,
    source: Path | None = None,
    size: int = 32,
    difficulty: Difficulty = "hard",
    length: int | None = None,
    seed: int = 0,
    train: int | None = None,
    validation: int | None = None,
    test: int | None = None,
    count: Counter = silent,
) -> Task:
    """Generated pictures, 160 000 / 20 000 / 20 000 (540 000 / 30 000 / 30 000 pooled), or LRA's folders.

    Args:
        source: LRA's folder of this size, like pathfinder32, or one of the curv_... folders in it.
        size: pictures are size x size pixels. 128 is LRA's Path-X.
        difficulty: contours of 6 paddles (easy), 9 (medium) or 14 (hard, which LRA uses), or all three (pooled, which
            the paper uses).
        length: the number of pixels, where one wants to say it.
        seed: of generated pictures, and of the cut of a source into splits.
        train: how many pictures are generated.
        validation: likewise.
        test: likewise.
        count: shows progress.
    """
    if difficulty not in get_args(Difficulty):
        raise DataError(f"difficulty={difficulty!r}; choose from {', '.join(get_args(Difficulty))}")
    if size < _SMALLEST:
        raise DataError(f"size={size}; pictures of fewer than {_SMALLEST} x {_SMALLEST} pixels cannot be followed")
    if length is not None and length != size * size:
        raise DataError(f"length={length}, but pictures of {size} x {size} pixels have {size * size}; say size instead")
    asked = {"train": train, "validation": validation, "test": test}
    settings: dict[str, Any] = {"difficulty": difficulty, "size": size, "seed": seed}
    if source is not None:
        if any(number is not None for number in asked.values()):
            raise DataError("train, validation and test say how many pictures to draw; leave them out with a source")
        return _read(Path(source), size, difficulty, seed, {**settings, "source": "LRA"}, count)
    default = _POOLED_SIZES if difficulty == "pooled" else _SIZES
    sizes = {split: default[split] if (number := asked[split]) is None else number for split in SPLITS}
    for split, number in sizes.items():
        if number < 1:
            raise DataError(f"{split}={number}; at least one picture is needed")
    settings["sizes"] = sizes

    def build(preparation: Preparation) -> TaskInfo:
        preparation.write(rows(seed, sizes, size, difficulty), VOCABULARY.dtype, sum(sizes.values()))
        return TaskInfo(
            name="pathfinder",
            preset="pathfinder",
            metric="accuracy",
            target="class",
            length=size * size,
            classes=CLASSES,
            vocabulary=VOCABULARY,
            settings=settings,
        )

    return prepared("pathfinder", {"task": "pathfinder", "scenes": _SCENES, **settings}, build, count)


def _read(source: Path, size: int, difficulty: Difficulty, seed: int, settings: dict[str, Any], count: Counter) -> Task:
    folders = lra_files.folders(source, _levels(difficulty))
    share = 0.05 if difficulty == "pooled" else 0.1

    def build(preparation: Preparation) -> TaskInfo:
        empty: set[Path] = set()
        info = write_samples(
            preparation,
            lambda: lra_files.samples(folders, size, CLASSES, empty),
            source=str(source),
            name="pathfinder",
            preset="pathfinder",
            length=size * size,
            seed=seed,
            settings=settings,
            shares=Shares(validation=share, test=share),
            metric="accuracy",
            target="class",
            vocabulary=VOCABULARY,
            classes=CLASSES,
        )
        left_out = (f"{len(empty)} image files are empty and were left out",) if empty else ()
        return dataclasses.replace(info, notes=(*info.notes, *left_out))

    key = {"task": "pathfinder", **settings, "files": lra_files.identity(folders)}
    return prepared("pathfinder", key, build, count)


TASKS = (
    Definition(
        name="pathfinder",
        title="tell whether a dashed path joins two marked ends, pixel by pixel",
        length="1024, or size x size",
        classes="2",
        origin="generated, or LRA's folder pathfinder32",
        load=load,
    ),
)
