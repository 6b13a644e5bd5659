"""Progress of a preparation: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


class Progress(Protocol):
    """Passes items on and shows how many there were."""

    def __call__(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """Yield the same items."""


def no_progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Return an iterator over the same items; nothing is shown."""
    return iter(items)


@contextmanager
def show_progress(console: Console) -> Iterator[Progress]:
    """Show progress bars on this console while the context lasts."""
    from rich import progress as rich

    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn()
    disable = not console.is_terminal
    with rich.Progress(*columns, rich.TimeElapsedColumn(), console=console, transient=True, disable=disable) as bars:

        def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
            if total is None and isinstance(items, Sized):
                total = len(items)
            bar = bars.add_task(what, total=total)
            for item in items:
                yield item
                bars.advance(bar)
            bars.remove_task(bar)

        yield progress
