"""An explanation as a picture: maps drawn over an image, along a text or a genome, or under a curve."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from paramixer.explain import Explanation
from paramixer.report.sequence import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# matplotlib brings it along.
_FONT = "DejaVu Sans Mono"
_WARM, _COOL, _MARK = "#c2502e", "#2166ac", "#e0a100"
# Letters that are shown around a position, and how many stand in a line.
_AROUND, _LINE = 60, 60
# More columns than this would be thinner than a pixel.
_COLUMNS = 1500

Map = tuple[str, NDArray[np.float64]]


def maps_of(found: Explanation) -> list[Map]:
    """The maps of an explanation's first position, and the evidence, each with its name."""
    place = found.positions[0]
    blocks = 0 if found.rows is None else len(found.rows)
    maps: list[Map] = []
    if found.rows is not None and found.columns is not None:
        for block in range(blocks):
            of = f" of block {block + 1}" if blocks > 1 else ""
            maps.append((f"feeds {place}: row of A{of}", _numbers(found.rows[block, 0])))
            maps.append((f"is fed by {place}: column of A{of}", _numbers(found.columns[block, 0])))
    if found.rollout is not None and blocks > 1:
        maps.append((f"feeds {place}: product of all blocks' A (rollout)", _numbers(found.rollout[0])))
    if found.jacobian is not None:
        maps.append((f"moves {place}: norm of the derivative", _numbers(found.jacobian[0])))
    maps.append(("evidence: gradient x input", _numbers(found.evidence)))
    blotted = f"{found.window} positions are" if found.window > 1 else "a position is"
    maps.append((f"evidence: fall when {blotted} blotted out", _numbers(found.occlusion)))
    return maps


def draw(look: Look, found: Explanation, title: str) -> bytes:
    """The picture as PNG; the look must have as many positions as the explanation."""
    maps, place = maps_of(found), found.positions[0]
    with mpl.rc_context({"font.size": 9, "text.parse_math": False}):
        figure = _images(look, maps, place) if look.kind == "image" else _tracks(look, maps, place)
        short = textwrap.shorten(title, 110, placeholder=" …")
        figure.suptitle("".join(map(_drawable, short)), fontsize=11, family=_FONT)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def _images(look: Look, maps: Sequence[Map], place: int) -> Figure:
    assert look.numbers is not None
    side = len(look.numbers)
    across = min(4, len(maps) + 1)
    down = -(-(len(maps) + 1) // across)
    figure = Figure(figsize=(2.7 * across, 3.0 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, (name, values) in zip(panels, [("the input", None), *maps], strict=False):
        axes.imshow(look.numbers, cmap="gray", vmin=0, vmax=255)
        if values is not None:
            draw_over(axes, values.reshape(side, side))
            axes.plot(place % side, place // side, "s", color=_MARK, fillstyle="none", markersize=6)
        axes.set_title(textwrap.fill(name, 30), fontsize=8)
    for axes in panels:
        axes.axis("off")
    return figure


def draw_over(axes: Axes, values: NDArray[np.float64]) -> None:
    """A map over an image: warm for what adds, cool for what takes away, the stronger the less transparent."""
    most = np.abs(values).max() or 1.0
    colours = np.where((values < 0)[..., None], mpl.colors.to_rgb(_COOL), mpl.colors.to_rgb(_WARM))
    axes.imshow(np.dstack([colours, 0.8 * np.sqrt(np.abs(values) / most)]))


def _tracks(look: Look, maps: Sequence[Map], place: int) -> Figure:
    lettered = bool(look.symbols)
    heights = [1.6, *[1.0] * len(maps)]
    figure = Figure(figsize=(10, 1.1 * sum(heights)), layout="constrained")
    top, *below = figure.subplots(len(heights), 1, height_ratios=heights)
    if lettered:
        _letters(top, look, maps[0], place)
    else:
        assert look.numbers is not None
        top.plot(look.numbers, linewidth=0.8)
        top.set_xlim(-0.5, look.length - 0.5)
        top.set_title("the input", fontsize=8, loc="left")
    for axes, (name, values) in zip(below, maps, strict=True):
        bars, width = _pooled(values)
        places = (np.arange(len(bars)) + 0.5) * width - 0.5
        axes.axvspan(place - 0.5, place + 0.5, color=_MARK, alpha=0.5, linewidth=2)
        axes.bar(places, np.maximum(bars, 0), width, color=_WARM)
        axes.bar(places, np.minimum(bars, 0), width, color=_COOL)
        axes.set_xlim(-0.5, len(values) - 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(name + _cut_to_the_rest(axes, values, place), fontsize=8, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    below[-1].set_xlabel("position")
    return figure


def _cut_to_the_rest(axes: Axes, values: NDArray[np.float64], place: int) -> str:
    """A position often feeds mostly itself: its bar is cut where all else would be flat, and this is said."""
    rest = np.delete(values, place)
    if not len(rest) or abs(values[place]) <= 4 * np.abs(rest).max() or not rest.any():
        return ""
    low, high = min(0.0, rest.min()), max(0.0, rest.max())
    room = 0.25 * (high - low)
    axes.set_ylim(low - room, high + room)
    return f" (itself {values[place]:.3g}, cut)"


def _letters(axes: Axes, look: Look, shown: Map, place: int) -> None:
    """The symbols around a position, in lines, each in the colour of its value."""
    name, values = shown
    words = look.kind == "words"
    line = 12 if words else _LINE
    count = min(look.length, 2 * _AROUND if not words else 48)
    first = max(0, min(place - count // 2, look.length - count))
    shown_values = np.abs(values[first : first + count])
    most = np.partition(shown_values, -2)[-2] if count > 1 else shown_values.max()
    most = most or 1.0
    lines = -(-count // line)
    for number in range(first, first + count):
        row, column = divmod(number - first, line)
        colour = mpl.colors.to_rgba(_COOL if values[number] < 0 else _WARM, 0.8 * min(1.0, abs(values[number]) / most))
        box = {"facecolor": colour, "edgecolor": _MARK if number == place else "none", "pad": 1.2}
        symbol = "".join(map(_drawable, look.symbols[number]))
        axes.text(column + 0.5, -row, symbol, family=_FONT, ha="center", va="center", bbox=box, fontsize=8)
    axes.set_xlim(0, line)
    axes.set_ylim(-lines + 0.4, 0.6)
    axes.set_title(f"positions {first} to {first + count - 1}, coloured by: {name}", fontsize=8, loc="left")
    axes.axis("off")


def _drawable(letter: str) -> str:
    """The letter, a blank for what cannot be seen, or a box for what the font lacks."""
    if not letter.isprintable():
        return " "
    return letter if get_font(findfont(_FONT)).get_char_index(ord(letter)) else "□"


def _pooled(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The largest value by size in each of at most so many columns, and how many positions a column is."""
    if len(values) <= _COLUMNS:
        return values, 1.0
    parts = np.array_split(values, _COLUMNS)
    return np.array([part[np.abs(part).argmax()] for part in parts]), len(values) / _COLUMNS


def _numbers(tensor: object) -> NDArray[np.float64]:
    return np.asarray(tensor, np.float64)
