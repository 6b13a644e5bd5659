"""The console that commands print to, and tables that fit into 80 columns."""

from __future__ import annotations

from typing import NoReturn

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text


class CommandConsole(Console):
    """A console that leaves a broken pipe to the command line, which ends silently."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise what rich would turn into an exit."""
        raise BrokenPipeError

    def print_line(self, text: str, style: str | None = None) -> None:
        """Print a line as it is: no markup, no colors, no line breaks, so that paths can be copied."""
        self.print(Text(text, style=style or ""), soft_wrap=True)


def make_table(*columns: str, numbers: tuple[str, ...] = (), widths: dict[str, int] | None = None) -> Table:
    """Return an empty table whose first column is never cut or wrapped.

    Args:
        columns: their names.
        numbers: columns that are aligned to the right.
        widths: greatest widths of columns, which are wrapped beyond.
    """
    table = Table(box=SIMPLE, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if column in numbers else "left",
            no_wrap=place == 0,
            max_width=(widths or {}).get(column),
            overflow="fold",
        )
    return table
