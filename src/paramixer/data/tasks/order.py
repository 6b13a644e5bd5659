"""Temporal Order: two signals, each X or Y, among noise; which are they, and in which order?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paramixer.data.definition import Definition
from paramixer.data.generated import Rule, draw_two_positions, make_loader
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

VOCABULARY = Vocabulary(symbols=tuple("abcdXY"))
"""Token ids 0 to 5; the first four are noise."""


def compute_targets(tokens: Tensor) -> Tensor:
    """Return the classes XX, XY, YX, YY = 0 to 3 of token ids ``[batch, length]`` with two signals each."""
    signals = tokens[tokens >= 4].reshape(-1, 2) - 4
    return 2 * signals[:, 0] + signals[:, 1]


def encode(symbols: str) -> Tensor:
    """Return the token ids ``[length]`` of a string over the six symbols."""
    import torch

    return torch.from_numpy(VOCABULARY.encode(symbols))


def _draw(words: NDArray[np.uint64], length: int) -> NDArray[np.int64]:
    octets = words[2:].view(np.uint8)
    tokens = np.stack([octets >> shift & 3 for shift in (0, 2, 4, 6)], -1).reshape(-1)[:length].astype(np.int64)
    first, second = sorted(draw_two_positions(words[0], length))
    signals = int(words[1]) % 4
    tokens[first], tokens[second] = 4 + signals // 2, 4 + signals % 2
    return tokens


def _count_words(length: int) -> int:
    return 2 + (length + 31) // 32


def _draw_target(words: NDArray[np.uint64]) -> int:
    return int(words[1]) % 4


_INFO = TaskInfo(
    name="order",
    preset="order",
    metric="error",
    target="class",
    length=1024,
    classes=("XX", "XY", "YX", "YY"),
    vocabulary=VOCABULARY,
)

TASKS = (
    Definition(
        name="order",
        title="tell the order of two signals among noise",
        length="any",
        classes="4",
        origin="generated",
        load=make_loader(_INFO, Rule(_count_words, _draw, _draw_target)),
    ),
)
