"""Paddles and discs as gray pixels, with soft edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paramixer.data.tasks.pathfinder.scenes import DIRECTIONS, Scenes

# Samples per pixel, down and across.
_ANTIALIAS = 2
# Ink is counted in whole steps, so that sums are exact and the same on every machine.
_FULL = 256


def draw(scenes: Scenes, discs: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return images ``[scenes, window, window]`` of the scenes, with discs around the points ``[scenes, discs, 2]``."""
    measures = scenes.plan.measures
    size = int(measures.window)
    headings = DIRECTIONS[scenes.headings]
    lines = _compute_coverage(size, scenes.points[:, :, 1], headings, measures.paddle / 2, measures.thickness / 2)
    spots = _compute_coverage(size, discs, np.broadcast_to(DIRECTIONS[0], discs.shape), 0, measures.marker)
    gray = np.minimum(np.maximum(lines * measures.contrast, spots), _FULL)
    return np.floor(gray * (255 / _FULL) + 0.5).astype(np.uint8)


def _compute_coverage(
    size: int, middles: NDArray[np.float64], headings: NDArray[np.float64], half: float, radius: float
) -> NDArray[np.float64]:
    """Return how much of every pixel is within the radius of lines of this half length; without length it is a disc."""
    count, side = len(middles), size * _ANTIALIAS
    reach = int(np.ceil((half + radius) * _ANTIALIAS)) + 1
    patch = np.arange(-reach, reach + 1)
    corners = np.floor(middles * _ANTIALIAS).astype(np.int64)
    rows = (corners[..., :1] + patch)[..., :, None]
    columns = (corners[..., 1:] + patch)[..., None, :]
    down = (rows + 0.5) / _ANTIALIAS - middles[..., :1, None]
    right = (columns + 0.5) / _ANTIALIAS - middles[..., 1:, None]
    sine, cosine = headings[..., :1, None], headings[..., 1:, None]
    beyond = np.maximum(np.abs(down * sine + right * cosine) - half, 0)
    beside = down * cosine - right * sine
    distances = np.sqrt(beyond * beyond + beside * beside)
    ink = np.floor(np.clip(0.5 + (radius - distances) * _ANTIALIAS, 0, 1) * _FULL)
    inked = (ink > 0) & (rows >= 0) & (rows < side) & (columns >= 0) & (columns < side)
    places = (np.arange(count)[:, None, None, None] * side + rows) * side + columns
    total = np.bincount(places[inked], ink[inked], count * side * side)
    mean: NDArray[np.float64] = total.reshape(count, size, _ANTIALIAS, size, _ANTIALIAS).sum((2, 4)) / _ANTIALIAS**2
    return mean
