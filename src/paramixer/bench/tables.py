"""Records as tables: on the terminal with rich, in the docs as markdown between two markers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from paramixer.bench.record import Record
from paramixer.bench.ways import WAYS


@dataclass(frozen=True)
class Table:
    """A table of texts; what was not measured is empty."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)


def tables(record: Record) -> list[Table]:
    """What a record says, as tables."""
    return TABLES[record.what](record.measured)


def on_terminal(record: Record) -> RenderableType:
    """For ``console.print``."""
    return Group(*(drawn(table) for table in tables(record)), Text(provenance(record), style="dim"))


def drawn(table: Table) -> RenderableType:
    """One table for ``console.print``."""
    grid = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left")
    for number, column in enumerate(table.columns):
        first = number == 0
        grid.add_column(column, justify="left" if first else "right", overflow="fold", min_width=18 if first else None)
    for row in table.rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def markdown(record: Record) -> str:
    """For the docs."""
    parts = []
    for table in tables(record):
        lines = [table.columns, ["---"] * len(table.columns), *table.rows]
        parts.append("\n".join([f"{table.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)]))
    return "\n\n".join([*parts, provenance(record)])


def insert(page: str, record: Record) -> str:
    """The page with the record's tables between ``<!-- bench WHAT -->`` and ``<!-- end -->``."""
    if record.quick:
        raise ValueError(
            f"the record of {record.what} is of a quick run, which measures nothing; run it without --quick"
        )
    begin, end = f"<!-- bench {record.what} -->", "<!-- end -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no place for this table; put {begin} and {end} on lines of their own")
    return f"{head}{begin}\n{markdown(record)}\n{end}{tail}"


def provenance(record: Record) -> str:
    """Where the numbers come from, in one sentence."""
    machine = record.machine
    text = (
        f"Measured {record.at[:10]} on {machine['cpu']} ({machine['instruction_set']}), {machine['threads']} of "
        f"{machine['cores']} cores, torch {machine['torch']}, engine {record.engine}, "
        f"commit {(record.commit or 'unknown')[:12]}"
    )
    found = record.measured.get("limits")
    if found:
        text += f"; GEMM peak {found['flops'] / 1e9:.0f} GFLOP/s, memory {found['bandwidth'] / 1e9:.1f} GB/s"
    return text + (". A quick run: its times mean nothing." if record.quick else ".")


def cost_table(document: dict[str, Any]) -> Table:
    """What ``paramixer cost`` prints."""
    forward, backward = document["forward"], document["backward"]
    title = (
        f"{document['case']}: {document['parameters']} parameters, engine {document['engine']}, keep {document['keep']}"
    )
    names = {
        "products": "useful FLOPs: products and mix",
        "additions": "element-wise additions",
        "gelus": "GELUs or their derivatives",
        "recomputed": "FLOPs recomputed",
        "bytes": "bytes to and from memory",
    }
    rows = [
        [text, *(_quantity(number) for number in (forward[name], backward[name], forward[name] + backward[name]))]
        for name, text in names.items()
    ]
    seconds = forward["seconds"], backward["seconds"], forward["seconds"] + backward["seconds"]
    rows.append(["predicted time", *map(_duration, seconds)])
    memory = forward["memory"], document["training_memory"]
    rows.append(["predicted peak memory", f"{memory[0] / 1e6:.1f} MB", "", f"{memory[1] / 1e6:.1f} MB"])
    return Table(title, ["", "forward", "backward", "a training step"], rows)


def _block(measured: dict[str, Any]) -> list[Table]:
    return [_case(found) for found in measured["cases"].values()]


def _case(found: dict[str, Any]) -> Table:
    columns = ["way", "forward", "times", "of peak", "forward + backward", "times", "of peak"]
    table = Table(found["case"], columns)
    for name, way in found["ways"].items():
        label = WAYS[name].what if name in WAYS else name
        if way["why"] is not None:
            table.rows.append([f"{label}: {way['why']}", *[""] * 6])
            continue
        cells = [label]
        for phase in ("forward", "both"):
            timing = way[phase]
            cells += [
                _duration(timing["seconds"]),
                _cell(timing["times_engine"], "{:.2f}x"),
                _cell(timing["share_of_peak"], "{:.0%}"),
            ]
        table.rows.append(cells)
    predicted = found["predicted"]
    forward = predicted["forward"]["seconds"]
    both = forward + predicted["backward"]["seconds"]
    name = f"predicted for engine {predicted['engine']}"
    table.rows.append([name, _duration(forward), "", "", _duration(both), "", ""])
    return table


def _scaling(measured: dict[str, Any]) -> list[Table]:
    drawn = []
    for protocol, found in measured["protocols"].items():
        columns = ["N", "batch", "forward, ns a token", "forward+backward, ns a token", f"against {found['law']}"]
        table = Table(f"{protocol.upper()}, time a token", columns)
        drawn.append(table)
        if found["why"] is not None:
            table.rows.append([found["why"], *[""] * 4])
            continue
        forward, both = (found[phase]["seconds_a_token"] for phase in ("forward", "both"))
        power = 2 if "^2" in found["law"] else 1
        for row, length in enumerate(found["lengths"]):
            law = ((length.bit_length() - 1) / (found["lengths"][0].bit_length() - 1)) ** power
            growth = f"{both[row] / both[0] / law:.2f}x"
            times = [f"{phase[row] * 1e9:.0f}" for phase in (forward, both)]
            table.rows.append([str(length), str(found["batches"][row]), *times, growth])
    return drawn


def _memory(measured: dict[str, Any]) -> list[Table]:
    columns = ["what", "keep", "peak, MB", "beyond the process's own, MB", "predicted, MB"]
    rows = {measured["case"]: measured["chain"], measured["long"]["case"] + ", whole network": []}
    rows[measured["long"]["case"] + ", whole network"] = [measured["long"][what] for what in ("forward", "training")]
    drawn = []
    for title, found in rows.items():
        lines = [
            [
                row["what"],
                _cell(row["keep"], "{}"),
                *(_cell(row[name] and row[name] / 1e6, "{:.0f}") for name in ("peak", "beyond", "predicted")),
            ]
            for row in found
        ]
        drawn.append(Table(title, columns, lines))
    return drawn


def _step(measured: dict[str, Any]) -> list[Table]:
    columns = ["preset", "batch x N", "a step", "outside paramix", "where it goes, forward and backward together"]
    table = Table("Whole training steps", columns)
    for name, found in measured["presets"].items():
        shares = {part: sum(phases.values()) for part, phases in found["shares"].items()}
        largest = sorted(shares, key=lambda part: -shares[part])
        parts = [f"{part} {shares[part]:.0%}" for part in largest if shares[part] >= 0.005]
        size = f"{found['batch']} x {found['length']}"
        row = [name, size, _duration(found["seconds"]), f"{found['outside_paramix']:.0%}", ", ".join(parts)]
        table.rows.append(row)
    return [table]


def _figures(measured: dict[str, Any]) -> list[Table]:
    table = Table("Figures to reach", ["what", "to reach", "measured", "reached"])
    for figure in measured["figures"]:
        template = {"x": "{:.3g}x", "%": "{:.0f} %", "GB": "{:.2f} GB"}[figure["unit"]]
        bound = f"{figure['sense']} " + {"x": "{:g}x", "%": "{:g} %", "GB": "{:g} GB"}[figure["unit"]]
        reached = {None: "", True: "yes", False: "no"}[figure["reached"]]
        table.rows.append([figure["what"], bound.format(figure["bound"]), _cell(figure["measured"], template), reached])
    return [table]


def _training(measured: dict[str, Any]) -> list[Table]:
    columns = ["preset", "batch x N", "forward, backward and optimizer", "in the worst step"]
    size = f"{measured['batch']} x {measured['length']}"
    row = [measured["preset"], size, f"{measured['busy']:.1%}", f"{measured['lowest']:.1%}"]
    return [Table("Share of training that is training", columns, [row])]


def _models(measured: dict[str, Any]) -> list[Table]:
    lengths, models = measured["lengths"], measured["models"]
    sizes = f"batch {measured['batch']}, channels {measured['channels']}"
    own = models["paramixer"]
    times = Table(
        f"Forward + backward, {sizes}, as multiples of Paramixer's time", ["model", *map(str, lengths), "stopped"]
    )
    times.rows.append(["Paramixer itself", *_filled(map(_duration, own["seconds"]), lengths), own["stopped"] or ""])
    peaks = Table(f"Peak memory beyond the process's own, {sizes}, MB", ["model", *map(str, lengths)])
    counts = Table("Parameters of a layer", ["model", *map(str, lengths)])
    for name, found in models.items():
        if name != "paramixer":
            ratios = (f"{ratio:.2f}x" for ratio in found["times"])
            times.rows.append([found["title"], *_filled(ratios, lengths), found["stopped"] or ""])
        peaks.rows.append([found["title"], *_filled((f"{peak / 1e6:.0f}" for peak in found["peak"]), lengths)])
        counts.rows.append([found["title"], *_filled(map(str, found["parameters"]), lengths)])
    return [times, peaks, counts]


def _filled(cells: Iterable[str], lengths: list[int]) -> list[str]:
    known = list(cells)
    return known + [""] * (len(lengths) - len(known))


TABLES: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "block": _block,
    "scaling": _scaling,
    "memory": _memory,
    "step": _step,
    "figures": _figures,
    "training": _training,
    "models": _models,
}


def _cell(value: Any, template: str) -> str:
    return "" if value is None else template.format(value)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _quantity(count: int) -> str:
    """A whole number, exact as long as it can be read at a glance."""
    return f"{count:,}" if count < 10**7 else f"{count:.4g}"
