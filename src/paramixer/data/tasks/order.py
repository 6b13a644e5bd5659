"""Temporal Order: in which order do two signals, each X or Y, stand among noise?"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paramixer.data.generated import Rule, generated, two_places
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary

VOCABULARY = Vocabulary(symbols=tuple("abcdXY"))
"""Token ids 0 to 5; the first four are noise."""


def targets(tokens: Tensor) -> Tensor:
    """Classes XX, XY, YX, YY = 0 to 3 of token ids ``[batch, length]`` with two signals each."""
    signals = tokens[tokens >= 4].reshape(-1, 2) - 4
    return 2 * signals[:, 0] + signals[:, 1]


def encode(symbols: str) -> Tensor:
    """Token ids ``[length]`` of a string over the six symbols."""
    return torch.from_numpy(VOCABULARY.encode(symbols))


def _draw(words: NDArray[np.uint64], length: int) -> NDArray[np.int64]:
    octets = words[2:].view(np.uint8)
    tokens = np.stack([octets >> shift & 3 for shift in (0, 2, 4, 6)], -1).reshape(-1)[:length].astype(np.int64)
    first, second = sorted(two_places(words[0], length))
    signals = int(words[1]) % 4
    tokens[first], tokens[second] = 4 + signals // 2, 4 + signals % 2
    return tokens


_RULE = Rule(
    words=lambda length: 2 + (length + 31) // 32,
    draw=_draw,
    target=lambda words: int(words[1]) % 4,
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
    info = TaskInfo(
        name="order",
        preset="order",
        metric="error",
        target="class",
        length=length,
        classes=("XX", "XY", "YX", "YY"),
        vocabulary=VOCABULARY,
    )
    return generated(info, _RULE, seed, {"train": train, "validation": validation, "test": test})


TASKS = (
    Definition(
        name="order",
        title="tell the order of two signals among noise",
        length="any",
        classes="4",
        origin="generated",
        load=load,
    ),
)
