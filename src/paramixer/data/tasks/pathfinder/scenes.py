"""Scenes of Pathfinder: dashed curves that keep their distance from each other and from themselves.

A scene is grown dash by dash ("paddle" by paddle), many scenes at once, each from random words of its own. Only sums,
products, square roots and rounded tables are used, whose results are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONTOUR_LENGTHS = {"easy": 6, "medium": 9, "hard": 14}
"""Paddles of a contour."""


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Measures of a scene of ``window`` x ``window`` pixels, in pixels."""

    window: float = 32
    """Side of the image."""
    padding: float = 1
    """Empty margin at the border."""
    paddle: float = 2
    """Length of a paddle."""
    thickness: float = 0.5
    """Thickness of a paddle."""
    margin: float = 1
    """Gap from a paddle to the next of its snake, and free space around every snake."""
    marker: float = 1.5
    """Radius of the discs at two ends."""
    seed_distance: float = 7
    """Distance between the beginnings of the two contours."""
    continuity: float = 1.0
    """A turn by t is as likely as cos(continuity t)^2."""
    distractors: int = 20
    """Approximate number of paddles in distractors."""
    contrast: float = 1.5
    """Brightness of a pixel that a paddle covers; the product of LRA's contrasts of snakes and of paddles."""


_LRA = {
    32: Measures(),
    128: Measures(
        window=128,
        paddle=5,
        thickness=1.5,
        margin=2.5,
        marker=3,
        seed_distance=20,
        continuity=1.8,
        distractors=35,
        contrast=0.9,
    ),
}


def choose_measures(size: int) -> Measures:
    """Return LRA's measures for 32 and 128 pixels, except its margins of 2 and 3; else those of 32, scaled."""
    if size in _LRA:
        return _LRA[size]
    lengths = ("window", "padding", "paddle", "thickness", "margin", "marker", "seed_distance")
    return replace(_LRA[32], **{name: getattr(_LRA[32], name) * size / 32 for name in lengths})


@dataclass(frozen=True, eq=False)
class Plan:
    """The order in which the paddles of a scene are placed: the contours, then the distractors."""

    measures: Measures
    """Of the scene."""
    contour: int
    """Paddles per contour."""
    snakes: NDArray[np.int64]
    """Snake of every paddle; 0 and 1 are the contours."""
    first: NDArray[np.int64]
    """First paddle of every paddle's snake."""
    before: NDArray[np.int64]
    """Paddle before every paddle in its snake; -1 for the first."""
    room: NDArray[np.float64]
    """Least squared distance of two paddles ``[paddles, paddles]``; 0 if there is none."""
    reach: NDArray[np.float64]
    """Squared distance of their middles below which they can be nearer than that."""
    edge: NDArray[np.float64]
    """Least distance of every paddle from the border."""
    turns: NDArray[np.int64]
    """Turns from one paddle to the next, in directions; all are equally likely."""


def plan_scenes(contour: int, measures: Measures) -> Plan:
    """Return the plan for contours of so many paddles, and distractors of a third of that."""
    short = contour // 3
    lengths = [contour, contour, *[short] * (measures.distractors // short)]
    number = np.arange(sum(lengths))
    first = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    before = np.where(number == first, -1, number - 1)
    # An end of a contour may carry a disc, which needs room too.
    is_end = np.isin(number, [0, contour - 1, contour, 2 * contour - 1])
    space = np.where(is_end, measures.marker + measures.margin / 2, measures.margin + measures.thickness / 2)
    # A paddle keeps its distance from those placed before it, except the one that it follows.
    concerned = (number < number[:, None]) & (number != before[:, None])
    apart = np.where(concerned, space[:, None] + space, 0)
    return Plan(
        measures=measures,
        contour=contour,
        snakes=np.repeat(np.arange(len(lengths)), lengths),
        first=first,
        before=before,
        room=apart**2,
        reach=np.where(concerned, apart + measures.paddle, 0) ** 2,
        edge=measures.padding + np.where(is_end, measures.marker, measures.thickness / 2),
        turns=_make_turns(measures.continuity),
    )


class Scenes(NamedTuple):
    """Scenes of one plan."""

    plan: Plan
    points: NDArray[np.float64]
    """Beginning, middle and end of every paddle, ``[scenes, paddles, 3, 2]``."""
    headings: NDArray[np.int64]
    """The direction of every paddle, ``[scenes, paddles]``."""

    def place_discs(self, contours: NDArray[np.int64], paths: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the discs' middles ``[scenes, 2, 2]``: where a contour begins, and where it or the other ends."""
        scenes, ending = np.arange(len(paths)), np.where(paths, contours, 1 - contours)
        begins = self.points[scenes, contours * self.plan.contour, 0]
        return np.stack([begins, self.points[scenes, (ending + 1) * self.plan.contour - 1, 2]], 1)


def grow_scenes(plan: Plan, words: Callable[[int, int], NDArray[np.uint64]], indices: Sequence[int]) -> Scenes:
    """Return the scenes of these indices.

    Args:
        plan: which paddles there are.
        words: takes an index and a count, and returns the first so many random words of that index.
        indices: of the scenes. A scene does not depend on those that are grown with it.
    """
    paddles = len(plan.before)
    # Coordinates first: arithmetic on long rows is much faster than on pairs.
    points = np.zeros((2, 3, len(indices), paddles))
    headings = np.zeros((len(indices), paddles), np.int64)
    placed = np.zeros(len(indices), np.int64)
    active = np.arange(len(indices))
    supply, rows, step = np.empty((0, 0, 0), np.uint64), active, 0
    while len(active):
        if step % _STEPS == 0:
            begin, end = step * _CANDIDATES, (step + _STEPS) * _CANDIDATES
            supply = np.stack([words(indices[scene], end)[begin:] for scene in active.tolist()])
            supply, rows = supply.reshape(len(active), _STEPS, _CANDIDATES), np.arange(len(active))
        step_words, now = supply[rows, step % _STEPS], placed[active]
        tails, turned = _propose(plan, step_words, points, headings, active, now)
        proposed = tails[:, None] + _ALONG * (plan.measures.paddle * _UNITS[:, turned])[:, None]
        fits = _find_fitting(plan, proposed, points, active, now)
        has_fit = fits.any(1)
        scenes, candidate, number = active[has_fit], fits[has_fit].argmax(1), now[has_fit]
        points[:, :, scenes, number] = proposed[:, :, has_fit, candidate]
        headings[scenes, number] = turned[has_fit, candidate]
        placed[scenes] += 1
        placed[active[~has_fit]] -= _choose_removals(plan, step_words[~has_fit, 0], now[~has_fit])
        unfinished = placed[active] < paddles
        active, rows = active[unfinished], rows[unfinished]
        step += 1
    return Scenes(plan, points.transpose(2, 3, 1, 0), headings)


def _propose(
    plan: Plan,
    words: NDArray[np.uint64],
    points: NDArray[np.float64],
    headings: NDArray[np.int64],
    active: NDArray[np.int64],
    now: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return candidate beginnings ``[2, scenes, candidates]`` and directions ``[scenes, candidates]`` of paddles."""
    measures, before = plan.measures, plan.before[now]
    old, any_direction = headings[active, before][:, None], (words >> 52).astype(np.int64)
    turned = (old + plan.turns[any_direction]) % len(DIRECTIONS)
    tails = points[:, 2, active, before][..., None] + measures.margin / 2 * (_UNITS[:, old] + _UNITS[:, turned])
    # The first contour begins in the middle, the second one beside it, and distractors anywhere.
    first = before < 0
    turned[first] = any_direction[first]
    words, now = words[first], now[first]
    anywhere = np.stack([words >> 32 & 0xFFFFF, words >> 12 & 0xFFFFF]).astype(np.float64) / 2**20
    # Its first paddle is twice as far from the border as the second contour is from it.
    edge = 2 * measures.seed_distance + measures.paddle / 2
    central = edge + anywhere * (measures.window - 2 * edge) - measures.paddle / 2 * _UNITS[:, turned[first]]
    around = (words >> 32).astype(np.int64) % len(DIRECTIONS)
    beside = points[:, 0, active[first], 0][..., None] + measures.seed_distance * _UNITS[:, around]
    choices = [now[:, None] == 0, now[:, None] == plan.contour]
    tails[:, first] = np.select(choices, [central, beside], anywhere * measures.window)
    return tails, turned


def _find_fitting(
    plan: Plan,
    proposed: NDArray[np.float64],
    points: NDArray[np.float64],
    active: NDArray[np.int64],
    now: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether each candidate is inside and far enough from all paddles but the one before it.

    Three points stand for a paddle; they are near enough to each other that no paddle could pass between them.
    """
    edge, placed = plan.edge[now][:, None], slice(0, now.max())
    fits = np.asarray(((proposed >= edge) & (proposed <= plan.measures.window - edge)).all((0, 1)))
    # Exact distances are computed only for paddles whose middles are near.
    apart = _square_distances(proposed[:, 1, ..., None], points[:, 1, active, None, placed])
    near = (apart < plan.reach[now, None, placed]) & fits[..., None]
    scenes, candidates, others = np.nonzero(near)
    nearest = _square_distances(
        proposed[:, :, None, scenes, candidates], points[:, None, :, active[scenes], others]
    ).min((0, 1))
    touching = nearest < plan.room[now[scenes], others]
    fits[scenes[touching], candidates[touching]] = False
    return fits


def _square_distances(these: NDArray[np.float64], those: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distances between points ``[2, ...]``."""
    down: NDArray[np.float64] = these[0] - those[0]
    right: NDArray[np.float64] = these[1] - those[1]
    down *= down
    right *= right
    down += right
    return down


def _choose_removals(plan: Plan, words: NDArray[np.uint64], now: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many paddles to remove if nothing fits: none, one, two, four or more, each half as likely as the last.

    They are the last of the same snake. One time in 256 all are removed, since a snake can block another one.
    """
    low: NDArray[np.int64] = (words & 0xFFF | 0x1000).astype(np.int64)
    lowest = low & -low
    return np.where(lowest > 0x80, now, np.minimum(lowest >> 1, now - plan.first[now]))


def _make_directions(count: int) -> NDArray[np.float64]:
    angles = np.arange(count) * (2 * np.pi / count)
    # Rounded, since the last bits of sines differ between machines.
    rounded: NDArray[np.float64] = np.rint(np.stack([np.sin(angles), np.cos(angles)], -1) * 2**16) / 2**16
    return rounded


def _make_turns(continuity: float) -> NDArray[np.int64]:
    """Return quantiles of the density cos(continuity t)^2, in directions."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, 2**14 + 1)
    shares = 0.5 + angles / np.pi + np.sin(2 * angles) / (2 * np.pi)
    middles = (np.arange(len(DIRECTIONS)) + 0.5) / len(DIRECTIONS)
    return np.rint(np.interp(middles, shares, angles) * (len(DIRECTIONS) / (2 * np.pi * continuity))).astype(np.int64)


DIRECTIONS = _make_directions(4096)
"""Unit vectors by number; the top 12 bits of a word choose one."""
# A scene takes so many words per step, and gets those for so many steps at once.
_CANDIDATES, _STEPS = 8, 64
_UNITS = np.ascontiguousarray(DIRECTIONS.T)
_ALONG = np.array([0, 0.5, 1])[:, None, None]
