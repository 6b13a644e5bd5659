"""Charts as SVG for the page: drawn by matplotlib, in colours that follow the page's light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from paramixer.report.findings import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that nothing else has; the page's style sheet says what they look like.
_INK, _FAINT = "#010203", "#010204"
SERIES = ("#010210", "#010211", "#010212", "#010213", "#010214", "#010215")
_NAMES = {_INK: "ink", _FAINT: "faint", **{colour: f"series-{number}" for number, colour in enumerate(SERIES)}}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _FAINT,
    "axes.grid": True,
    "grid.alpha": 0.4,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
# When there are more runs than colours.
_LINES = ("-", "--", ":", "-.")
_SIZE = (4.6, 3.0)
# More points than this cannot be told apart.
_POINTS = 600


@dataclass
class Chart:
    """A chart and what it says in words."""

    run: str
    """Whose it is; empty for all runs."""
    title: str
    """Over it."""
    words: str
    """For those who cannot see it."""
    svg: Markup = field(default_factory=Markup)
    """The picture."""


@contextmanager
def _drawing(chart: Chart, size: tuple[float, float] = _SIZE) -> Iterator[Axes]:
    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"{chart.run} {chart.title}"}):
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        yield axes
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # Text stays text in the picture, and the reader's fonts show what matplotlib's own cannot.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    chart.svg = _themed(buffer.getvalue(), chart)


def _themed(svg: str, chart: Chart) -> Markup:
    """The bare element, as wide as its place, with the page's colours and words of its own."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for colour, name in _NAMES.items():
        body = body.replace(colour, f"var(--{name})")
    # matplotlib names what it draws; several charts on a page must not share these names.
    mark = re.sub(r"\W+", "-", f"{chart.run} {chart.title}", flags=re.ASCII)
    body = re.sub(r'\bid="', f'id="{mark}-', body)
    body = body.replace("url(#", f"url(#{mark}-").replace('href="#', f'href="#{mark}-')
    opening, rest = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', opening)
    assert box is not None
    label = escape(f"{chart.title}. {chart.words}")
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return Markup(f'<svg {names} {box[0]} role="img" aria-label="{label}">{rest}')


def curves(
    runs: Sequence[tuple[str, list[dict[str, Any]]]], kind: str, value: str, title: str, run: str = ""
) -> Chart | None:
    """A value of metrics.jsonl over the steps, a line for every run; None where no run has it.

    Args:
        runs: each run's name and lines.
        kind: "train" or "validation".
        value: which number of these lines.
        title: of the chart.
        run: whose chart it is.
    """
    found = []
    for number, (name, lines) in enumerate(runs):
        points = [(line["step"], line[value]) for line in lines if line["kind"] == kind and line.get(value) is not None]
        if points:
            found.append((number, name, np.array(points, float)))
    if not found:
        return None
    ends = "; ".join(f"{name}: from {part[0, 1]:.4g} to {part[-1, 1]:.4g}" for _, name, part in found)
    chart = Chart(run, title, f"{value} over the steps. {ends}.")
    with _drawing(chart) as axes:
        for number, name, drawn in found:
            shown = drawn[:: -(-len(drawn) // _POINTS)]
            mark = "o" if len(shown) < 20 else None
            colour, line = SERIES[number % len(SERIES)], _LINES[number // len(SERIES) % len(_LINES)]
            axes.plot(*shown.T, color=colour, linestyle=line, label=_plain(name), marker=mark, markersize=3)
        positive = all((part[:, 1] > 0).all() for *_, part in found)
        if value == "loss" and positive and max(part[:, 1].max() / part[:, 1].min() for *_, part in found) > 50:
            axes.set_yscale("log")
        else:
            axes.ticklabel_format(axis="y", useOffset=False)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("step")
        axes.set_ylabel(value)
        if len(found) > 1:
            _legend(axes, min(len(found), 3))
    return chart


def roc(findings: Findings, name: str) -> Chart | None:
    """The curve of true against false positives."""
    found = findings.roc()
    if found is None:
        return None
    false, true = found
    area = float(np.trapezoid(true, false))
    chart = Chart(name, "ROC", f"Area under the curve {area:.4f}.")
    with _drawing(chart, (3.4, 3.2)) as axes:
        axes.plot([0, 1], [0, 1], color=_FAINT, linestyle="--", linewidth=1)
        axes.plot(false, true, color=SERIES[0])
        axes.set_xlabel("false positives")
        axes.set_ylabel("true positives")
        axes.text(0.95, 0.08, f"area {area:.4f}", ha="right")
    return chart


def calibration(findings: Findings, name: str) -> Chart:
    """How often answers of some confidence are right."""
    mean, rate, counts, gap = findings.calibration()
    bins = "; ".join(f"{c:.2f}: right {r:.2f} of {n}" for c, r, n in zip(mean, rate, counts, strict=True))
    chart = Chart(name, "Calibration", f"Mean gap between confidence and accuracy {gap:.3f}. {bins}.")
    with _drawing(chart, (3.4, 3.2)) as axes:
        axes.plot([0, 1], [0, 1], color=_FAINT, linestyle="--", linewidth=1)
        axes.scatter(mean, rate, s=12 + 160 * counts / counts.sum(), color=SERIES[0], zorder=3)
        axes.plot(mean, rate, color=SERIES[0], linewidth=1)
        axes.set_xlabel("confidence")
        axes.set_ylabel("share that is right")
        axes.text(0.95, 0.08, f"mean gap {gap:.3f}", ha="right", transform=axes.transAxes)
    return chart


def scatter(findings: Findings, name: str) -> Chart:
    """Answers against true values."""
    targets, answers = findings.targets.double().numpy(), findings.answers.double().numpy()
    chart = Chart(
        name, "Answers and truth", f"Root mean square error {np.sqrt(np.mean((answers - targets) ** 2)):.4g}."
    )
    with _drawing(chart, (3.4, 3.2)) as axes:
        ends = [min(targets.min(), answers.min()), max(targets.max(), answers.max())]
        axes.plot(ends, ends, color=_FAINT, linestyle="--", linewidth=1)
        some = slice(None, None, -(-len(targets) // _POINTS))
        axes.scatter(targets[some], answers[some], s=7, color=SERIES[0], alpha=0.6, linewidths=0)
        axes.set_xlabel("truth")
        axes.set_ylabel("answer")
    return chart


def lengths(found: dict[str, NDArray[np.int64]], most: int, name: str) -> Chart:
    """How long the sequences are before they are cut."""
    together = np.concatenate(list(found.values()))
    words = f"From {together.min()} to {together.max()}, median {int(np.median(together))}; N is {most}."
    chart = Chart(name, "Lengths before cutting", words)
    with _drawing(chart) as axes:
        bins = np.linspace(together.min(), max(together.max(), together.min() + 1), 40).tolist()
        axes.hist(list(found.values()), bins, stacked=True, label=list(found), color=list(SERIES[: len(found)]))
        axes.axvline(most, color=_INK, linewidth=1, linestyle="--")
        axes.set_xlabel("length")
        axes.set_ylabel("sequences")
        _legend(axes, len(found))
    return chart


def balance(found: dict[str, dict[str, int]], sizes: dict[str, int], name: str) -> Chart:
    """How many sequences each class has in each split, as shares of the split's size."""
    labels = list(next(iter(found.values())))
    words = "; ".join(f"{split}: " + ", ".join(f"{k} {v}" for k, v in part.items()) for split, part in found.items())
    chart = Chart(name, "Classes", words + ".")
    with _drawing(chart, (4.6, max(2.0, 0.8 + 0.32 * len(labels)))) as axes:
        height = 0.8 / len(found)
        for number, (split, part) in enumerate(found.items()):
            total = max(1, sizes[split])
            places = np.arange(len(labels)) + (number - (len(found) - 1) / 2) * height
            axes.barh(places, [part[k] / total for k in labels], height, color=SERIES[number], label=split)
        axes.set_yticks(range(len(labels)), [_plain(label) for label in labels], fontsize=9)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("share of the split")
        _legend(axes, len(found))
    return chart


def curve(numbers: NDArray[np.float32], name: str, title: str) -> Chart:
    """A sequence of numbers, a line a feature."""
    chart = Chart(name, title, f"{len(numbers)} positions of {numbers.shape[1]} numbers.")
    some = numbers[:: -(-len(numbers) // _POINTS)]
    with _drawing(chart, (4.6, 1.5)) as axes:
        places = np.linspace(0, len(numbers) - 1, len(some))
        for number, feature in enumerate(some.T):
            axes.plot(places, feature, color=SERIES[number % len(SERIES)], linewidth=0.9)
        axes.set_xlabel("position")
    return chart


def _legend(axes: Axes, columns: int) -> None:
    """Above the chart: inside it would cover something, or take long to find a place."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.legend(fontsize=8, ncols=columns, loc="outside upper right")


def _plain(text: str) -> str:
    """A name that matplotlib takes for text, not for mathematics, and that is not too long."""
    short = text if len(text) <= 28 else f"{text[:27]}…"
    # Labels that begin with an underscore are kept out of legends.
    return short.replace("$", r"\$").replace("_", " _", 1) if text.startswith("_") else short.replace("$", r"\$")
