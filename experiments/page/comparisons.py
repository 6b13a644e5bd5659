"""Systems side by side: what they reach by when, and with how many parameters; and what each part of ours is worth."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from experiments.ablations import ABLATIONS
from experiments.cells import CDIL, CHORD, DEFAULT
from experiments.page.paper_tables import TITLES
from experiments.records import StoredRun, Summary, summarize
from paramixer.bench.rendering import Table

TASKS = ("listops", "text", "image", "pathfinder")
_OURS = {DEFAULT: "#c1272d", CHORD: "#1f4e9c", CDIL: "#3a86c8"}
_OTHERS = (
    *("#e69f00", "#009e73", "#cc79a7", "#8c564b", "#7f7f7f", "#9467bd", "#bcbd22", "#17becf", "#ff7f0e", "#2ca02c"),
    *("#d6a5c9", "#a6761d", "#66c2a5", "#b3b3b3", "#999933", "#44aa99"),
)
_EXPERIMENTS = ("table-systems", "table-lra", "table-default", "table-long")


def select(runs: Sequence[StoredRun], task: str) -> list[StoredRun]:
    """Return the final runs of a task that are compared: those of equal minutes, or the longer ones without them."""
    final = [run for run in runs if run.column == task and not run.trial and run.experiment in _EXPERIMENTS]
    equal = [run for run in final if run.experiment == "table-systems"]
    if {run.row for run in equal} - _OURS.keys():
        return equal
    return [run for run in final if run not in equal]


def draw_learning(runs: Sequence[StoredRun], path: Path) -> bool:
    """Draw accuracy on validation against minutes, a panel for each task; returns whether there was anything."""

    def list_points(run: StoredRun) -> list[tuple[float, float]]:
        metric = run.record["metric"]
        lines = [line for line in run.record["epochs"] if line.get(metric) is not None]
        return [(line["seconds"] / 60, 100 * line[metric]) for line in lines]

    return _draw_panels(runs, path, list_points, "minutes", "accuracy on validation, %")


def draw_parameters(runs: Sequence[StoredRun], path: Path) -> bool:
    """Draw accuracy on test against parameters, a panel for each task; returns whether there was anything."""

    def list_points(run: StoredRun) -> list[tuple[float, float]]:
        return [(run.record["parameters"], 100 * run.value)] if math.isfinite(run.value) else []

    return _draw_panels(runs, path, list_points, "parameters", "accuracy on test, %")


def _draw_panels(
    runs: Sequence[StoredRun], path: Path, list_points: Callable[[StoredRun], list[tuple[float, float]]], x: str, y: str
) -> bool:
    compared = {task: selected for task in TASKS if (selected := select(runs, task))}
    if not compared:
        return False
    rows = sorted({run.row for selected in compared.values() for run in selected} - _OURS.keys())
    colors = _OURS | dict(zip(rows, itertools.cycle(_OTHERS), strict=False))
    with mpl.rc_context({"svg.hashsalt": path.stem, "font.size": 8}):
        height = math.ceil(len(compared) / 2)
        figure = Figure(figsize=(9, 2.4 * height + 0.5), layout="constrained")
        panels = figure.subplots(height, 2, squeeze=False).flatten()
        for axes, (task, selected) in zip(panels, compared.items(), strict=False):
            for run in sorted(selected, key=_order):
                if points := list_points(run):
                    ours = run.row in _OURS
                    style = "o-" if ours else "s--"
                    across, up = zip(*points, strict=True)
                    axes.plot(across, up, style, color=colors[run.row], ms=3, lw=2 if ours else 1, label=run.row)
            axes.set_title(TITLES[task])
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            axes.spines[["top", "right"]].set_visible(False)
            if x == "parameters":
                axes.set_xscale("log")
                axes.set_xlim(1e4, 1e8)
        for axes in panels[len(compared) :]:
            axes.set_axis_off()
        handles = {
            label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=7)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    return True


def tabulate_ablations(runs: Sequence[StoredRun]) -> list[Table]:
    """Return every change of the default network with what it does to each task, in points.

    On validation: the table is there to choose by.
    """
    runs = [_on_validation(run) for run in runs]
    columns, rows = _list_ablations(runs)
    if not columns:
        return []
    table = Table("On validation, %, and the difference in points", ["the default network with", *map(_name, columns)])
    for row in rows:
        cells = [_describe_change(summarize(runs, row, column), summarize(runs, DEFAULT, column)) for column in columns]
        table.rows.append(["nothing changed" if row == DEFAULT else row, *cells])
    return [table]


def draw_ablations(runs: Sequence[StoredRun], path: Path) -> bool:
    """Draw the differences on validation as bars; returns whether there was anything."""
    runs = [_on_validation(run) for run in runs]
    columns, rows = _list_ablations(runs)
    changed = [row for row in rows if row != DEFAULT]
    if not columns or not changed:
        return False
    with mpl.rc_context({"svg.hashsalt": "ablations", "font.size": 8}):
        figure = Figure(figsize=(9, 1 + 0.24 * len(changed)), layout="constrained")
        for axes, column in zip(figure.subplots(1, len(columns), sharey=True, squeeze=False)[0], columns, strict=True):
            default = summarize(runs, DEFAULT, column)
            assert default is not None
            for place, row in enumerate(reversed(changed)):
                summary = summarize(runs, row, column)
                if summary is None or not math.isfinite(summary.mean):
                    continue
                points = 100 * (summary.mean - default.mean)
                axes.barh(place, points, color="#3a86c8" if points >= 0 else "#c1272d")
                axes.annotate(
                    f" {points:+.1f} ", (points, place), va="center", ha="left" if points >= 0 else "right", fontsize=7
                )
            axes.axvline(0, color="#888888", lw=0.8)
            axes.margins(x=0.25)
            axes.set_yticks(range(len(changed)), list(reversed(changed)))
            axes.set_title(f"{_name(column)}: {default.percent()} %")
            axes.set_xlabel("points of difference on validation")
            axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    return True


def _list_ablations(runs: Sequence[StoredRun]) -> tuple[list[str], list[str]]:
    """Return the tasks whose default has run, and the rows: the default, then the changes as they were listed."""
    final = [run for run in runs if run.experiment == "table-ablations" and not run.trial]
    columns = [
        task for task in ("image", "text", "genome") if any((run.row, run.column) == (DEFAULT, task) for run in final)
    ]
    known = {run.row for run in final if run.column in columns}
    return columns, [row for row in (DEFAULT, *(ablation.title for ablation in ABLATIONS.values())) if row in known]


def _on_validation(run: StoredRun) -> StoredRun:
    """Return the run with its metric on validation in the place of that on test."""
    record = {**run.record, "test": {run.record["metric"]: run.record["validation"]}}
    return dataclasses.replace(run, record=record)


def _describe_change(summary: Summary | None, default: Summary | None) -> str:
    if summary is None or default is None:
        return ""
    steps = f"{summary.steps:.0f} steps"
    if summary is default or summary == default:
        return f"{summary.percent()} ({steps})"
    return f"{summary.percent()} ({100 * (summary.mean - default.mean):+.2f}; {steps})"


def _name(column: str) -> str:
    return TITLES.get(column, column)


def _order(run: StoredRun) -> tuple[bool, str, int]:
    return run.row in _OURS, run.row, run.record.get("seed", 0)
