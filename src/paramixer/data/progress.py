"""Progress of a preparation: a counter on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

T = TypeVar("T")


class Counter(Protocol):
    """Passes items on and shows how many there were."""

    def __call__(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """The same items."""


def silent(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """No progress at all."""
    return iter(items)


@contextmanager
def counted(console: Console) -> Iterator[Counter]:
    """Progress bars on this console while the context lasts."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:

        def count(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
            if total is None and isinstance(items, Sized):
                total = len(items)
            row = progress.add_task(what, total=total)
            for item in items:
                yield item
                progress.advance(row)
            progress.remove_task(row)

        yield count
