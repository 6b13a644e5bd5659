"""Random numbers from (seed, stream, index): any of them can be drawn alone, and they are the same on every machine.

Only the raw bits of the Philox counter generator are used, which numpy keeps the same from version to version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# One stream a split, so that splits never share a sequence by design.
STREAMS = {"train": 0, "validation": 1, "test": 2, "cut": 3}


def bits(count: int, seed: int, stream: str, index: int) -> NDArray[np.uint64]:
    """Raw 64-bit words for one item."""
    generator = np.random.Philox(counter=[0, index, STREAMS[stream], 0], key=seed % 2**64)
    words: NDArray[np.uint64] = generator.random_raw(count)
    return words


def permutation(count: int, seed: int) -> NDArray[np.int64]:
    """The numbers 0 .. count in a random order that follows from the seed alone."""
    return np.argsort(bits(count, seed, "cut", 0), kind="stable")
