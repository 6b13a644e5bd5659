"""Tables of texts: on the terminal within its width, in documents as markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from paramixer.bench.implementations import IMPLEMENTATIONS

WIDTH = 80
# A cell of several words may be broken into lines of about so many characters, a label of the first column of more.
_CELL, _LABEL = 14, 26


@dataclass(frozen=True)
class Table:
    """A table of texts; a cell that was not measured is empty."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)


def render(table: Table, width: int = WIDTH) -> RenderableType:
    """Return one table for ``console.print``; what is too wide continues below, with the first column again."""
    return Group(*(_render_columns(table, places) for places in _split_columns(table, width)))


def format_markdown(table: Table) -> str:
    """Return the table in markdown, its title above it."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join([f"{table.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)])


def comparison_table(comparison: dict[str, Any]) -> Table:
    """Return what ``compare_implementations`` measured as a table."""
    columns = ["implementation", "forward", "times", "of peak", "forward + backward", "times", "of peak"]
    table = Table(comparison["case"], columns)
    for name, result in comparison["ways"].items():
        label = IMPLEMENTATIONS[name].title if name in IMPLEMENTATIONS else name
        if result["why"] is not None:
            table.rows.append([f"{label}: {result['why']}", *[""] * 6])
            continue
        cells = [label]
        for phase in ("forward", "both"):
            timing = result[phase]
            cells += [
                format_duration(timing["seconds"]),
                format_optional(timing["times_engine"], "{:.2f}x"),
                format_optional(timing["share_of_peak"], "{:.0%}"),
            ]
        table.rows.append(cells)
    predicted = comparison["predicted"]
    forward = predicted["forward"]["seconds"]
    both = forward + predicted["backward"]["seconds"]
    label = f"predicted for backend {predicted['engine']}"
    table.rows.append([label, format_duration(forward), "", "", format_duration(both), "", ""])
    return table


def cost_table(cost: dict[str, Any]) -> Table:
    """Return what ``cost.describe`` predicts as a table."""
    forward, backward = cost["forward"], cost["backward"]
    title = (
        f"{cost['case']}: {cost['parameters']} parameters, backend {cost['engine']}, checkpoint every {cost['keep']}"
    )
    names = {
        "products": "useful FLOPs: products and mix",
        "additions": "element-wise additions",
        "gelus": "GELUs or their derivatives",
        "recomputed": "FLOPs recomputed",
        "bytes": "bytes to and from memory",
    }
    rows = [
        [text, *(_format_count(number) for number in (forward[name], backward[name], forward[name] + backward[name]))]
        for name, text in names.items()
    ]
    seconds = forward["seconds"], backward["seconds"], forward["seconds"] + backward["seconds"]
    rows.append(["predicted time", *map(format_duration, seconds)])
    memory = forward["memory"], cost["training_memory"]
    rows.append(["predicted peak memory", f"{memory[0] / 1e6:.1f} MB", "", f"{memory[1] / 1e6:.1f} MB"])
    return Table(title, ["", "forward", "backward", "training step"], rows)


def format_optional(value: Any, template: str) -> str:
    """Return the value in the template; empty for None."""
    return "" if value is None else template.format(value)


def format_duration(seconds: float) -> str:
    """Return seconds from one second on, milliseconds below."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _format_count(count: int) -> str:
    """Return a whole number, exact as long as it can be read at a glance."""
    return f"{count:,}" if count < 10**7 else f"{count:.4g}"


def _split_columns(table: Table, width: int) -> list[list[int]]:
    """Return the places of the columns of each part of a table, the first column in every part."""
    texts = [[column, *(row[place] for row in table.rows)] for place, column in enumerate(table.columns)]
    wanted = [_natural_width(cells, _LABEL if place == 0 else _CELL) + 2 for place, cells in enumerate(texts)]
    parts: list[list[int]] = [[]]
    used = wanted[0]
    for place in range(1, len(wanted)):
        if parts[-1] and used + wanted[place] > width:
            parts.append([])
            used = wanted[0]
        parts[-1].append(place)
        used += wanted[place]
    return [[0, *part] for part in parts]


def _natural_width(cells: list[str], comfortable: int) -> int:
    longest_word = max((len(word) for cell in cells for word in cell.split()), default=0)
    return max(longest_word, min(comfortable, max(map(len, cells))))


def _render_columns(table: Table, places: list[int]) -> RenderableType:
    grid = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for place in places:
        is_numeric = all(row[place][:1].isdigit() for row in table.rows if row[place])
        grid.add_column(table.columns[place], justify="right" if place and is_numeric else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(row[place]) for place in places))
    return grid
