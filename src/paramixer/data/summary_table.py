"""The summary of a task as a user reads it before training."""

from __future__ import annotations

import math

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from paramixer.data.summary import SplitSummary, find_warnings, summarize
from paramixer.data.task import Task

_COLUMNS = "sequences", "shortest", "median", "longest", "cut", "padded"
# More classes than this are counted, not listed.
_CLASSES = 10


def print_summary(task: Task, console: Console) -> None:
    """Print sizes, lengths and targets of every split, and what a user should know before training."""
    for line in task.describe() or [_describe(task)]:
        _print(line, console)
    table = Table("split", box=SIMPLE, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    splits = summarize(task)
    for name, split in splits.items():
        table.add_row(name, *(str(getattr(split, column)) for column in _COLUMNS))
    console.print(table)
    for name, split in splits.items():
        _print(f"targets in {name}: {_describe_targets(split)}", console)
    for warning in find_warnings(task):
        _print(f"note: {warning}", console)
    console.print(f"fingerprint {task.fingerprint[:16]}", style="dim", highlight=False)


def _describe(task: Task) -> str:
    symbols = f"{len(task.vocabulary)} symbols" if task.vocabulary else f"{task.features} numbers per position"
    kind = f"{len(task.classes)} classes" if task.target == "class" else "a value"
    return f"{task.display_name}: N = {task.length}, {symbols}, {kind}, metric {task.metric}, preset {task.preset}"


def _print(text: str, console: Console) -> None:
    console.print(text, highlight=False, markup=False)


def _describe_targets(split: SplitSummary) -> str:
    if split.spread is not None:
        low, mean, high = split.spread
        # Enough digits to tell the ends apart.
        size, width = max(abs(low), abs(high)), high - low
        digits = 3 + max(0, math.ceil(math.log10(size / width))) if width > 0 else 3
        return f"{low:.{digits}g} to {high:.{digits}g}, mean {mean:.{digits}g}"
    by_size = sorted(split.classes.items(), key=lambda item: -item[1])
    text = ", ".join(f"{label} {count}" for label, count in by_size[:_CLASSES])
    return text + (f", and {len(by_size) - _CLASSES} more" if len(by_size) > _CLASSES else "")
