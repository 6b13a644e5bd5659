"""A record as a picture: SVG, drawn from the record alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramixer.bench.record import Record
from paramixer.bench.step import PARTS
from paramixer.bench.tables import provenance
from paramixer.bench.ways import WAYS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACCENT, _PLAIN, _BAD = "#2a6f97", "#a9b8c3", "#c1554d"


def draw(record: Record, path: Path) -> None:
    """Write the picture to path; the same record gives the same file."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": record.what, "font.size": 9}):
        rows = len(record.measured.get("figures", []))
        panels = _PANELS.get(record.what, 1)
        size = (8 if panels == 1 else 11, 4.2 if rows == 0 else 1.5 + 0.3 * rows)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, panels, squeeze=False)[0]
        PLOTS[record.what](*axes, record.measured)
        for panel in axes:
            panel.spines[["top", "right"]].set_visible(False)
        figure.supxlabel(provenance(record), fontsize=5.5, color="0.4")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def _block(axes: Axes, measured: dict[str, Any]) -> None:
    (found,) = measured["cases"].values()
    timed = {name: way for name, way in found["ways"].items() if way["why"] is None}
    for shift, phase, colour in ((-0.2, "forward", _PLAIN), (0.2, "both", _ACCENT)):
        bars = axes.barh(
            [place + shift for place in range(len(timed))],
            [way[phase]["seconds"] * 1e3 for way in timed.values()],
            height=0.38,
            color=colour,
            label="forward+backward" if phase == "both" else "forward",
        )
        axes.bar_label(bars, [f"{way[phase]['times_engine'] or math.nan:.1f}x" for way in timed.values()], padding=3)
    axes.set_yticks(range(len(timed)), [WAYS[name].what for name in timed])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.set_title(found["case"])
    axes.legend(frameon=False)


def _scaling(axes: Axes, measured: dict[str, Any]) -> None:
    for (protocol, found), colour in zip(measured["protocols"].items(), (_ACCENT, _BAD), strict=False):
        if found["why"] is not None:
            continue
        lengths, power = found["lengths"], 2 if "^2" in found["law"] else 1
        nanoseconds = [1e9 * seconds for seconds in found["both"]["seconds_a_token"]]
        law = [1e9 * found["both"]["fit"] * math.log2(length) ** power for length in lengths]
        axes.plot(lengths, nanoseconds, "o-", color=colour, label=protocol.upper())
        axes.plot(lengths, law, ":", color=colour, label=f"fit of {found['law']}")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("N")
    axes.set_ylabel("forward+backward, nanoseconds a token")
    axes.legend(frameon=False)


def _memory(axes: Axes, measured: dict[str, Any]) -> None:
    rows = measured["chain"]
    names = [row["what"] + (f", keep = {row['keep']}" if row["keep"] else "") for row in rows]
    for shift, name, colour in ((-0.2, "beyond", _ACCENT), (0.2, "predicted", _PLAIN)):
        heights = [row[name] / 1e6 for row in rows]
        label = "measured" if name == "beyond" else name
        axes.barh([place + shift for place in range(len(rows))], heights, height=0.38, color=colour, label=label)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel("peak memory beyond the process's own, MB")
    axes.set_title(measured["case"])
    axes.legend(frameon=False)


def _step(axes: Axes, measured: dict[str, Any]) -> None:
    import matplotlib as mpl

    presets = measured["presets"]
    left = [0.0] * len(presets)
    colours = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    for part, colour in zip(PARTS, colours, strict=False):
        widths = [100 * sum(found["shares"][part].values()) for found in presets.values()]
        axes.barh(range(len(presets)), widths, left=left, color=colour, label=part)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(presets)), list(presets))
    axes.invert_yaxis()
    axes.set_xlabel("% of a training step, forward and backward together")
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1))


def _figures(axes: Axes, measured: dict[str, Any]) -> None:
    """How far each figure is past its bound: to the right of 1 it is reached."""
    figures = [figure for figure in measured["figures"] if figure["measured"] is not None]
    ratios = [
        figure["measured"] / figure["bound"] if figure["sense"] == "at least" else figure["bound"] / figure["measured"]
        for figure in figures
    ]
    colours = [_ACCENT if figure["reached"] else _BAD for figure in figures]
    axes.barh(range(len(figures)), ratios, color=colours)
    axes.axvline(1, color="0.2", lw=1)
    axes.set_yticks(range(len(figures)), [figure["what"] for figure in figures], fontsize=6.5)
    axes.invert_yaxis()
    axes.set_xlabel("measured against the figure to reach")


def _training(axes: Axes, measured: dict[str, Any]) -> None:
    axes.barh([0], [measured["busy"]], color=_ACCENT, label="forward, backward, optimizer")
    axes.barh([0], [1 - measured["busy"]], left=[measured["busy"]], color=_PLAIN, label="everything else")
    axes.set_yticks([0], [f"{measured['preset']}, {measured['batch']} x {measured['length']}"])
    axes.set_xlim(0, 1)
    axes.set_title("where the time of training goes")
    axes.legend(frameon=False)


def _models(seconds: Axes, memory: Axes, measured: dict[str, Any]) -> None:
    import matplotlib as mpl

    colours = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    for number, (name, found) in enumerate(measured["models"].items()):
        own = name == "paramixer"
        style = {
            "color": "black" if own else colours[number % len(colours)],
            "lw": 2.5 if own else 1,
            "ls": ("-", "--", ":")[number // len(colours)],
            "zorder": 3 if own else 2,
            "label": found["title"],
        }
        for axes, heights in ((seconds, found["seconds"]), (memory, [peak / 1e6 for peak in found["peak"]])):
            # A first length too short to be seen in the resident memory has no logarithm.
            drawn = [(n, h) for n, h in zip(measured["lengths"], heights, strict=False) if h > 0]
            axes.plot([n for n, _ in drawn], [h for _, h in drawn], marker="o", ms=3, **style)
    for axes, label in ((seconds, "forward + backward, seconds"), (memory, "peak memory, MB")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("N")
        axes.set_ylabel(label)
    memory.legend(frameon=False, fontsize=6.5, loc="center left", bbox_to_anchor=(1, 0.5))


_PANELS = {"models": 2}
PLOTS: dict[str, Callable[..., None]] = {
    "block": _block,
    "scaling": _scaling,
    "memory": _memory,
    "step": _step,
    "figures": _figures,
    "training": _training,
    "models": _models,
}
