"""Cross-validation: one run per fold, and what they come to together."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from paramixer.data.folds import check_folds, take_fold
from paramixer.data.task import Task
from paramixer.files import replace_file
from paramixer.training.assessment.intervals import Interval, combine_intervals
from paramixer.training.assessment.metrics import METRICS, describe_name, format_number
from paramixer.training.assessment.verdict import describe_interval
from paramixer.training.callback import Interrupted
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
    if (minutes := settings.training.get("minutes")) is not None:
        total = f"{folds} folds of {minutes:g} minutes each: {folds * minutes:g} minutes in all"
        console.print(f"{total} (change with --minutes, --folds)", highlight=False, soft_wrap=True)
    records = []
    for fold in range(1, folds + 1):
        run = RunFolder(folder / f"fold-{fold}")
        if not (run.record.is_file() and run.read_record()["finished"]):
            console.print(f"fold {fold} of {folds}", style="bold", highlight=False)
            if run.record.is_file():
                with _naming(folder, run.path):
                    resume_run(run.path, console=console)
            else:
                part = dataclasses.replace(settings, fold=fold)
                with _naming(folder, run.path):
                    start_run(part, run.path, task=take_fold(task, fold, folds, settings.seed), console=console)
        records.append(run.read_record())
    # Every sequence is in the test split of one fold.
    summary = summarize_folds(records, sum(len(split) for split in task.splits.values()))
    replace_file(folder / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())
    _print_summary(summary, settings, console)
    return summary


@contextmanager
def _naming(folder: Path, run: Path) -> Iterator[None]:
    """Let an interruption name the folder of all folds, with which to go on."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(str(error).replace(str(run), str(folder))) from None


def summarize_folds(records: list[dict[str, Any]], tested: int) -> dict[str, Any]:
    """Return the mean of the folds' metrics on test with its 95 % interval, and the same of the baseline.

    Args:
        records: of the folds.
        tested: sequences of all their test splits.
    """
    metric = records[0]["metric"]
    values = [record["test"][metric] for record in records]
    within = [record.get("intervals", {}).get(metric) for record in records]
    least = combine_intervals(list(zip(values, within, strict=True))) if all(within) else None
    summary: dict[str, Any] = {"format": FORMAT, "metric": metric, "folds": len(records)}
    summary |= {**_describe(values), "interval": list(_bound(metric, estimate_interval(values), least))}
    baselines = [record.get("baseline") for record in records]
    if all(baseline is not None for baseline in baselines):
        others = [baseline["test"] for baseline in baselines if baseline is not None]
        guesses = [baseline["guess"] for baseline in baselines if baseline is not None]
        names = dict.fromkeys(baseline["name"] for baseline in baselines if baseline is not None)
        summary["baseline"] = {"name": ", ".join(names), **_describe(others), "guess": float(np.mean(guesses))}
        sign = 1 if METRICS[metric].higher_is_better else -1
        # Above zero the model is better, whatever the metric.
        gain = _describe([sign * (value - other) for value, other in zip(values, others, strict=True)])
        if METRICS[metric].most == 1:
            # The rule of three: so few may differ where all folds agree.
            low, high = gain["interval"]
            gain["interval"] = [min(low, gain["mean"] - 3 / tested), max(high, gain["mean"] + 3 / tested)]
        summary["gain"] = gain
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


def _bound(metric: str, interval: Interval, least: Interval | None) -> Interval:
    """Return an interval within what the metric can be, and no narrower than the test sequences allow.

    Folds that happen to agree say nothing: three folds of four sequences may each have two right.
    """
    low, high = interval
    if least is not None:
        low, high = min(low, least[0]), max(high, least[1])
    return max(low, 0.0), min(high, METRICS[metric].most)


def _describe(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "interval": list(estimate_interval(values)), "values": values}


def _compare(gain: dict[str, Any]) -> str:
    """Return which of model and baseline is better, by how much, and whether the folds can tell."""
    low, high = gain["interval"]
    better = "model" if gain["mean"] >= 0 else "baseline"
    # As the better one sees it.
    ends = (low, high) if better == "model" else (-high, -low)
    amount = format_number(abs(gain["mean"]))
    interval = describe_interval(*ends)
    if gain["mean"] == 0:
        return f"The model and the baseline did equally well ({interval})."
    if low <= 0 <= high:
        return f"The {better} did better by {amount}, which may be chance ({interval})."
    advice = "" if better == "model" else "; train longer (--minutes), with more sequences, or keep the simple model"
    return f"The {better} is better by {amount} ({interval}){advice}."


def _print_summary(summary: dict[str, Any], settings: RunSettings, console: Console) -> None:
    metric, baseline = describe_name(summary["metric"]), summary.get("baseline")
    table = Table("fold", box=None, pad_edge=False)
    table.add_column(f"test {metric}", justify="right")
    rows = [(str(number), [value]) for number, value in enumerate(summary["values"], 1)]
    rows.append(("mean", [summary["mean"]]))
    if baseline is not None:
        table.add_column(baseline["name"], justify="right")
        for (_, row), value in zip(rows, [*baseline["values"], baseline["mean"]], strict=True):
            row.append(value)
    for name, row in rows:
        table.add_row(name, *(format_number(value, 4) for value in row))
    console.print(table)
    low, high = summary["interval"]
    mean = format_number(summary["mean"])
    lines = [f"{metric} {mean} ({describe_interval(low, high)}, of {summary['folds']} folds)"]
    if baseline is not None:
        others = ((baseline["name"], baseline["mean"]), ("guess", baseline["guess"]))
        lines[0] += "".join(f"; {name} {format_number(value)}" for name, value in others)
        lines.append(_compare(summary["gain"]))
    lines.append(
        "This estimates how well a model does that is trained like these. For one model to use, train without --folds: "
        f"paramixer train {Path(settings.task).name}"
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
