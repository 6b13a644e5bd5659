"""A record as a picture: SVG, drawn from the record alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.record import Record
from benchmarks.record_tables import describe_origin
from paramixer.bench.implementations import IMPLEMENTATIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACCENT, _PLAIN, _BAD = "#2a6f97", "#a9b8c3", "#c1554d"


def draw(record: Record, path: Path) -> None:
    """Write the picture to ``path``; the same record gives the same file."""
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
        figure.supxlabel(describe_origin(record), fontsize=5.5, color="0.4")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def _block(axes: Axes, measured: dict[str, Any]) -> None:
    (comparison,) = measured["cases"].values()
    timed = {name: result for name, result in comparison["ways"].items() if result["why"] is None}
    for shift, phase, color in ((-0.2, "forward", _PLAIN), (0.2, "both", _ACCENT)):
        bars = axes.barh(
            [place + shift for place in range(len(timed))],
            [result[phase]["seconds"] * 1e3 for result in timed.values()],
            height=0.38,
            color=color,
            label="forward+backward" if phase == "both" else "forward",
        )
        ratios = [f"{result[phase]['times_engine'] or math.nan:.1f}x" for result in timed.values()]
        axes.bar_label(bars, ratios, padding=3)
    axes.set_yticks(range(len(timed)), [IMPLEMENTATIONS[name].title for name in timed])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.set_title(comparison["case"])
    axes.legend(frameon=False)


def _scaling(axes: Axes, measured: dict[str, Any]) -> None:
    for (protocol, result), color in zip(measured["protocols"].items(), (_ACCENT, _BAD), strict=False):
        if result["why"] is not None:
            continue
        lengths, power = result["lengths"], 2 if "^2" in result["law"] else 1
        nanoseconds = [1e9 * seconds for seconds in result["both"]["seconds_a_token"]]
        law = [1e9 * result["both"]["fit"] * math.log2(length) ** power for length in lengths]
        axes.plot(lengths, nanoseconds, "o-", color=color, label=protocol.upper())
        axes.plot(lengths, law, ":", color=color, label=f"fit of {result['law']}")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("N")
    axes.set_ylabel("forward+backward, nanoseconds per token")
    axes.legend(frameon=False)


def _memory(axes: Axes, measured: dict[str, Any]) -> None:
    rows = measured["chain"]
    names = [row["what"] + (f", checkpoint every {row['keep']}" if row["keep"] else "") for row in rows]
    for shift, name, color in ((-0.2, "beyond", _ACCENT), (0.2, "predicted", _PLAIN)):
        heights = [row[name] / 1e6 for row in rows]
        label = "measured" if name == "beyond" else name
        axes.barh([place + shift for place in range(len(rows))], heights, height=0.38, color=color, label=label)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel("peak memory beyond the process's own, MB")
    axes.set_title(measured["case"])
    axes.legend(frameon=False)


def _step(axes: Axes, measured: dict[str, Any]) -> None:
    import matplotlib as mpl

    presets = measured["presets"]
    left = [0.0] * len(presets)
    colors = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    parts = dict.fromkeys(part for step in presets.values() for part in step["shares"])
    for part, color in zip(parts, colors, strict=False):
        widths = [100 * sum(step["shares"].get(part, {}).values()) for step in presets.values()]
        axes.barh(range(len(presets)), widths, left=left, color=color, label=part)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(presets)), list(presets))
    axes.invert_yaxis()
    axes.set_xlabel("% of a training step, forward and backward together")
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1))


def _figures(axes: Axes, measured: dict[str, Any]) -> None:
    """How far each number is past its bound: to the right of 1 it is reached."""
    figures = [figure for figure in measured["figures"] if figure["measured"] is not None]
    ratios = [
        figure["measured"] / figure["bound"] if figure["sense"] == "at least" else figure["bound"] / figure["measured"]
        for figure in figures
    ]
    colors = [_ACCENT if figure["reached"] else _BAD for figure in figures]
    axes.barh(range(len(figures)), ratios, color=colors)
    axes.axvline(1, color="0.2", lw=1)
    axes.set_yticks(range(len(figures)), [figure["what"] for figure in figures], fontsize=6.5)
    axes.invert_yaxis()
    axes.set_xlabel("measured against the number to reach")


def _training(axes: Axes, measured: dict[str, Any]) -> None:
    axes.barh([0], [measured["busy"]], color=_ACCENT, label="forward, backward, optimizer")
    axes.barh([0], [1 - measured["busy"]], left=[measured["busy"]], color=_PLAIN, label="everything else")
    axes.set_yticks([0], [f"{measured['preset']}, {measured['batch']} x {measured['length']}"])
    axes.set_xlim(0, 1)
    axes.set_title("where the time of training goes")
    axes.legend(frameon=False)


def _models(seconds: Axes, memory: Axes, measured: dict[str, Any]) -> None:
    import matplotlib as mpl

    colors = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    for number, (name, model) in enumerate(measured["models"].items()):
        is_paramixer = name == "paramixer"
        style = {
            "color": "black" if is_paramixer else colors[number % len(colors)],
            "lw": 2.5 if is_paramixer else 1,
            "ls": ("-", "--", ":")[number // len(colors)],
            "zorder": 3 if is_paramixer else 2,
            "label": model["title"],
        }
        for axes, heights in ((seconds, model["seconds"]), (memory, [peak / 1e6 for peak in model["peak"]])):
            # A first length too short to be seen in the resident memory has no logarithm.
            points = [(n, h) for n, h in zip(measured["lengths"], heights, strict=False) if h > 0]
            axes.plot([n for n, _ in points], [h for _, h in points], marker="o", ms=3, **style)
    for axes, label in ((seconds, "forward + backward, seconds"), (memory, "peak memory, MB")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("N")
        axes.set_ylabel(label)
    memory.legend(frameon=False, fontsize=6.5, loc="center left", bbox_to_anchor=(1, 0.5))


_PANELS = {"models": 2}


def _kernels(axes: Axes, measured: dict[str, Any]) -> None:
    first = measured["kernels"][0]["device"]
    kernels = [one for one in measured["kernels"] if one["device"] == first and one["numbers"] == "float32"]
    labels = [f"{one['kernel']}; {one['shape']}" for one in kernels]
    axes.barh(range(len(kernels)), [one["registers"] for one in kernels], color=_ACCENT)
    axes.set_yticks(range(len(kernels)), labels, fontsize=5)
    axes.invert_yaxis()
    axes.set_xlabel(f"registers per thread on {first}, float32 (255 at most)")


PLOTS: dict[str, Callable[..., None]] = {
    "block": _block,
    "scaling": _scaling,
    "memory": _memory,
    "step": _step,
    "figures": _figures,
    "training": _training,
    "models": _models,
    "gpu-kernels": _kernels,
}
