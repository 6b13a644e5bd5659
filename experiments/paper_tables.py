"""Records as the paper's tables and figures, its own numbers beside ours. A cell that was not run is empty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from paramixer.bench.tables import Table
from experiments import published
from experiments.cells import CDIL, CHORD
from experiments.records import Kept, Summary, summarised

TITLES = {
    "listops": "ListOps",
    "text": "Text",
    "image": "Image",
    "pathfinder": "Pathfinder, pooled",
    "genome": "two organisms, ROC AUC",
    "hfdna": "HFDNA, ROC AUC",
    "mtcdna": "MTcDNA, ROC AUC",
    "documents-16k": "documents, 16k",
    "documents-32k": "documents, 32k",
}

_GUESS = "always the largest class"


def synthetic(kept: Sequence[Kept]) -> list[Table]:
    """Error against length, one table a task, of runs at one scale."""
    drawn = []
    for task, title in (("adding", "Adding"), ("order", "Temporal Order")):
        lengths = sorted({int(one.column.split()[1]) for one in kept if one.column.startswith(f"{task} ")})
        table = Table(f"{title}, error on test{_scale(kept)}", ["model", *(f"N = {length}" for length in lengths)])
        for row in _rows(kept, task):
            cells = [row]
            for length in lengths:
                found = summarised(kept, row, f"{task} {length}")
                cells.append(_beside(found, published.error_cell(task, row, length), " %"))
            table.rows.append(cells)
        guesses = [_majority(kept, f"{task} {length}") for length in lengths]
        if any(guesses):
            table.rows.append([_GUESS, *guesses])
        if table.rows:
            drawn.append(table)
    return drawn


def accuracy(kept: Sequence[Kept], columns: Sequence[str], title: str) -> list[Table]:
    """Models against tasks, of runs at one scale."""
    there = [column for column in columns if any(one.column == column and not one.trial for one in kept)]
    paper = published.table()
    table = Table(f"{title}{_scale(kept)}", ["model", *(TITLES.get(column, column) for column in there)])
    for row in _rows(kept, *there):
        own = paper.get(row, {})
        # Other organisms, but the same question.
        own["genome"] = f"HFDNA, {own['hfdna']}" if "hfdna" in own else ""
        table.rows.append([row, *(_beside(summarised(kept, row, name), own.get(name, ""), "") for name in there)])
    majority = [_majority(kept, column) for column in there]
    if any(majority):
        table.rows.append([_GUESS, *majority])
    return [table] if there else []


def lengths(spread: Sequence[dict[str, Any]]) -> Table:
    """How long the sequences of every task with files are, as ``figures.lengths`` found."""
    columns = ["task", "split", "sequences", "shortest", "median", "longest", "N", "cut to N"]
    table = Table("Positions of a sequence", columns)
    for one in spread:
        for split, found in one["splits"].items():
            counts = [found[name] for name in ("sequences", "shortest", "median", "longest")]
            table.rows.append([one["task"], split, *map(str, counts), str(one["length"]), str(found["cut"])])
    return table


def effort(kept: Iterable[Kept], title: str = "The runs") -> Table:
    """What stands behind the numbers: scale, steps and time of every run that counts."""
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
        "chosen on validation",
        "test",
        "stopped",
    ]
    table = Table(title, columns)
    for one in sorted(kept, key=lambda one: (one.experiment, one.column.split()[0], _number(one.column), one.row)):
        if one.trial:
            continue
        record = one.record
        name = record["metric"]
        table.rows.append(
            [
                one.experiment,
                one.row,
                one.column,
                str(record["seed"]),
                one.scale,
                str(record["parameters"]),
                str(one.steps),
                f"{one.minutes:.1f}",
                str(record.get("machine", {}).get("threads", "")),
                f"{name} {record['validation']:.4f}",
                f"{one.value:.4f}",
                str(record["stopped"]),
            ]
        )
    return table


def draw_synthetic(kept: Sequence[Kept], path: Path) -> None:
    """Error against length, both tasks."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "figure-synthetic", "font.size": 9}):
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        for axes, (task, title) in zip(
            figure.subplots(1, 2, sharey=True), (("adding", "Adding"), ("order", "Temporal Order")), strict=True
        ):
            for row in _rows(kept, task):
                points = sorted(
                    (int(column.split()[1]), 100 * found.mean)
                    for column in {one.column for one in kept if one.column.startswith(f"{task} ")}
                    if (found := summarised(kept, row, column)) is not None
                )
                own = row in (CHORD, CDIL)
                axes.plot(*zip(*points, strict=True), "o-" if own else "s--", lw=2 if own else 1, ms=4, label=row)
            axes.set_xscale("log", base=2)
            axes.set_xlabel("N")
            axes.set_title(title)
            axes.spines[["top", "right"]].set_visible(False)
            if axes.lines:
                axes.legend(frameon=False, fontsize=7)
        figure.axes[0].set_ylabel("error on test, %")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def markdown(table: Table) -> str:
    """For the page."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join([f"{table.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)])


def _rows(kept: Iterable[Kept], *starts: str) -> list[str]:
    """Models that have a run, our own first."""
    there = {one.row for one in kept if not one.trial and one.column.split()[0] in starts}
    return [row for row in (CHORD, CDIL) if row in there] + sorted(there - {CHORD, CDIL})


def _scale(kept: Sequence[Kept]) -> str:
    return f", scale {kept[0].scale}" if kept else ""


def _beside(found: Summary | None, paper: str, unit: str) -> str:
    """What was measured and what it took, with the paper's number."""
    published_ = f"paper: {paper}" if paper else ""
    if found is None:
        return f"({published_})" if paper else ""
    took = f"{found.steps:.0f} steps, {60 * found.minutes:.0f} s"
    return f"{found.percent(unit)} ({'; '.join(filter(None, (took, published_)))})"


def _majority(kept: Iterable[Kept], column: str) -> str:
    """What somebody gets who always says the same."""
    for one in kept:
        if one.column == column and not one.trial and (share := one.record.get("majority")) is not None:
            metric = one.record["metric"]
            if metric == "error":
                return f"{100 * (1 - share):.2f} %"
            return "50.00" if metric == "roc_auc" else f"{100 * share:.2f}"
    return ""


def _number(column: str) -> float:
    words = column.split()
    return float(words[1]) if len(words) > 1 and words[1].isdigit() else math.inf
