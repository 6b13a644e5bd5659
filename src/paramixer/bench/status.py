"""A status line that says what is being measured, redrawn only between the things that are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Notify = Callable[[str], None]


def ignore(text: str) -> None:
    """Show nothing, for callers who want no progress."""


def add_prefix(notify: Notify, prefix: str) -> Notify:
    """Return a function that reports the same text after a prefix."""
    return lambda text: notify(f"{prefix}: {text}")


@contextmanager
def show_status(console: Console) -> Iterator[Notify]:
    """Show the latest text with the time so far."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    # Rich's refreshing thread would take part in what is timed.
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def notify(text: str) -> None:
            progress.update(task, description=text)
            progress.refresh()

        yield notify
