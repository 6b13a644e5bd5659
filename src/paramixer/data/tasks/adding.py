"""The Adding problem: read two marked numbers out of a long sequence and add them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from paramixer.data.generated import Rule, generated, two_places
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.task import Task, TaskInfo

TOLERANCE = 0.04
"""A prediction that is off by this much or more counts as wrong."""


def targets(sequences: Tensor) -> Tensor:
    """0.5 + the sum of the marked numbers / 4, for sequences ``[batch, length, 2]``."""
    numbers, marks = sequences.unbind(-1)
    return 0.5 + (numbers * marks).sum(-1) / 4


def _numbers(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Two numbers from (-1, 1) a word, on a grid of 2^-23 that leaves out both ends."""
    return ((words.view(np.uint32) >> 8).astype(np.float32) + np.float32(0.5)) * np.float32(2**-23) - np.float32(1)


def _draw(words: NDArray[np.uint64], length: int) -> NDArray[np.float32]:
    sequence = np.zeros((length, 2), np.float32)
    sequence[:, 0] = _numbers(words[2:])[:length]
    # The marked numbers have a word of their own, so that a target is known without the sequence.
    places = list(two_places(words[0], length))
    sequence[places, 0] = _numbers(words[1:2])
    sequence[places, 1] = 1
    return sequence


_RULE = Rule(
    words=lambda length: 2 + (length + 1) // 2,
    draw=_draw,
    target=lambda words: 0.5 + float(_numbers(words[1:2]).sum()) / 4,
)


def load(
    *,
    length: int = 1024,
    seed: int = 0,
    train: int | None = None,
    validation: int | None = None,
    test: int | None = None,
    count: Counter = silent,
) -> Task:
    """The task at any length; 100 000 / 5 000 / 5 000 sequences unless said otherwise."""
    info = TaskInfo(name="adding", preset="adding", metric="error", target="value", length=length, features=2)
    return generated(info, _RULE, seed, {"train": train, "validation": validation, "test": test})


TASKS = (
    Definition(
        name="adding",
        title="add the two marked numbers of a sequence",
        length="any",
        classes="a value",
        origin="generated",
        load=load,
    ),
)
