"""``paramixer data list`` and ``paramixer data prepare``."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from paramixer.data import registry
from paramixer.data.progress import counted
from paramixer.data.storage import cache
from paramixer.data.summary import SplitSummary, draw_lengths, summarise, warnings
from paramixer.data.task import Task


@dataclass(frozen=True)
class ListOptions:
    """Show every task: its length, its classes, where its data comes from, and whether that is here."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Which data, and how it is read. What a task does not take is refused."""

    source: Path | None = None
    """File or folder with the data."""
    length: int | None = None
    """N; longer sequences are cut. None for the task's own."""
    seed: int = 0
    """Of generated data and of the cut into splits."""
    text: str | None = None
    """Column of the texts, sequences or lists of numbers."""
    label: str | None = None
    """Column of the labels or values; for FASTA, where in the header the label is."""
    labels: Path | None = None
    """A second file with the labels."""
    target: Literal["class", "value"] | None = None
    """Whether to classify or to predict a value; None to tell from the targets."""
    split: str | None = None
    """Column that says train, validation or test."""
    id: str | None = None
    """Column that names the sequences."""
    encoding: str | None = None
    """Of text files."""
    strict: bool | None = None
    """Refuse letters that are not in the alphabet."""
    train: int | None = None
    """Generated training sequences."""
    validation: float | None = None
    """Share, or number, of the validation sequences."""
    test: float | None = None
    """Share, or number, of the test sequences."""
    difficulty: str | None = None
    """Of Pathfinder: easy, medium, hard or pooled."""
    size: int | None = None
    """Of Pathfinder's images: pixels a side."""
    windows: bool | None = None
    """Cut windows from chromosomes instead of taking whole sequences."""
    shortest: int | None = None
    """Leave out genome sequences that are not longer than this."""
    stride: int | None = None
    """Positions from one training window to the next, on average."""

    def given(self) -> dict[str, Any]:
        """What was said, as :func:`paramixer.data.load` takes it."""
        names = [field.name for field in fields(TaskOptions)]
        said = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        for name in ("validation", "test"):
            if name in said and said[name] >= 1:
                said[name] = int(said[name])
        return said


@dataclass(frozen=True)
class PrepareOptions(TaskOptions):
    """Read a task's data into the cache, once, and say what it is made of."""

    task: str
    """A task's name, or a file of your own."""
    picture: Path | None = None
    """Where to draw the lengths, .svg or .png; None for a file in the cache."""


def show_list(options: ListOptions, console: Console) -> None:
    """``paramixer data list``."""
    table = Table("task", "what", "N", "classes", "here", box=SIMPLE)
    prepared = _prepared()
    wanted = []
    for name, definition in registry.definitions().items():
        here = ["generated"] if definition.generated else []
        if found := registry.at_hand(name):
            here.append(f"found {found}")
        if name in prepared:
            here.append(f"prepared {prepared[name]}x")
        if not definition.generated:
            wanted.append(f"[bold]{name}[/bold]: {definition.origin}")
        table.add_row(name, definition.title, definition.length, definition.classes, ", ".join(here) or "no")
    console.print(table)
    console.print("Where the data of the others comes from (give it with --source PATH):")
    for line in wanted:
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    console.print(f"Prepared data is kept in {cache.folder()}", style="dim", highlight=False, soft_wrap=True)


def prepare(options: PrepareOptions, console: Console) -> None:
    """``paramixer data prepare``."""
    with counted(console) as count:
        task = registry.load(options.task, count=count, **options.given())
    print_summary(task, console)
    picture = options.picture or cache.folder() / f"{task.name}-{task.fingerprint[:8]}-lengths.svg"
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw_lengths(task, picture)
    console.print(f"lengths drawn in {picture}", highlight=False, soft_wrap=True)


def print_summary(task: Task, console: Console) -> None:
    """What there is, and what a user should hear before training."""
    symbols = f"{len(task.vocabulary)} symbols" if task.vocabulary else f"{task.features} numbers a position"
    kind = f"{len(task.classes)} classes" if task.target == "class" else "a value"
    info = f"{task.name}: N = {task.length}, {symbols}, {kind}, judged by {task.metric}, preset {task.preset}"
    console.print(info, highlight=False, soft_wrap=True)
    table = Table("split", "sequences", "shortest", "median", "longest", "cut", "padded", box=SIMPLE)
    splits = summarise(task)
    for name, split in splits.items():
        numbers = split.sequences, split.shortest, split.median, split.longest, split.cut, split.padded
        table.add_row(name, *map(str, numbers))
    console.print(table)
    for name, split in splits.items():
        console.print(f"targets in {name}: {_targets(split)}", highlight=False, soft_wrap=True)
    for warning in warnings(task):
        console.print(f"note: {warning}", highlight=False, soft_wrap=True)
    console.print(f"fingerprint {task.fingerprint[:16]}", style="dim", highlight=False)


def _targets(split: SplitSummary) -> str:
    if split.spread is not None:
        return f"{split.spread[0]:.3g} to {split.spread[2]:.3g}, mean {split.spread[1]:.3g}"
    most = sorted(split.classes.items(), key=lambda item: -item[1])
    text = ", ".join(f"{label} {count}" for label, count in most[:10])
    return text + (f", and {len(most) - 10} more" if len(most) > 10 else "")


def _prepared() -> dict[str, int]:
    """How many prepared data sets there are of each task."""
    counts: dict[str, int] = {}
    for info in cache.folder().glob("*/facts.json"):
        name = json.loads(info.read_text(encoding="utf-8"))["name"]
        counts[name] = counts.get(name, 0) + 1
    return counts
