"""Tables from the records of runs: headline, speed, settings, and several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from paramixer.report.charts import plot_curves
from paramixer.report.page import Pairs
from paramixer.report.runs import Run
from paramixer.report.svg import Chart

# Settings that the headline shows already.
_IN_HEADLINE = ("model.length", "model.mixer", "model.protocol")


def list_headline(run: Run) -> Pairs:
    """Return metrics, model, parameters, length and steps."""
    record = run.record
    rows: Pairs = []
    if record["finished"]:
        metric = record["metric"]
        if record["test"]:
            rows.append((f"{metric} on test", f"{record['test'][metric]:.4g}"))
            if (interval := record.get("intervals", {}).get(metric)) is not None:
                rows.append(("95 % interval", f"{interval[0]:.4g} to {interval[1]:.4g}"))
        rows.append((f"{metric} on validation", f"{record['validation']:.4g}"))
    else:
        rows.append(("state", "not finished"))
    if (baseline := record.get("baseline")) is not None:
        rows.append((f"{run.metric} on test of {baseline['name']}", f"{baseline['test']:.4g}"))
        if baseline["guess_name"] == "mean":
            rows.append((f"{run.metric} on test of the mean", f"{baseline['guess']:.4g}"))
    if record.get("majority") is not None:
        rows.append(("share of the largest class", f"{record['majority']:.4g}"))
    rows.append(("model", run.model_name))
    rows.append(("parameters", _group_digits(record["parameters"])))
    rows.append(("length N", str(record["model"]["length"])))
    rows.append(("steps", str(record.get("steps", max((line["step"] for line in run.lines), default=0)))))
    return rows


def list_speed(run: Run) -> Pairs:
    """Return training time, throughput, memory, backend and machine."""
    record, machine = run.record, run.record["machine"]
    seconds = max(record["seconds"], max((line["seconds"] for line in run.lines if "seconds" in line), default=0.0))
    tokens = max(record["tokens"], max((line.get("tokens", 0) for line in run.lines), default=0))
    rows = [("training time", f"{seconds / 60:.1f} minutes" if seconds >= 60 else f"{seconds:.0f} seconds")]
    if tokens and seconds:
        rows.append(("tokens per second", _group_digits(tokens / seconds)))
    rows.append(("peak memory", f"{record['peak_memory'] / 2**20:.0f} MiB"))
    rows.append(("backend", record["engine"]))
    threads = f"{machine['threads']} thread{'s' if machine['threads'] > 1 else ''}"
    rows.append(("machine", f"{machine['cpu']}, {threads}"))
    return rows


def list_settings(run: Run) -> list[tuple[str, Pairs]]:
    """Return all settings in groups, each with its name."""
    record = run.record
    about = {name: record[name] for name in ("task", "seed", "processes", "commit", "fingerprint")}
    about |= {"stopped": record["stopped"]} if "stopped" in record else {}
    groups = {"run": about, "config.yaml": run.config, "model": record["model"], "training": record["training"]}
    return [(name, [(key, str(value)) for key, value in group.items()]) for name, group in groups.items()]


def compare_runs(runs: Sequence[Run]) -> tuple[list[tuple[str, list[str]]], list[Chart]]:
    """Return a table with one column per run, and charts with one curve per run."""
    rows = []
    for tables in ([list_headline(run) for run in runs], [list_speed(run) for run in runs], _list_differences(runs)):
        columns = [dict(table) for table in tables]
        names = dict.fromkeys(name for column in columns for name in column)
        rows += [(name, [column.get(name, "") for column in columns]) for name in names]
    lines = [(run.name, run.lines) for run in runs]

    def plot(value: str) -> Chart | None:
        # Runs on the same data have the same baseline.
        levels = list(dict.fromkeys(level for run in runs for level in run.baseline_levels(value)))
        return plot_curves(lines, "validation", value, f"Validation {value}", levels=levels)

    metrics = dict.fromkeys(run.metric for run in runs)
    charts = [plot_curves(lines, "train", "loss", "Training loss"), *map(plot, ["loss", *metrics])]
    return rows, [chart for chart in charts if chart is not None]


def _list_differences(runs: Sequence[Run]) -> list[Pairs]:
    """Return, for each run, the settings of which the runs have different values; not those that others lack."""
    settings = [
        {f"{group}.{key}": str(value) for group in ("model", "training") for key, value in run.record[group].items()}
        for run in runs
    ]
    names = dict.fromkeys(name for values in settings for name in values)
    differing = [name for name in names if len({values[name] for values in settings if name in values}) > 1]
    return [[(name, values.get(name, "")) for name in differing if name not in _IN_HEADLINE] for values in settings]


def _group_digits(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")
