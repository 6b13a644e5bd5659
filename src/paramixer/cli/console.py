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


def make_table(*columns: str, title: str | None = None, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table whose first column is never cut or wrapped; ``numbers`` are aligned to the right."""
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if column in numbers else "left",
            no_wrap=index == 0 or column in numbers,
            overflow="fold",
        )
    return table
