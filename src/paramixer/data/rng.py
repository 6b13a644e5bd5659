"""Random numbers from (seed, stream, index). Each can be drawn alone, and they are the same on every machine.

Only the raw bits of the Philox counter generator are used. numpy keeps these the same from version to version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# One stream per split, so that no two splits share random numbers.
STREAMS = {"train": 0, "validation": 1, "test": 2, "cut": 3}


def draw_bits(count: int, seed: int, stream: str, index: int) -> NDArray[np.uint64]:
    """Return ``count`` random 64-bit words for one item."""
    generator = np.random.Philox(counter=[0, index, STREAMS[stream], 0], key=seed % 2**64)
    words: NDArray[np.uint64] = generator.random_raw(count)
    return words


def permutation(count: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers 0 to count - 1 in a random order that depends on the seed alone."""
    return np.argsort(draw_bits(count, seed, "cut", 0), kind="stable")
