"""ListOps: the value of a long nested expression of MIN, MAX, MED and SM (sum modulo 10).

Trees are grown level by level and dropped as soon as they are too long. Depth, arguments, lengths and the share of
operators are those of the Long Range Arena (LRA), whose own files can be read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.rng import draw_bits
from paramixer.data.samples import Row, Sample
from paramixer.data.splits import Shares, choose_sizes
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import PAD, Vocabulary
from paramixer.data.workers import map_in_order

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
CLASSES = tuple("0123456789")
VOCABULARY = Vocabulary(symbols=(PAD, *OPERATORS, "]", *CLASSES), unit="word")
"""PAD, operators, the end of an operator's arguments, digits."""
DEPTH, ARGUMENTS, SHORTEST = 10, 10, 500
"""Levels of a tree, digits included; most arguments of an operator; every tree has more tokens than SHORTEST."""

_SIZES = {"train": 96_000, "validation": 2_000, "test": 2_000}
_FILES = {"train": "basic_train.tsv", "validation": "basic_val.tsv", "test": "basic_test.tsv"}
_FIRST_OPERATOR, _END, _FIRST_DIGIT = (VOCABULARY.symbols.index(symbol) for symbol in ("[MIN", "]", "0"))
_TREES_PER_JOB = 1000

# A node is a random 32-bit word. A quarter of all words are operators: two bits choose which one, and the rest how many
# arguments it has. The other words are digits, chosen by the rest.
_OPERATOR_BELOW, _OPERATOR_SHIFT = np.uint32(1 << 30), np.uint32(28)
_REST = np.uint32((1 << 28) - 1)
_DIGIT = np.uint32(1 << 31)


class Trees(NamedTuple):
    """Trees: their tokens one after another, and the number of tokens and the value of each."""

    tokens: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    values: NDArray[np.int64]


class Job(NamedTuple):
    """The trees ``first`` to ``last`` of a split, with fewer than ``length`` tokens each."""

    split: str
    first: int
    last: int
    seed: int
    length: int


def grow_trees(job: Job) -> Trees:
    """Return the job's trees. Each depends on seed, split and its index alone."""
    indices = range(job.first, job.last)
    return _write_trees([_grow_levels(job.seed, job.split, index, job.length) for index in indices])


def _grow_levels(seed: int, split: str, index: int, length: int) -> list[NDArray[np.uint32]]:
    """Return the nodes of a tree of the right length, level by level."""
    tried, attempts = 0, 4
    while True:
        words = draw_bits(attempts * ((length + 1) // 2), seed, split, index)
        for nodes in words.view(np.uint32).reshape(attempts, -1)[tried:]:
            if (levels := _try_levels(nodes, length)) is not None:
                return levels
        tried, attempts = attempts, 4 * attempts


def _try_levels(nodes: NDArray[np.uint32], length: int) -> list[NDArray[np.uint32]] | None:
    """Return a tree of these nodes; None if it is too long or too short."""
    # A single digit would be too short, so the root is always an operator.
    level = nodes[:1] % _OPERATOR_BELOW
    levels, used, tokens = [level], 1, 2
    while (is_operator := level < _OPERATOR_BELOW).any():
        width = int(_count_arguments(level[is_operator]).sum())
        if tokens + width >= length:
            return None
        level = nodes[used : used + width]
        if len(levels) == DEPTH - 1:
            level = level | _DIGIT
        levels.append(level)
        used += width
        tokens += width + int(np.count_nonzero(level < _OPERATOR_BELOW))
    return levels if min(SHORTEST, length // 4) < tokens < length else None


def _count_arguments(operators: NDArray[np.uint32]) -> NDArray[np.int64]:
    return 2 + (operators & _REST).astype(np.int64) % (ARGUMENTS - 1)


def _write_trees(trees: list[list[NDArray[np.uint32]]]) -> Trees:
    """Return the trees: values from the leaves up, then positions from the roots down, for all at once."""
    levels = [np.concatenate(level) for level in zip_longest(*trees, fillvalue=np.empty(0, np.uint32))]
    # For every level: the tokens of each node with all below it, and its value.
    widths = [np.empty(0, np.int64) for _ in range(len(levels) + 1)]
    values = np.empty(0, np.int64)
    for depth in reversed(range(len(levels))):
        level, below = levels[depth], values
        widths[depth], values = np.ones(len(level), np.int64), _to_digits(level)
        is_operator = level < _OPERATOR_BELOW
        if is_operator.any():
            operators = level[is_operator]
            firsts = _count_before(_count_arguments(operators))
            widths[depth][is_operator] = 2 + np.add.reduceat(widths[depth + 1], firsts)
            values[is_operator] = _apply_operators(operators >> _OPERATOR_SHIFT, below, firsts)
    places = _count_before(widths[0])
    tokens = np.empty(int(widths[0].sum()), np.uint8)
    for depth, level in enumerate(levels):
        is_operator = level < _OPERATOR_BELOW
        operators, begins = level[is_operator], places[is_operator]
        tokens[places] = _FIRST_DIGIT + _to_digits(level)
        tokens[begins] = _FIRST_OPERATOR + (operators >> _OPERATOR_SHIFT)
        tokens[begins + widths[depth][is_operator] - 1] = _END
        counts, before = _count_arguments(operators), _count_before(widths[depth + 1])
        places = np.repeat(begins + 1 - before[_count_before(counts)], counts) + before
    return Trees(tokens, widths[0], values)


def _to_digits(nodes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return (nodes & _REST).astype(np.int64) % 10


def _count_before(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of the counts before each."""
    return np.cumsum(counts) - counts


def _apply_operators(
    operators: NDArray[np.uint32], arguments: NDArray[np.int64], firsts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the value of each operator. Its arguments begin at its first and end where the next one's begin."""
    counts = np.diff(firsts, append=len(arguments))
    owners = np.repeat(np.arange(len(firsts)), counts)
    ordered = arguments[np.lexsort((arguments, owners))]
    median = (ordered[firsts + (counts - 1) // 2] + ordered[firsts + counts // 2]) // 2
    results = [ordered[firsts], ordered[firsts + counts - 1], median, np.add.reduceat(arguments, firsts) % 10]
    return np.choose(operators, results)


def generate_rows(
    seed: int, sizes: dict[str, int], length: int, workers: int | None = None
) -> Iterator[tuple[str, Row]]:
    """Yield every tree with its split."""
    # Two equal trees of more than 500 tokens are less likely than a hardware fault, so duplicates are not searched.
    jobs = [
        Job(split, first, min(first + _TREES_PER_JOB, size), seed, length)
        for split, size in sizes.items()
        for first in range(0, size, _TREES_PER_JOB)
    ]
    for job, trees in zip(jobs, map_in_order(grow_trees, jobs, workers), strict=True):
        sequences = np.split(trees.tokens, np.cumsum(trees.lengths)[:-1])
        for index, (tokens, value) in enumerate(zip(sequences, trees.values.tolist(), strict=True), job.first):
            yield job.split, Row(tokens, value, len(tokens), f"{job.split}/{seed}/{index}")


def _read_samples(source: Path) -> Iterator[Sample]:
    """Yield the lines of LRA's files, without the parentheses."""
    known = {*OPERATORS, "]", *CLASSES}
    for split, name in _FILES.items():
        path = source / name
        number = 1
        with path.open("rb") as file:
            if file.readline().strip() != b"Source\tTarget":
                raise DataError("the first line must be Source and Target with a tab between", path, "line 1")
            for number, line in enumerate(file, 2):
                text, target = _split_fields(line, path, number)
                words = text.replace("(", " ").replace(")", " ").split()
                if unknown := set(words) - known:
                    raise DataError(f"{min(unknown)!r} is not a token of ListOps", path, f"line {number}")
                if not words:
                    raise DataError("there is no expression", path, f"line {number}")
                if target not in CLASSES:
                    raise DataError(f"the target is {target!r}; it must be a digit", path, f"line {number}")
                yield Sample(" ".join(words), target, f"{path}, line {number}", split, f"{split}/{number}")
        if number == 1:
            raise DataError("there is no tree after the first line", path)


def _split_fields(line: bytes, path: Path, number: int) -> tuple[str, str]:
    try:
        fields = line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 ({error.reason} at byte {error.start})", path, f"line {number}") from error
    if len(fields) != 2:
        raise DataError(f"{len(fields)} fields; there must be 2 with a tab between", path, f"line {number}")
    return fields[0], fields[1].strip()


def load(
    *,
    source: Path | None = None,
    length: int = 2000,
    seed: int = 0,
    train: int | None = None,
    validation: int | None = None,
    test: int | None = None,
    progress: Progress = no_progress,
) -> Task:
    """Return generated trees of fewer than ``length`` tokens, by default 96 000 / 2 000 / 2 000, or LRA's files.

    Args:
        source: the folder with basic_train.tsv, basic_val.tsv and basic_test.tsv.
        length: generated trees have fewer tokens, and more than 500 (a quarter of a length below 2000).
        seed: of generated trees.
        train: number of generated training trees.
        validation: number of generated validation trees.
        test: number of generated test trees.
        progress: shows progress.
    """
    given = {"train": train, "validation": validation, "test": test}
    if source is not None:
        if any(size is not None for size in given.values()):
            raise DataError("train, validation and test are numbers of generated trees; leave them out with a source")
        return _load_lra(Path(source), length, seed, progress)
    sizes = choose_sizes(given, _SIZES)
    # The smallest tree has 4 tokens.
    check_integer("length", length, 5)
    settings: dict[str, Any] = {"seed": seed, "sizes": sizes}

    def build(preparation: Preparation) -> TaskInfo:
        preparation.write(generate_rows(seed, sizes, length), VOCABULARY.dtype, sum(sizes.values()))
        return TaskInfo(
            name="listops",
            preset="listops",
            metric="accuracy",
            target="class",
            length=length,
            classes=CLASSES,
            vocabulary=VOCABULARY,
            settings=settings,
        )

    return prepare("listops", {"task": "listops", "length": length, **settings}, build, progress)


def _load_lra(source: Path, length: int, seed: int, progress: Progress) -> Task:
    for name in _FILES.values():
        if not (source / name).is_file():
            raise DataError(f"there is no file {name} in it; give the folder with LRA's listops files", source)
    files = [cache.identify(source / name) for name in _FILES.values()]

    def build(preparation: Preparation) -> TaskInfo:
        return write_samples(
            preparation,
            lambda: _read_samples(source),
            source=str(source),
            name="listops",
            preset="listops",
            length=length,
            seed=seed,
            settings={"source": "LRA"},
            shares=Shares(),
            metric="accuracy",
            target="class",
            vocabulary=VOCABULARY,
            classes=CLASSES,
        )

    return prepare("listops", {"task": "listops", "length": length, "source": files}, build, progress)


TASKS = (
    Definition(
        name="listops",
        title="evaluate a nested expression of lists",
        length="2000",
        classes="10",
        origin="generated, or the folder of LRA's listops files (basic_train.tsv, ...)",
        load=load,
    ),
)
