"""ListOps: what does a long nested expression of MIN, MAX, MED and SM (sum modulo 10) come to?

Trees are grown level by level and given up as soon as they are too long. Depth, arguments, lengths and the share of
operators are those of the Long Range Arena (LRA), whose own files can be read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.rng import bits
from paramixer.data.samples import Sample, Shares, write_samples
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import Row
from paramixer.data.task import SPLITS, Preparation, Task, TaskInfo, prepared
from paramixer.data.vocabulary import PAD, Vocabulary
from paramixer.data.workers import in_order

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
CLASSES = tuple("0123456789")
VOCABULARY = Vocabulary(symbols=(PAD, *OPERATORS, "]", *CLASSES), unit="word")
"""PAD, operators, the end of an operator's arguments, digits."""
DEPTH, ARGUMENTS, SHORTEST = 10, 10, 500
"""Levels of a tree, digits included; most arguments of an operator; a tree has more tokens than the shortest."""

_SIZES = {"train": 96_000, "validation": 2_000, "test": 2_000}
_FILES = {"train": "basic_train.tsv", "validation": "basic_val.tsv", "test": "basic_test.tsv"}
_FIRST_OPERATOR, _END, _FIRST_DIGIT = (VOCABULARY.symbols.index(symbol) for symbol in ("[MIN", "]", "0"))
_TREES_A_JOB = 1000

# A node is a random 32-bit word. A quarter of all words are operators: two bits say which one, and the rest how many
# arguments it has. Of the others the rest says which digit they are.
_OPERATOR_BELOW, _OPERATOR_SHIFT = np.uint32(1 << 30), np.uint32(28)
_REST = np.uint32((1 << 28) - 1)
_DIGIT = np.uint32(1 << 31)


class Trees(NamedTuple):
    """Some trees: their tokens one after the other, how many tokens each has, and what each comes to."""

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


def trees(job: Job) -> Trees:
    """The job's trees, each of which follows from seed, split and its index."""
    indices = range(job.first, job.last)
    return _written([_grown(job.seed, job.split, index, job.length) for index in indices])


def _grown(seed: int, split: str, index: int, length: int) -> list[NDArray[np.uint32]]:
    """The nodes of a tree of the right length, level by level."""
    tried, attempts = 0, 4
    while True:
        words = bits(attempts * ((length + 1) // 2), seed, split, index)
        for nodes in words.view(np.uint32).reshape(attempts, -1)[tried:]:
            if (levels := _attempt(nodes, length)) is not None:
                return levels
        tried, attempts = attempts, 4 * attempts


def _attempt(nodes: NDArray[np.uint32], length: int) -> list[NDArray[np.uint32]] | None:
    """A tree of these nodes; None where it gets too long or stays too short."""
    # A tree that is a digit only would be too short, so the root can as well be an operator from the beginning.
    level = nodes[:1] % _OPERATOR_BELOW
    levels, used, tokens = [level], 1, 2
    while (is_operator := level < _OPERATOR_BELOW).any():
        width = int(_arguments(level[is_operator]).sum())
        if tokens + width >= length:
            return None
        level = nodes[used : used + width]
        if len(levels) == DEPTH - 1:
            level = level | _DIGIT
        levels.append(level)
        used += width
        tokens += width + int(np.count_nonzero(level < _OPERATOR_BELOW))
    return levels if min(SHORTEST, length // 4) < tokens < length else None


def _arguments(operators: NDArray[np.uint32]) -> NDArray[np.int64]:
    return 2 + (operators & _REST).astype(np.int64) % (ARGUMENTS - 1)


def _written(grown: list[list[NDArray[np.uint32]]]) -> Trees:
    """Values from the leaves up, then places from the roots down, for all trees at once."""
    levels = [np.concatenate(level) for level in zip_longest(*grown, fillvalue=np.empty(0, np.uint32))]
    # Of every level the tokens that each node takes with all below it, and what it comes to.
    widths = [np.empty(0, np.int64) for _ in range(len(levels) + 1)]
    values = np.empty(0, np.int64)
    for depth in reversed(range(len(levels))):
        level, below = levels[depth], values
        widths[depth], values = np.ones(len(level), np.int64), _digits(level)
        is_operator = level < _OPERATOR_BELOW
        if is_operator.any():
            operators = level[is_operator]
            firsts = _before(_arguments(operators))
            widths[depth][is_operator] = 2 + np.add.reduceat(widths[depth + 1], firsts)
            values[is_operator] = _applied(operators >> _OPERATOR_SHIFT, below, firsts)
    places = _before(widths[0])
    tokens = np.empty(int(widths[0].sum()), np.uint8)
    for depth, level in enumerate(levels):
        is_operator = level < _OPERATOR_BELOW
        operators, begins = level[is_operator], places[is_operator]
        tokens[places] = _FIRST_DIGIT + _digits(level)
        tokens[begins] = _FIRST_OPERATOR + (operators >> _OPERATOR_SHIFT)
        tokens[begins + widths[depth][is_operator] - 1] = _END
        counts, before = _arguments(operators), _before(widths[depth + 1])
        places = np.repeat(begins + 1 - before[_before(counts)], counts) + before
    return Trees(tokens, widths[0], values)


def _digits(nodes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return (nodes & _REST).astype(np.int64) % 10


def _before(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many there are before each."""
    return np.cumsum(counts) - counts


def _applied(
    operators: NDArray[np.uint32], arguments: NDArray[np.int64], firsts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What each operator makes of its arguments, which begin at its first and end where the next one's begin."""
    counts = np.diff(firsts, append=len(arguments))
    owners = np.repeat(np.arange(len(firsts)), counts)
    ordered = arguments[np.lexsort((arguments, owners))]
    median = (ordered[firsts + (counts - 1) // 2] + ordered[firsts + counts // 2]) // 2
    results = [ordered[firsts], ordered[firsts + counts - 1], median, np.add.reduceat(arguments, firsts) % 10]
    return np.choose(operators, results)


def rows(seed: int, sizes: dict[str, int], length: int, workers: int | None = None) -> Iterator[tuple[str, Row]]:
    """Every tree with its split."""
    # Two equal trees of more than 500 tokens are less likely than any fault of the machine, so nobody looks for them.
    jobs = [
        Job(split, first, min(first + _TREES_A_JOB, size), seed, length)
        for split, size in sizes.items()
        for first in range(0, size, _TREES_A_JOB)
    ]
    for job, found in zip(jobs, in_order(trees, jobs, workers), strict=True):
        sequences = np.split(found.tokens, np.cumsum(found.lengths)[:-1])
        for index, (tokens, value) in enumerate(zip(sequences, found.values.tolist(), strict=True), job.first):
            yield job.split, Row(tokens, value, len(tokens), f"{job.split}/{seed}/{index}")


def _samples(source: Path) -> Iterator[Sample]:
    """The lines of LRA's files, without the parentheses."""
    known = {*OPERATORS, "]", *CLASSES}
    for split, name in _FILES.items():
        path = source / name
        number = 1
        with path.open("rb") as file:
            if file.readline().strip() != b"Source\tTarget":
                raise DataError("the first line must be Source and Target with a tab between", path, "line 1")
            for number, line in enumerate(file, 2):
                text, target = _fields(line, path, number)
                words = text.replace("(", " ").replace(")", " ").split()
                if strange := set(words) - known:
                    raise DataError(f"{min(strange)!r} is no token of ListOps", path, f"line {number}")
                if not words:
                    raise DataError("there is no expression", path, f"line {number}")
                if target not in CLASSES:
                    raise DataError(f"the target is {target!r}; it must be a digit", path, f"line {number}")
                yield Sample(" ".join(words), target, f"{path}, line {number}", split, f"{split}/{number}")
        if number == 1:
            raise DataError("there is no tree after the first line", path)


def _fields(line: bytes, path: Path, number: int) -> tuple[str, str]:
    try:
        fields = line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 ({error.reason} at byte {error.start})", path, f"line {number}") from error
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
    count: Counter = silent,
) -> Task:
    """Generated trees with fewer than ``length`` tokens, 96 000 / 2 000 / 2 000 unless said otherwise, or LRA's files.

    Args:
        source: the folder with basic_train.tsv, basic_val.tsv and basic_test.tsv.
        length: generated trees have fewer tokens, and more than 500 (a quarter of a length below 2000).
        seed: of generated trees.
        train: how many trees are generated.
        validation: likewise.
        test: likewise.
        count: shows progress.
    """
    asked = {"train": train, "validation": validation, "test": test}
    if source is not None:
        if any(size is not None for size in asked.values()):
            raise DataError("train, validation and test say how many trees to generate; leave them out with a source")
        return _read(Path(source), length, seed, count)
    sizes = {split: _SIZES[split] if (size := asked[split]) is None else size for split in SPLITS}
    for split, size in sizes.items():
        if size < 1:
            raise DataError(f"{split}={size}; at least one tree is needed")
    if length < 5:
        raise DataError(f"length={length}; the smallest tree has 4 tokens, so that 5 is the least length")
    settings: dict[str, Any] = {"seed": seed, "sizes": sizes}

    def build(preparation: Preparation) -> TaskInfo:
        preparation.write(rows(seed, sizes, length), VOCABULARY.dtype, sum(sizes.values()))
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

    return prepared("listops", {"task": "listops", "length": length, **settings}, build, count)


def _read(source: Path, length: int, seed: int, count: Counter) -> Task:
    for name in _FILES.values():
        if not (source / name).is_file():
            raise DataError(f"there is no file {name} in it; give the folder with LRA's listops files", source)
    found = [cache.identity(source / name) for name in _FILES.values()]

    def build(preparation: Preparation) -> TaskInfo:
        return write_samples(
            preparation,
            lambda: _samples(source),
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

    return prepared("listops", {"task": "listops", "length": length, "source": found}, build, count)


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
