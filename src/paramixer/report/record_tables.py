"""Tables from the records of runs: headline, speed, settings, and several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paramixer.report.charts import plot_curves, plot_scores
from paramixer.report.page import Pairs
from paramixer.report.runs import Run
from paramixer.report.svg import Chart
from paramixer.report.wording import format_score, format_setting, group_digits

# Settings that the headline shows already.
_IN_HEADLINE = ("model.length", "model.mixer", "model.protocol")


def list_headline(run: Run) -> Pairs:
    """Return metrics, model, parameters, length and steps."""
    record = run.record
    rows: Pairs = []
    name = run.metric.replace("_", " ")
    if record["finished"]:
        if record["test"]:
            rows.append((f"{name} on test", format_score(record["test"][run.metric])))
            if (interval := record.get("intervals", {}).get(run.metric)) is not None:
                rows.append(("95 % interval", f"{format_score(interval[0])} to {format_score(interval[1])}"))
        rows.append((f"{name} on validation", format_score(record["validation"])))
    else:
        rows.append(("state", "not finished"))
    if (baseline := record.get("baseline")) is not None:
        rows.append((f"{name} on test of {baseline['name']}", format_score(baseline["test"])))
        if baseline["guess_name"] == "mean":
            rows.append((f"{name} on test of the mean", format_score(baseline["guess"])))
    if record.get("majority") is not None:
        rows.append(("share of the largest class", format_score(record["majority"])))
    rows.append(("model", run.model_name))
    rows.append(("parameters", group_digits(record["parameters"])))
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
        rows.append(("tokens per second", group_digits(tokens / seconds)))
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
    return [(name, _flatten(group)) for name, group in groups.items()]


def _flatten(settings: dict[str, Any], prefix: str = "") -> Pairs:
    """Return names and values; a setting of a group has the group's name before its own."""
    rows: Pairs = []
    for key, value in settings.items():
        rows += (
            _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, format_setting(value))]
        )
    return rows


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
        title = f"Validation {value.replace('_', ' ')}"
        return plot_curves(lines, "validation", value, title, levels=levels)

    metrics = dict.fromkeys(run.metric for run in runs)
    charts = [plot_scores(_list_scores(runs), next(iter(metrics))) if len(metrics) == 1 else None]
    charts += [plot_curves(lines, "train", "loss", "Training loss"), *map(plot, ["loss", *metrics])]
    return rows, [chart for chart in charts if chart is not None]


def _list_scores(runs: Sequence[Run]) -> list[tuple[str, float, Sequence[float] | None]]:
    """Return name, metric on test and its interval of every run, then of every baseline beside them."""
    scores: list[tuple[str, float, Sequence[float] | None]] = []
    for run in runs:
        if run.record["finished"] and run.record["test"]:
            interval = run.record.get("intervals", {}).get(run.metric)
            scores.append((run.name, run.record["test"][run.metric], interval))
    baselines = [run.record["baseline"] for run in runs if run.record.get("baseline")]
    # Runs on the same data have the same baseline.
    distinct = {(baseline["name"], baseline["test"]): baseline for baseline in baselines}
    return scores + [(name, test, baseline.get("interval")) for (name, test), baseline in distinct.items()]


def _list_differences(runs: Sequence[Run]) -> list[Pairs]:
    """Return, for each run, the settings of which the runs have different values; not those that others lack."""
    settings = [
        {
            f"{group}.{key}": format_setting(value)
            for group in ("model", "training")
            for key, value in run.record[group].items()
        }
        for run in runs
    ]
    names = dict.fromkeys(name for values in settings for name in values)
    differing = [name for name in names if len({values[name] for values in settings if name in values}) > 1]
    return [[(name, values.get(name, "")) for name in differing if name not in _IN_HEADLINE] for values in settings]
