"""Pathfinder: does a dashed path lead from one marked end to the other? Images are read pixel by pixel.

Every image has two long dashed curves, the contours, and shorter ones as distractors. Discs mark where one contour
begins and where either the same one or the other ends. Scenes of both classes have the same distribution: the class is
drawn apart from the scene.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.rng import draw_bits
from paramixer.data.samples import Row
from paramixer.data.splits import Shares, choose_sizes
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.tasks.pathfinder import canvas, lra_files
from paramixer.data.tasks.pathfinder.scenes import CONTOUR_LENGTHS, Scenes, choose_measures, grow_scenes, plan_scenes
from paramixer.data.vocabulary import BYTES
from paramixer.data.workers import map_in_order

Difficulty = Literal["easy", "medium", "hard", "pooled"]

CLASSES = ("no path", "path")
# LRA has 200 000 images per difficulty and trains on 80 % of the hard ones; the paper pools all and trains on 90 %.
_SIZES = {"train": 160_000, "validation": 20_000, "test": 20_000}
_POOLED_SIZES = {"train": 540_000, "validation": 30_000, "test": 30_000}
# Version of the generator, part of the cache key.
_SCENES = 2
# Of one difficulty; smaller jobs would take longer.
_IMAGES_PER_JOB = 512
# Images drawn at once; more would not fit into the processor's cache.
_DRAW_AT_ONCE = 16
# Paddles of smaller images are too faint to follow.
_SMALLEST = 16


class Job(NamedTuple):
    """The images ``first`` to ``last`` of a split."""

    split: str
    first: int
    last: int
    seed: int
    size: int
    difficulty: Difficulty


class Group(NamedTuple):
    """Scenes of one difficulty, with their discs and classes."""

    indices: list[int]
    """Of the scenes in their split."""
    scenes: Scenes
    discs: NDArray[np.float64]
    """Middles of the discs, ``[scenes, 2, 2]``."""
    paths: NDArray[np.bool_]
    """Whether a path joins the discs of each scene."""


class Images(NamedTuple):
    """Images and their classes."""

    pixels: NDArray[np.uint8]
    """Gray values ``[images, size, size]``."""
    paths: NDArray[np.bool_]
    """Whether each has a path."""


def grow_groups(job: Job) -> Iterator[Group]:
    """Yield the job's scenes. Each depends on seed, split and its index alone; pooled difficulties alternate."""
    levels = _list_levels(job.difficulty)
    for number, level in enumerate(levels):
        indices = [index for index in range(job.first, job.last) if index // 2 % len(levels) == number]
        if not indices:
            continue
        # The first word of a scene is for its class.
        scenes = grow_scenes(
            plan_scenes(CONTOUR_LENGTHS[level], choose_measures(job.size)),
            lambda index, count: draw_bits(count + 1, job.seed, job.split, index)[1:],
            indices,
        )
        paths = np.array([_has_path(job.seed, job.split, index) for index in indices])
        contours = np.array([_choose_contour(job.seed, job.split, index) for index in indices])
        yield Group(indices, scenes, scenes.place_discs(contours, paths), paths)


def _list_levels(difficulty: Difficulty) -> list[str]:
    return list(CONTOUR_LENGTHS) if difficulty == "pooled" else [difficulty]


def _has_path(seed: int, split: str, index: int) -> bool:
    """Return whether the image has a path. Of two consecutive images one has, so that classes are balanced."""
    first = index - index % 2
    return bool((int(draw_bits(1, seed, split, first)[0]) >> 63) ^ (index - first))


def _choose_contour(seed: int, split: str, index: int) -> int:
    """Return which contour's beginning has a disc."""
    return int(draw_bits(1, seed, split, index)[0]) >> 62 & 1


def draw_images(job: Job) -> Images:
    """Return the job's images in the order of their indices."""
    pixels = np.empty((job.last - job.first, job.size, job.size), np.uint8)
    paths = np.empty(len(pixels), np.bool_)
    for group in grow_groups(job):
        places = np.array(group.indices) - job.first
        paths[places] = group.paths
        for first in range(0, len(places), _DRAW_AT_ONCE):
            part = slice(first, first + _DRAW_AT_ONCE)
            scenes = group.scenes._replace(points=group.scenes.points[part], headings=group.scenes.headings[part])
            pixels[places[part]] = canvas.draw(scenes, group.discs[part])
    return Images(pixels, paths)


def generate_rows(
    seed: int, sizes: dict[str, int], size: int, difficulty: Difficulty, workers: int | None = None
) -> Iterator[tuple[str, Row]]:
    """Yield every image with its split."""
    job_size = _IMAGES_PER_JOB * len(_list_levels(difficulty))
    jobs = [
        Job(split, first, min(first + job_size, count), seed, size, difficulty)
        for split, count in sizes.items()
        for first in range(0, count, job_size)
    ]
    for job, images in zip(jobs, map_in_order(draw_images, jobs, workers), strict=True):
        for index, (pixels, path) in enumerate(zip(images.pixels, images.paths.tolist(), strict=True), job.first):
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
    progress: Progress = no_progress,
) -> Task:
    """Return generated images, by default 160 000 / 20 000 / 20 000 (pooled 540 000 / 30 000 / 30 000), or LRA's.

    Args:
        source: LRA's folder of this size, like pathfinder32, or one of the curv_... folders in it.
        size: images have size x size pixels. 128 is LRA's Path-X.
        difficulty: contours of 6 paddles (easy), 9 (medium) or 14 (hard, which LRA uses), or all three (pooled, which
            the paper uses).
        length: the number of pixels; it need not be given.
        seed: of generated images, and of the random order in which a source is split.
        train: number of generated training images.
        validation: number of generated validation images.
        test: number of generated test images.
        progress: shows progress.
    """
    if difficulty not in get_args(Difficulty):
        raise DataError(f"difficulty={difficulty!r}; choose from {', '.join(get_args(Difficulty))}")
    size = check_integer("size", size, _SMALLEST)
    if length is not None and length != size * size:
        raise DataError(f"length={length}, but {size} x {size} images have {size * size} pixels; give size instead")
    given = {"train": train, "validation": validation, "test": test}
    settings: dict[str, Any] = {"difficulty": difficulty, "size": size, "seed": seed}
    if source is not None:
        if any(number is not None for number in given.values()):
            raise DataError("train, validation and test are numbers of generated images; leave them out with a source")
        return _load_lra(Path(source), size, difficulty, seed, {**settings, "source": "LRA"}, progress)
    sizes = choose_sizes(given, _POOLED_SIZES if difficulty == "pooled" else _SIZES)
    settings["sizes"] = sizes

    def build(preparation: Preparation) -> TaskInfo:
        preparation.write(generate_rows(seed, sizes, size, difficulty), BYTES.dtype, sum(sizes.values()))
        return TaskInfo(
            name="pathfinder",
            preset="pathfinder",
            metric="accuracy",
            target="class",
            length=size * size,
            classes=CLASSES,
            vocabulary=BYTES,
            settings=settings,
        )

    return prepare("pathfinder", {"task": "pathfinder", "scenes": _SCENES, **settings}, build, progress)


def _load_lra(
    source: Path, size: int, difficulty: Difficulty, seed: int, settings: dict[str, Any], progress: Progress
) -> Task:
    folders = lra_files.find_folders(source, _list_levels(difficulty))
    share = 0.05 if difficulty == "pooled" else 0.1

    def build(preparation: Preparation) -> TaskInfo:
        empty: set[Path] = set()
        info = write_samples(
            preparation,
            lambda: lra_files.read_samples(folders, size, CLASSES, empty),
            source=str(source),
            name="pathfinder",
            preset="pathfinder",
            length=size * size,
            seed=seed,
            settings=settings,
            shares=Shares(validation=share, test=share),
            metric="accuracy",
            target="class",
            vocabulary=BYTES,
            classes=CLASSES,
        )
        # The notes enter the fingerprint, so their wording stays.
        notes = (f"{len(empty)} image files are empty and were left out",) if empty else ()
        return dataclasses.replace(info, notes=(*info.notes, *notes))

    key = {"task": "pathfinder", **settings, "files": lra_files.identify(folders)}
    return prepare("pathfinder", key, build, progress)


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
