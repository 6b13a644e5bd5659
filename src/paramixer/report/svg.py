"""Charts as SVG elements: drawn by matplotlib, in colors that follow the page's light or dark theme."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Placeholder colors; each becomes a variable of the page's style sheet.
INK, FAINT = "#010203", "#010204"
SERIES = ("#010210", "#010211", "#010212", "#010213", "#010214", "#010215")
_VARIABLES = {INK: "ink", FAINT: "faint", **{color: f"series-{number}" for number, color in enumerate(SERIES)}}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "axes.grid": True,
    "grid.alpha": 0.4,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
_SIZE = (4.6, 3.0)


@dataclass
class Chart:
    """A chart and its description."""

    run: str
    """Name of the run; empty for a chart of all runs."""
    title: str
    """Caption."""
    description: str
    """Text for screen readers."""
    svg: Markup = field(default_factory=Markup)
    """The SVG element."""


@contextmanager
def draw_svg(chart: Chart, size: tuple[float, float] = _SIZE) -> Iterator[Axes]:
    """Yield axes to draw on; on exit, set ``chart.svg`` to the drawing."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"{chart.run} {chart.title}"}):
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        yield axes
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # Text stays text in the SVG: the browser's fonts show characters that matplotlib's font lacks.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    chart.svg = _convert_to_element(buffer.getvalue(), chart)


def add_legend(axes: Axes, columns: int) -> None:
    """Add a legend above the chart, where it covers nothing."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(fontsize=8, ncols=columns, loc="outside upper right")


def escape_label(text: str) -> str:
    """Return the text shortened to 28 characters, such that matplotlib draws it as plain text."""
    short = text if len(text) <= 28 else f"{text[:27]}…"
    # matplotlib leaves labels that begin with an underscore out of legends.
    return short.replace("$", r"\$").replace("_", " _", 1) if text.startswith("_") else short.replace("$", r"\$")


def _convert_to_element(svg: str, chart: Chart) -> Markup:
    """Return the bare SVG element, as wide as its container, with the page's colors and a label for screen readers."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for color, name in _VARIABLES.items():
        body = body.replace(color, f"var(--{name})")
    # matplotlib gives its elements ids; a prefix keeps them unique among the charts of a page.
    prefix = re.sub(r"\W+", "-", f"{chart.run} {chart.title}", flags=re.ASCII)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = body.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    opening, rest = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', opening)
    assert box is not None
    label = escape(f"{chart.title}. {chart.description}")
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return Markup(f'<svg {namespaces} {box[0]} role="img" aria-label="{label}">{rest}')
