"""An explanation as a figure: maps drawn over an image, along a text or a genome, or below a curve."""

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

from paramixer.attribution import Explanation
from paramixer.report.sequence import SequenceView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Part of matplotlib.
_FONT = "DejaVu Sans Mono"
_WARM, _COOL, _MARK = "#c2502e", "#2166ac", "#e0a100"
# Letters of a sequence that have room side by side above the panels; times their size in points.
_MAX_STRIP, _STRIP_POINTS = 200, 1030.0
# Symbols shown around the position, and symbols per line: letters, words.
_SHOWN_LETTERS, _LETTERS_PER_LINE = 120, 60
_SHOWN_WORDS, _WORDS_PER_LINE = 48, 12
# More bars than this are thinner than a pixel.
_MAX_BARS = 1500
# From more chains on, columns are left out.
_MANY_CHAINS = 3

Map = tuple[str, NDArray[np.float64]]


def list_maps(explanation: Explanation) -> list[Map]:
    """Return all maps ``[length]`` of the explanation's first position, each with its title."""
    position = explanation.positions[0]
    chains = len(explanation.chains)
    maps: list[Map] = []
    if explanation.rows is not None and explanation.columns is not None:
        for number, name in enumerate(explanation.chains):
            matrix = f"the mixing matrix of {name}" if chains > 1 else "the mixing matrix"
            title = f"row {position} of {matrix}: where position {position} reads from"
            maps.append((title, _to_numpy(explanation.rows[number, 0])))
            # Of many chains the rows alone: where the position reads from.
            if chains <= _MANY_CHAINS:
                title = f"column {position} of {matrix}: which positions read from position {position}"
                maps.append((title, _to_numpy(explanation.columns[number, 0])))
    if explanation.rollout is not None and chains > 1:
        title = f"row {position} of the product of all blocks: where position {position} reads from in the end"
        maps.append((title, _to_numpy(explanation.rollout[0])))
    if explanation.jacobian is not None:
        title = f"Jacobian of position {position}: how strongly it depends on each position of the input"
        maps.append((title, _to_numpy(explanation.jacobian[0])))
    maps.append(("gradient x input: how much each position speaks for the answer", _to_numpy(explanation.evidence)))
    width = "1 position" if explanation.window == 1 else f"{explanation.window} positions at a time"
    title = f"occlusion, {width}: by how much the score of the answer falls without them"
    maps.append((title if explanation.window > 1 else title.replace("them", "it"), _to_numpy(explanation.occlusion)))
    return maps


def draw_explanation(view: SequenceView, explanation: Explanation, title: str) -> bytes:
    """Return a PNG of all maps; the view must have as many positions as the explanation."""
    maps, position = list_maps(explanation), explanation.positions[0]
    with mpl.rc_context({"font.size": 9, "text.parse_math": False}):
        figure = _draw_images(view, maps, position) if view.kind == "image" else _draw_tracks(view, maps, position)
        short = textwrap.shorten(title, 110, placeholder=" …")
        figure.suptitle("".join(map(_replace_undrawable, short)), fontsize=11, family=_FONT)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def draw_map_over_image(axes: Axes, values: NDArray[np.float64]) -> None:
    """Draw a map over an image: positive values warm, negative values cool, large values opaque."""
    largest = np.abs(values).max() or 1.0
    colors = np.where((values < 0)[..., None], mpl.colors.to_rgb(_COOL), mpl.colors.to_rgb(_WARM))
    axes.imshow(np.dstack([colors, 0.8 * np.sqrt(np.abs(values) / largest)]))


def _draw_images(view: SequenceView, maps: Sequence[Map], position: int) -> Figure:
    assert view.numbers is not None
    side = len(view.numbers)
    columns = min(4, len(maps) + 1)
    rows = -(-(len(maps) + 1) // columns)
    figure = Figure(figsize=(2.7 * columns, 3.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, values) in zip(panels, [("input", None), *maps], strict=False):
        axes.imshow(view.numbers, cmap="gray", vmin=0, vmax=255)
        if values is not None:
            draw_map_over_image(axes, values.reshape(side, side))
        axes.plot(position % side, position // side, "s", color=_MARK, fillstyle="none", markersize=6)
        axes.set_title(textwrap.fill(name, 32), fontsize=8)
    for axes in panels:
        axes.axis("off")
    return figure


def _draw_tracks(view: SequenceView, maps: Sequence[Map], position: int) -> Figure:
    """Draw the input and every map below each other on one x axis, with the position marked in each."""
    in_lines = bool(view.symbols) and (view.kind == "words" or view.length > _MAX_STRIP)
    top = 1.3 if in_lines else 0.6 if view.symbols else 1.5
    heights = [top, *[1.0] * len(maps)]
    figure = Figure(figsize=(10, 1.0 * sum(heights) + 0.6), layout="constrained")
    first, *below = figure.subplots(len(heights), 1, height_ratios=heights)
    tracks = below if in_lines else [first, *below]
    for axes in tracks[:-1]:
        axes.sharex(tracks[-1])
        axes.tick_params(labelbottom=False)
    shown = None
    if in_lines:
        shown = _draw_lines(first, view, maps[0], position)
    elif view.symbols:
        _draw_strip(first, view, maps[0], position)
    else:
        assert view.numbers is not None
        first.plot(view.numbers, linewidth=0.8)
        first.set_title("input", fontsize=9, loc="left")
    for axes, (name, values) in zip(below, maps, strict=True):
        bars, width = _pool_by_magnitude(values)
        edges = np.arange(len(bars) + 1) * width - 0.5
        if shown is not None and len(shown) < view.length:
            axes.axvspan(shown.start - 0.5, shown.stop - 0.5, color="0.93", zorder=0)
        # One polygon: thousands of single bars would take seconds.
        axes.stairs(np.maximum(bars, 0), edges, fill=True, color=_WARM)
        axes.stairs(np.minimum(bars, 0), edges, fill=True, color=_COOL)
        axes.set_title(name + _limit_to_others(axes, values, position), fontsize=9, loc="left")
    for axes in tracks:
        axes.axvspan(position - 0.5, position + 0.5, color=_MARK, alpha=0.45, linewidth=1.5, zorder=0.5)
        # Above the panel, where no bar covers it.
        axes.plot(position, 1, "v", color=_MARK, transform=axes.get_xaxis_transform(), clip_on=False, markersize=6)
        axes.spines[["top", "right"]].set_visible(False)
    tracks[-1].set_xlim(-0.5, len(maps[0][1]) - 0.5)
    tracks[-1].xaxis.set_major_locator(MaxNLocator(12, integer=True))
    tracks[-1].set_xlabel("position")
    return figure


def _limit_to_others(axes: Axes, values: NDArray[np.float64], position: int) -> str:
    """Limit the y axis to the other positions where this one would dwarf them; return a note for the title.

    The diagonal of A is often much larger than the rest of a row.
    """
    others = np.delete(values, position)
    if not len(others) or abs(values[position]) <= 4 * np.abs(others).max() or not others.any():
        return ""
    low, high = min(0.0, others.min()), max(0.0, others.max())
    margin = 0.25 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    return f" (bar at {position} cut off: {values[position]:.3g})"


def _draw_strip(axes: Axes, view: SequenceView, colored_by: Map, position: int) -> None:
    """Draw every symbol at its position, on the color of its value in a map."""
    size = min(9.0, _STRIP_POINTS / view.length)
    _, values = colored_by
    for number, color in enumerate(_color(values)):
        axes.axvspan(number - 0.5, number + 0.5, color=color, linewidth=0)
        symbol = "".join(map(_replace_undrawable, view.symbols[number]))
        weight = "bold" if number == position else "normal"
        axes.text(number, 0.5, symbol, family=_FONT, ha="center", va="center", fontsize=size, weight=weight)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.set_title("input, colored by the first panel", fontsize=9, loc="left")


def _draw_lines(axes: Axes, view: SequenceView, colored_by: Map, position: int) -> range:
    """Draw the symbols around a position in lines, each on the color of its value in a map; return their positions."""
    _, values = colored_by
    words = view.kind == "words"
    per_line = _WORDS_PER_LINE if words else _LETTERS_PER_LINE
    count = min(view.length, _SHOWN_WORDS if words else _SHOWN_LETTERS)
    first = max(0, min(position - count // 2, view.length - count))
    lines = -(-count // per_line)
    for number, color in enumerate(_color(values[first : first + count]), first):
        row, column = divmod(number - first, per_line)
        box = {"facecolor": color, "edgecolor": _MARK if number == position else "none", "pad": 1.2}
        symbol = "".join(map(_replace_undrawable, view.symbols[number]))
        axes.text(column + 0.5, -row, symbol, family=_FONT, ha="center", va="center", bbox=box, fontsize=8)
    axes.set_xlim(0, per_line)
    axes.set_ylim(-lines + 0.4, 0.6)
    rest = ", gray below" if count < view.length else ""
    axes.set_title(
        f"input, positions {first} to {first + count - 1}{rest}, colored by the first panel", fontsize=9, loc="left"
    )
    axes.axis("off")
    return range(first, first + count)


def _color(values: NDArray[np.float64]) -> list[tuple[float, ...]]:
    """Return a color for each value: warm or cool, the stronger, the larger."""
    magnitudes = np.abs(values)
    # The second largest: the position's own value is often much larger than the others.
    largest = (np.partition(magnitudes, -2)[-2] if len(values) > 1 else magnitudes.max()) or 1.0
    strengths = 0.8 * np.minimum(1.0, magnitudes / largest)
    return [
        mpl.colors.to_rgba(_COOL if value < 0 else _WARM, strength)
        for value, strength in zip(values, strengths, strict=True)
    ]


def _replace_undrawable(letter: str) -> str:
    """Return the letter, a blank if it is not printable, or a box if the font lacks it."""
    if not letter.isprintable():
        return " "
    return letter if get_font(findfont(_FONT)).get_char_index(ord(letter)) else "□"


def _pool_by_magnitude(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the value of largest magnitude in each of at most ``_MAX_BARS`` bins, and the positions per bin."""
    if len(values) <= _MAX_BARS:
        return values, 1.0
    bins = np.array_split(values, _MAX_BARS)
    return np.array([part[np.abs(part).argmax()] for part in bins]), len(values) / _MAX_BARS


def _to_numpy(tensor: object) -> NDArray[np.float64]:
    return np.asarray(tensor, np.float64)
