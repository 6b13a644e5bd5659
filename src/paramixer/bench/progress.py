"""A line that says what is being measured, redrawn only between the things that are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Say = Callable[[str], None]


def silent(text: str) -> None:
    """For callers who want no progress."""


def within(say: Say, prefix: str) -> Say:
    """Says the same after a prefix."""
    return lambda text: say(f"{prefix}: {text}")


@contextmanager
def shown(console: Console) -> Iterator[Say]:
    """Shows what is said, with the time so far."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    # Rich's refreshing thread would take part in what is timed.
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def say(text: str) -> None:
            progress.update(task, description=text)
            progress.refresh()

        yield say
