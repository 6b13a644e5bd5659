"""Records as tables: on the terminal, and in the docs as markdown between two markers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from benchmarks.record import Record
from paramixer.bench.rendering import (
    Table,
    comparison_table,
    format_duration,
    format_markdown,
    format_optional,
    render,
)

# Records from before have the parts of a step in another spelling.
_PART_TITLES = {"optimiser": "optimizer"}


def tables_of(record: Record) -> list[Table]:
    """Return what a record says, as tables."""
    return TABLES[record.what](record.measured)


def render_record(record: Record) -> RenderableType:
    """Return all tables of a record for ``console.print``."""
    return Group(*(render(table) for table in tables_of(record)), Text(describe_origin(record), style="dim"))


def format_record(record: Record) -> str:
    """Return all tables of a record in markdown."""
    return "\n\n".join([*map(format_markdown, tables_of(record)), describe_origin(record)])


def insert(page: str, record: Record) -> str:
    """Return the page with the record's tables between ``<!-- bench WHAT -->`` and ``<!-- end -->``."""
    if record.quick:
        raise ValueError(
            f"the record of {record.what} is of a quick run, which measures nothing; run it without --quick"
        )
    begin, end = f"<!-- bench {record.what} -->", "<!-- end -->"
    head, opening, rest = page.partition(begin)
    _, closing, tail = rest.partition(end)
    if not opening or not closing:
        raise ValueError(f"the page has no place for this table; put {begin} and {end} on lines of their own")
    return f"{head}{begin}\n{format_record(record)}\n{end}{tail}"


def describe_origin(record: Record) -> str:
    """Say in one sentence where the numbers come from."""
    machine = record.machine
    if record.what == "gpu-kernels":
        return (
            f"Compiled {record.at[:10]} by Triton {record.measured['triton']} without a GPU, torch {machine['torch']}, "
            f"commit {(record.commit or 'unknown')[:12]}."
        )
    gpu = f"{machine['gpu']}, " if "gpu" in machine else ""
    text = (
        f"Measured {record.at[:10]} on {gpu}{machine['cpu']} ({machine['instruction_set']}), "
        f"{machine['threads']} of {machine['cores']} cores, torch {machine['torch']}, backend {record.engine}, "
        f"commit {(record.commit or 'unknown')[:12]}"
    )
    limits = record.measured.get("limits")
    if limits:
        text += f"; GEMM peak {limits['flops'] / 1e9:.0f} GFLOP/s, memory {limits['bandwidth'] / 1e9:.1f} GB/s"
    return text + (". A quick run: its times mean nothing." if record.quick else ".")


def _tabulate_block(measured: dict[str, Any]) -> list[Table]:
    return [comparison_table(comparison) for comparison in measured["cases"].values()]


def _tabulate_scaling(measured: dict[str, Any]) -> list[Table]:
    made = []
    for protocol, result in measured["protocols"].items():
        columns = ["N", "batch", "forward, ns per token", "forward+backward, ns per token", f"against {result['law']}"]
        table = Table(f"{protocol.upper()}, time per token", columns)
        made.append(table)
        if result["why"] is not None:
            table.rows.append([result["why"], *[""] * 4])
            continue
        forward, both = (result[phase]["seconds_a_token"] for phase in ("forward", "both"))
        power = 2 if "^2" in result["law"] else 1
        for row, length in enumerate(result["lengths"]):
            law = ((length.bit_length() - 1) / (result["lengths"][0].bit_length() - 1)) ** power
            growth = f"{both[row] / both[0] / law:.2f}x"
            times = [f"{phase[row] * 1e9:.0f}" for phase in (forward, both)]
            table.rows.append([str(length), str(result["batches"][row]), *times, growth])
    return made


def _tabulate_memory(measured: dict[str, Any]) -> list[Table]:
    columns = ["pass", "checkpoint every", "peak, MB", "beyond the process's own, MB", "predicted, MB"]
    network = measured["long"]
    jobs = {measured["case"]: measured["chain"], f"{network['case']}, whole network": []}
    jobs[f"{network['case']}, whole network"] = [network[phase] for phase in ("forward", "training")]
    return [Table(title, columns, [_memory_row(job) for job in some]) for title, some in jobs.items()]


def _memory_row(job: dict[str, Any]) -> list[str]:
    sizes = (job[name] and job[name] / 1e6 for name in ("peak", "beyond", "predicted"))
    return [job["what"], format_optional(job["keep"], "{}"), *(format_optional(size, "{:.0f}") for size in sizes)]


def _tabulate_step(measured: dict[str, Any]) -> list[Table]:
    columns = ["preset", "batch x N", "step", "outside paramix", "shares, forward and backward together"]
    table = Table("Whole training steps", columns)
    for name, step in measured["presets"].items():
        shares = {part: sum(phases.values()) for part, phases in step["shares"].items()}
        largest = sorted(shares, key=lambda part: -shares[part])
        parts = [f"{_PART_TITLES.get(part, part)} {shares[part]:.0%}" for part in largest if shares[part] >= 0.005]
        size = f"{step['batch']} x {step['length']}"
        outside = f"{step['outside_paramix']:.0%}"
        table.rows.append([name, size, format_duration(step["seconds"]), outside, ", ".join(parts)])
    return [table]


def _tabulate_figures(measured: dict[str, Any]) -> list[Table]:
    table = Table("Figures to reach", ["what", "to reach", "measured", "reached"])
    for figure in measured["figures"]:
        template = {"x": "{:.3g}x", "%": "{:.0f} %", "GB": "{:.2f} GB"}[figure["unit"]]
        bound = f"{figure['sense']} " + {"x": "{:g}x", "%": "{:g} %", "GB": "{:g} GB"}[figure["unit"]]
        reached = {None: "", True: "yes", False: "no"}[figure["reached"]]
        measured_ = format_optional(figure["measured"], template)
        table.rows.append([figure["what"], bound.format(figure["bound"]), measured_, reached])
    return [table]


def _tabulate_training(measured: dict[str, Any]) -> list[Table]:
    columns = ["preset", "batch x N", "forward, backward and optimizer", "least in a step"]
    size = f"{measured['batch']} x {measured['length']}"
    row = [measured["preset"], size, f"{measured['busy']:.1%}", f"{measured['lowest']:.1%}"]
    return [Table("Share of the training loop spent in the model", columns, [row])]


def _tabulate_models(measured: dict[str, Any]) -> list[Table]:
    lengths, models = measured["lengths"], measured["models"]
    sizes = f"batch {measured['batch']}, channels {measured['channels']}"
    paramixer = models["paramixer"]
    times = Table(
        f"Forward + backward, {sizes}, as multiples of Paramixer's time", ["model", *map(str, lengths), "stopped"]
    )
    seconds = _fill_row(map(format_duration, paramixer["seconds"]), lengths)
    times.rows.append(["Paramixer itself", *seconds, paramixer["stopped"] or ""])
    peaks = Table(f"Peak memory beyond the process's own, {sizes}, MB", ["model", *map(str, lengths)])
    counts = Table("Parameters of a layer", ["model", *map(str, lengths)])
    for name, model in models.items():
        if name != "paramixer":
            ratios = (f"{ratio:.2f}x" for ratio in model["times"])
            times.rows.append([model["title"], *_fill_row(ratios, lengths), model["stopped"] or ""])
        peaks.rows.append([model["title"], *_fill_row((f"{peak / 1e6:.0f}" for peak in model["peak"]), lengths)])
        counts.rows.append([model["title"], *_fill_row(map(str, model["parameters"]), lengths)])
    return [times, peaks, counts]


def _tabulate_kernels(measured: dict[str, Any]) -> list[Table]:
    """One table for every shape; a cell has registers, bytes of local memory, shared memory and resident blocks."""
    devices = list(dict.fromkeys(kernel["device"] for kernel in measured["kernels"]))
    tables: dict[str, Table] = {}
    rows: dict[tuple[str, str, str], list[str]] = {}
    for kernel in measured["kernels"]:
        shape, name, numbers = kernel["shape"], kernel["kernel"], kernel["numbers"]
        if shape not in tables:
            title = f"{shape}; registers per thread, bytes spilled, shared memory, resident blocks"
            tables[shape] = Table(title, ["kernel", "numbers", "tile, warps", *devices])
        if (shape, name, numbers) not in rows:
            row = [name, numbers, f"{kernel['tile']}, {kernel['warps']}"]
            rows[shape, name, numbers] = row
            tables[shape].rows.append(row)
        spilled, shared = kernel["local"], kernel["shared"] / 1024
        rows[shape, name, numbers].append(f"{kernel['registers']}, {spilled}, {shared:.0f} KB, {kernel['blocks']}")
    return [*tables.values(), *_tabulate_traffic(measured["traffic"]), _tabulate_predictions(measured["predicted"])]


def _tabulate_traffic(traffic: dict[str, Any]) -> list[Table]:
    columns = ["kernel", "loaded, most from caches", "stored", "memory", "operations", "useful"]
    made = []
    for shape, passes in traffic.items():
        table = Table(f"{shape}; bytes and operations per token, head and factor", columns)
        for name, one in passes.items():
            sums = dict.fromkeys(("loads", "stores", "memory", "operations", "useful"), 0)
            for kernel in one["kernels"]:
                counts = {key: kernel[key] * (4 if key in ("loads", "stores", "memory") else 1) for key in sums}
                sums = {key: sums[key] + counts[key] for key in sums}
                table.rows.append([kernel["kernel"], *map(str, counts.values())])
            table.rows.append([f"{name}, all", *map(str, sums.values())])
            table.rows.append([f"{name}, the least", "", "", str(4 * one["least"]), str(sums["useful"]), ""])
        made.append(table)
    return made


def _tabulate_predictions(predicted: list[dict[str, Any]]) -> Table:
    columns = ["chain", "GPU", "forward", "backward", "memory of a training step"]
    table = Table("Predicted for the limits in the data sheets, not measured, float32", columns)
    for one in predicted:
        times = [format_duration(one[phase]["seconds"]) for phase in ("forward", "backward")]
        memory = f"{one['training_memory'] / 1e6:.0f} MB"
        table.rows.append([one["case"], one["device"].upper(), *times, memory])
    return table


def _fill_row(cells: Iterable[str], lengths: list[int]) -> list[str]:
    measured = list(cells)
    return measured + [""] * (len(lengths) - len(measured))


TABLES: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "block": _tabulate_block,
    "scaling": _tabulate_scaling,
    "memory": _tabulate_memory,
    "step": _tabulate_step,
    "figures": _tabulate_figures,
    "training": _tabulate_training,
    "models": _tabulate_models,
    "gpu-kernels": _tabulate_kernels,
}
