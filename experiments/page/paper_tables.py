"""Records as the paper's tables and figures, its own numbers beside ours. A cell that was not run is empty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.cells import CDIL, CHORD, DEFAULT
from experiments.page import published
from experiments.records import StoredRun, count_steps, summarize
from paramixer.bench.rendering import Table

TITLES = {
    "listops": "ListOps",
    "text": "Text",
    "reviews": "2 100 reviews",
    "image": "Image",
    "pathfinder": "Pathfinder, pooled",
    "genome": "two organisms, ROC AUC",
    "hfdna": "HFDNA, ROC AUC",
    "mtcdna": "MTcDNA, ROC AUC",
    "documents-16k": "documents, 16k",
    "documents-32k": "documents, 32k",
}
SYNTHETIC = (("adding", "Adding"), ("order", "Temporal Order"))

_MAJORITY = "predicting the largest class"


def tabulate_synthetic(runs: Sequence[StoredRun]) -> list[Table]:
    """Return error against length, one table per task, of runs at one scale."""
    made = []
    for task, title in SYNTHETIC:
        lengths = sorted({int(run.column.split()[1]) for run in runs if run.column.startswith(f"{task} ")})
        table = Table(f"{title}, error on test{_name_scale(runs)}", ["model", *(f"N = {n}" for n in lengths)])
        for row in _list_rows(runs, task):
            cells = [
                _format_cell(runs, row, f"{task} {n}", published.format_error(task, row, n), " %") for n in lengths
            ]
            table.rows.append([row, *cells])
        majority = [_format_majority(runs, f"{task} {n}") for n in lengths]
        if any(majority):
            table.rows.append([_MAJORITY, *majority])
        if table.rows:
            made.append(table)
    return made


def tabulate_accuracy(runs: Sequence[StoredRun], columns: Sequence[str], title: str) -> list[Table]:
    """Return models against tasks, of runs at one scale."""
    known = [column for column in columns if any(run.column == column and not run.trial for run in runs)]
    paper = published.read_table()
    table = Table(f"{title}{_name_scale(runs)}", ["model", *(TITLES.get(column, column) for column in known)])
    for row in _list_rows(runs, *known):
        theirs = paper.get(row, {})
        # Other organisms, but the same question.
        theirs["genome"] = f"HFDNA, {theirs['hfdna']}" if "hfdna" in theirs else ""
        table.rows.append([row, *(_format_cell(runs, row, name, theirs.get(name, ""), "") for name in known)])
    majority = [_format_majority(runs, column) for column in known]
    if any(majority):
        table.rows.append([_MAJORITY, *majority])
    return [table] if known else []


def tabulate_lengths(documents: Sequence[dict[str, Any]]) -> Table:
    """Return how long the sequences of every task with files are, as ``figures.measure_lengths`` recorded."""
    columns = ["task", "split", "sequences", "shortest", "median", "longest", "N", "cut to N"]
    table = Table("Positions per sequence", columns)
    for document in documents:
        for split, summary in document["splits"].items():
            counts = [summary[name] for name in ("sequences", "shortest", "median", "longest")]
            table.rows.append(
                [document["task"], split, *map(str, counts), str(document["length"]), str(summary["cut"])]
            )
    return table


def tabulate_runs(runs: Iterable[StoredRun], title: str = "The runs") -> Table:
    """Return scale, steps and time of every run that counts."""
    columns = [
        "experiment",
        "model",
        "cell",
        "seed",
        "scale",
        "parameters",
        "steps",
        "minutes",
        "threads",
        "best on validation",
        "test",
        "stopped",
    ]
    table = Table(title, columns)
    for run in sorted(runs, key=_sort_key):
        if run.trial:
            continue
        record = run.record
        table.rows.append(
            [
                run.experiment,
                run.row,
                run.column,
                str(record["seed"]),
                run.scale,
                str(record["parameters"]),
                str(run.steps),
                f"{run.minutes:.1f}",
                str(record.get("machine", {}).get("threads", "")),
                f"{record['metric']} {record['validation']:.4f}",
                f"{run.value:.4f}",
                str(record["stopped"]),
            ]
        )
    return table


def draw_synthetic(runs: Sequence[StoredRun], path: Path) -> None:
    """Draw error against length, both tasks."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "figure-synthetic", "font.size": 9}):
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        for axes, (task, title) in zip(figure.subplots(1, 2, sharey=True), SYNTHETIC, strict=True):
            for row in _list_rows(runs, task):
                points = sorted(
                    (int(column.split()[1]), 100 * summary.mean)
                    for column in {run.column for run in runs if run.column.startswith(f"{task} ")}
                    if (summary := summarize(runs, row, column)) is not None
                )
                is_ours = row in (CHORD, CDIL)
                style = "o-" if is_ours else "s--"
                axes.plot(*zip(*points, strict=True), style, lw=2 if is_ours else 1, ms=4, label=row)
            axes.set_xscale("log", base=2)
            axes.set_xlabel("N")
            axes.set_title(title)
            axes.spines[["top", "right"]].set_visible(False)
            if axes.lines:
                axes.legend(frameon=False, fontsize=7)
        figure.axes[0].set_ylabel("error on test, %")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def _list_rows(runs: Iterable[StoredRun], *tasks: str) -> list[str]:
    """Return the models that have a run, ours first."""
    rows = {
        run.row
        for run in runs
        if run.column.split()[0] in tasks and (not run.trial or count_steps(run.row, run.column, runs) is not None)
    }
    ours = (CHORD, CDIL, DEFAULT)
    return [row for row in ours if row in rows] + sorted(rows - set(ours))


def _name_scale(runs: Sequence[StoredRun]) -> str:
    return f", scale {runs[0].scale}" if runs else ""


def _format_cell(runs: Sequence[StoredRun], row: str, column: str, paper: str, unit: str) -> str:
    """Return the measured number with its steps and time, and the paper's number."""
    theirs = f"paper: {paper}" if paper else ""
    summary = summarize(runs, row, column)
    if summary is None:
        if (rate := count_steps(row, column, runs)) is not None:
            return f"too slow: {rate:.1f} steps in a minute{f' ({theirs})' if paper else ''}"
        return f"({theirs})" if paper else ""
    effort = f"{summary.steps:.0f} steps, {60 * summary.minutes:.0f} s"
    return f"{summary.percent(unit)} ({'; '.join(filter(None, (effort, theirs)))})"


def _format_majority(runs: Iterable[StoredRun], column: str) -> str:
    """Return the metric of always predicting the largest class."""
    for run in runs:
        if run.column == column and not run.trial and (share := run.record.get("majority")) is not None:
            metric = run.record["metric"]
            if metric == "error":
                return f"{100 * (1 - share):.2f} %"
            return "50.00" if metric == "roc_auc" else f"{100 * share:.2f}"
    return ""


def _sort_key(run: StoredRun) -> tuple[str, str, float, str]:
    words = run.column.split()
    length = float(words[1]) if len(words) > 1 and words[1].isdigit() else math.inf
    return run.experiment, words[0], length, run.row
