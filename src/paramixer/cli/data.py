"""``paramixer data list`` and ``paramixer data prepare``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paramixer.cli.data_options import DataOptions

if TYPE_CHECKING:
    from paramixer.cli.console import CommandConsole
    from paramixer.data.summary import SplitSummary
    from paramixer.data.task import Task


def list_tasks() -> None:
    """List every task: its length, its classes, where its data comes from, and whether that is available."""
    from paramixer.cli.console import CommandConsole, make_table
    from paramixer.data import registry
    from paramixer.data.storage import cache

    console = CommandConsole()
    table = make_table("task", "what", "N", "classes", "available")
    prepared = _count_prepared()
    origins = {}
    for name, definition in registry.definitions().items():
        available = ["generated"] if definition.generated else []
        if source := registry.at_hand(name):
            available.append(f"found {source}")
        if name in prepared:
            available.append(f"prepared {prepared[name]}x")
        if not definition.generated:
            origins[name] = definition.origin
        table.add_row(name, definition.title, definition.length, definition.classes, ", ".join(available) or "no")
    console.print(table)
    console.print_line("Where the data of the others comes from (give it with --source PATH):")
    for name, origin in origins.items():
        console.print(f"  {name}: {origin}", highlight=False, markup=False)
    console.print_line(f"Prepared data is in {cache.folder()}", style="dim")


def prepare(
    task: str,
    /,
    options: Annotated[DataOptions | None, Parameter(name="*")] = None,
    *,
    seed: int = 0,
    picture: Path | None = None,
) -> None:
    """Read the data of a task into the cache, once, and print what it is made of.

    Args:
        task: A task's name, or a file of your own.
        options: The options of the data.
        seed: Seed of generated data and of the splits.
        picture: Where to draw the lengths, .svg or .png. By default a file in the cache.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data import registry
    from paramixer.data.progress import counted
    from paramixer.data.storage import cache
    from paramixer.data.summary import draw_lengths

    console = CommandConsole()
    given = options.given() if options is not None else {}
    with counted(console) as count:
        data = registry.load(task, count=count, seed=seed, **given)
    print_summary(data, console)
    place = picture or cache.folder() / f"{data.name}-{data.fingerprint[:8]}-lengths.svg"
    place.parent.mkdir(parents=True, exist_ok=True)
    draw_lengths(data, place)
    console.print_line(f"lengths drawn in {place}")


def print_summary(task: "Task", console: "CommandConsole") -> None:
    """Print the sizes and targets of a task, and what a user should know before training."""
    from paramixer.cli.console import make_table
    from paramixer.data.summary import summarise, warnings

    symbols = f"{len(task.vocabulary)} symbols" if task.vocabulary else f"{task.features} numbers per position"
    kind = f"{len(task.classes)} classes" if task.target == "class" else "a value"
    console.print(
        f"{task.name}: N = {task.length}, {symbols}, {kind}, metric {task.metric}, preset {task.preset}",
        highlight=False,
        markup=False,
    )
    columns = "sequences", "shortest", "median", "longest", "cut", "padded"
    table = make_table("split", *columns, numbers=columns)
    splits = summarise(task)
    for name, split in splits.items():
        table.add_row(name, *(str(getattr(split, column)) for column in columns))
    console.print(table)
    for name, split in splits.items():
        console.print(f"targets in {name}: {_describe_targets(split)}", highlight=False, markup=False)
    for warning in warnings(task):
        console.print(f"note: {warning}", highlight=False, markup=False)
    console.print_line(f"fingerprint {task.fingerprint[:16]}", style="dim")


def _describe_targets(split: "SplitSummary") -> str:
    if split.spread is not None:
        return f"{split.spread[0]:.3g} to {split.spread[2]:.3g}, mean {split.spread[1]:.3g}"
    most = sorted(split.classes.items(), key=lambda item: -item[1])
    text = ", ".join(f"{label} {count}" for label, count in most[:10])
    return text + (f", and {len(most) - 10} more" if len(most) > 10 else "")


def _count_prepared() -> dict[str, int]:
    """Return how many prepared data sets there are of each task."""
    import json

    from paramixer.data.storage import cache

    counts: dict[str, int] = {}
    for info in cache.folder().glob("*/facts.json"):
        name = json.loads(info.read_text(encoding="utf-8"))["name"]
        counts[name] = counts.get(name, 0) + 1
    return counts
