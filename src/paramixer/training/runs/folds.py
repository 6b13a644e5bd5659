"""Cross-validation: one run per fold, and what they come to together."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from paramixer.data.folds import check_folds, take_fold
from paramixer.data.task import Task
from paramixer.files import replace_file
from paramixer.training.intervals import Interval
from paramixer.training.runs.folder import FORMAT, RunFolder
from paramixer.training.runs.run import RunSettings, resume_run, start_run

SUMMARY = "folds.json"
"""Holds the estimate of all folds."""


def run_folds(settings: RunSettings, folder: Path, task: Task, console: Console) -> dict[str, Any]:
    """Train once per fold, each in a run folder of its own, and return the summary, which is written too.

    Folds that are finished are not repeated.

    Args:
        settings: of the runs; ``folds`` says how many.
        folder: gets fold-1, fold-2, ... and the summary.
        task: the data, whole.
        console: shows the runs and the table.
    """
    folds = settings.folds
    assert folds is not None
    check_folds(task, folds)
    settings = settings.with_absolute_paths()
    RunFolder(folder).write_config(settings.document())
    records = []
    for fold in range(1, folds + 1):
        run = RunFolder(folder / f"fold-{fold}")
        if not (run.record.is_file() and run.read_record()["finished"]):
            console.print(f"fold {fold} of {folds}", style="bold", highlight=False)
            if run.record.is_file():
                resume_run(run.path, console=console)
            else:
                part = dataclasses.replace(settings, fold=fold)
                start_run(part, run.path, task=take_fold(task, fold, folds, settings.seed), console=console)
        records.append(run.read_record())
    summary = summarize_folds(records)
    replace_file(folder / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())
    _print_summary(summary, settings, console)
    return summary


def summarize_folds(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of the folds' metrics on test with its 95 % interval, and the same of the baseline."""
    metric = records[0]["metric"]
    values = [record["test"][metric] for record in records]
    summary: dict[str, Any] = {"format": FORMAT, "metric": metric, "folds": len(records), **_describe(values)}
    baselines = [record.get("baseline") for record in records]
    if all(baseline is not None for baseline in baselines):
        others = [baseline["test"] for baseline in baselines if baseline is not None]
        guesses = [baseline["guess"] for baseline in baselines if baseline is not None]
        names = dict.fromkeys(baseline["name"] for baseline in baselines if baseline is not None)
        summary["baseline"] = {"name": ", ".join(names), **_describe(others), "guess": float(np.mean(guesses))}
        summary["difference"] = _describe([value - other for value, other in zip(values, others, strict=True)])
    return {**summary, "seconds": sum(record["seconds"] for record in records)}


def estimate_interval(values: list[float]) -> Interval:
    """Return the 95 % interval of the mean of folds.

    Folds share training sequences, so that the variance of their mean is more than that of independent values: the
    variance of a fold is multiplied by 1 / k + 1 / (k - 1) instead of 1 / k (Nadeau and Bengio 2003).
    """
    from scipy.stats import t

    folds = len(values)
    width = float(t.ppf(0.975, folds - 1)) * float(np.std(values, ddof=1)) * (1 / folds + 1 / (folds - 1)) ** 0.5
    mean = float(np.mean(values))
    return mean - width, mean + width


def _describe(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "interval": list(estimate_interval(values)), "values": values}


def _print_summary(summary: dict[str, Any], settings: RunSettings, console: Console) -> None:
    metric, baseline = summary["metric"], summary.get("baseline")
    table = Table("fold", box=None, pad_edge=False)
    table.add_column(f"test {metric}", justify="right")
    rows = [(str(number), [value]) for number, value in enumerate(summary["values"], 1)]
    rows.append(("mean", [summary["mean"]]))
    if baseline is not None:
        table.add_column(baseline["name"], justify="right")
        for (_, row), value in zip(rows, [*baseline["values"], baseline["mean"]], strict=True):
            row.append(value)
    for name, row in rows:
        table.add_row(name, *(f"{value:.4f}" for value in row))
    console.print(table)
    low, high = summary["interval"]
    lines = [f"{metric} {summary['mean']:.3f} (95 % interval {low:.3f} to {high:.3f}, of {summary['folds']} folds)"]
    if baseline is not None:
        low, high = summary["difference"]["interval"]
        lines[0] += f"; {baseline['name']} {baseline['mean']:.3f}; guess {baseline['guess']:.3f}"
        if low <= 0 <= high:
            lines.append("The model and the baseline are about equal.")
    lines.append(
        "This estimates how well a model does that is trained like these. For one model to use, train without --folds: "
        f"paramixer train {Path(settings.task).name}"
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
