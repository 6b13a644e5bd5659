"""The Adding problem: add the two marked numbers of a long sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paramixer.data.definition import Definition
from paramixer.data.generated import Rule, draw_two_positions, make_loader
from paramixer.data.task import TaskInfo

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 0.04
"""A prediction that is off by this much or more counts as wrong."""


def compute_targets(sequences: Tensor) -> Tensor:
    """Return 0.5 + (sum of the marked numbers) / 4 for sequences ``[batch, length, 2]``."""
    numbers, marks = sequences.unbind(-1)
    return 0.5 + (numbers * marks).sum(-1) / 4


def _to_numbers(words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return two numbers from (-1, 1) per word, on a grid of 2^-23 without the ends."""
    return ((words.view(np.uint32) >> 8).astype(np.float32) + np.float32(0.5)) * np.float32(2**-23) - np.float32(1)


def _draw(words: NDArray[np.uint64], length: int) -> NDArray[np.float32]:
    sequence = np.zeros((length, 2), np.float32)
    sequence[:, 0] = _to_numbers(words[2:])[:length]
    # The marked numbers come from a word of their own, so that a target needs no sequence.
    positions = list(draw_two_positions(words[0], length))
    sequence[positions, 0] = _to_numbers(words[1:2])
    sequence[positions, 1] = 1
    return sequence


def _count_words(length: int) -> int:
    return 2 + (length + 1) // 2


def _draw_target(words: NDArray[np.uint64]) -> float:
    return 0.5 + float(_to_numbers(words[1:2]).sum()) / 4


_INFO = TaskInfo(name="adding", preset="adding", metric="error", target="value", length=1024, features=2)

TASKS = (
    Definition(
        name="adding",
        title="add the two marked numbers of a sequence",
        length="any",
        classes="a value",
        origin="generated",
        load=make_loader(_INFO, Rule(_count_words, _draw, _draw_target)),
    ),
)
