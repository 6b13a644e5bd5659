"""From an opened run to what the page shows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

from paramixer.data.summary import summarise, warnings
from paramixer.data.task import Task, TaskInfo
from paramixer.explain import Explanation, explain
from paramixer.nn.model import Paramixer
from paramixer.report import charts, findings
from paramixer.report.charts import Chart
from paramixer.report.factor_data import mixing_of
from paramixer.report.findings import Findings
from paramixer.report.page import Pairs, RunPart
from paramixer.report.runs import OpenedRun
from paramixer.report.sequence import look_of, png, visible
from paramixer.training.metrics import METRICS

# What all explorers of a page may take; the rest of it is small.
BUDGET = 7_000_000
# Sequences that can be explored, where there is room for so many.
_EXPLORED = 3
# A confusion matrix of more classes than this is too large to be read.
_CLASSES = 40
_SNIPPET = 280


def part_of(run: OpenedRun, most: int, batch: int, budget: int, console: Console) -> RunPart:
    """Everything there is to show of a run.

    Args:
        run: as it was opened.
        most: sequences of test to answer.
        batch: sequences at a time.
        budget: bytes that its explorers may take.
        console: shows progress.
    """
    part = RunPart(run.name, missing=run.missing, headline=_headline(run), speed=_speed(run), settings=_settings(run))
    metric = _metric(run)
    shown = [
        charts.curves([(run.name, run.lines)], kind, value, title, run.name)
        for kind, value, title in (
            ("train", "loss", "Training loss"),
            ("validation", "loss", "Validation loss"),
            ("validation", metric, f"Validation {metric}"),
            ("train", "learning_rate", "Step size"),
        )
    ]
    part.charts = [chart for chart in shown if chart is not None]
    if run.task is not None:
        part.data = _data(run.name, run.task)
    if run.task is None or run.model is None:
        return part
    found = findings.find(run.model, run.task, most, batch, console)
    if found is None:
        return part
    with console.status(f"looking into {run.name}"):
        _answers(part, run.task, found)
        if isinstance(run.model, Paramixer) and run.model.config.pooling != "token":
            _explorers(part, run.model, run.task, found, budget)
        elif not isinstance(run.model, Paramixer):
            part.missing += ("This model counts what stands in a sequence, not where: there is no mixing to look at.",)
    return part


def compared(runs: Sequence[OpenedRun]) -> tuple[list[tuple[str, list[str]]], list[Chart]]:
    """A table of all runs side by side, and their curves in one chart each."""
    rows = []
    for part in (_headline, _speed, _differing(runs)):
        columns = [dict(part(run)) for run in runs]
        names = dict.fromkeys(name for column in columns for name in column)
        rows += [(name, [column.get(name, "") for column in columns]) for name in names]
    lines = [(run.name, run.lines) for run in runs]
    metrics = list(dict.fromkeys(_metric(run) for run in runs))
    shown = [charts.curves(lines, kind, "loss", f"{title} loss") for kind, title in _LOSSES]
    shown += [charts.curves(lines, "validation", metric, f"Validation {metric}") for metric in metrics]
    return rows, [chart for chart in shown if chart is not None]


_LOSSES = (("train", "Training"), ("validation", "Validation"))


def _differing(runs: Sequence[OpenedRun]) -> Callable[[OpenedRun], Pairs]:
    """The settings in which runs differ, but for what stands in the table anyway."""

    def every(run: OpenedRun) -> dict[str, str]:
        groups = {"model": run.record["model"], "training": run.record["training"]}
        return {f"{group}.{key}": str(value) for group, part in groups.items() for key, value in part.items()}

    settings = [every(run) for run in runs]
    names = dict.fromkeys(name for one in settings for name in one)
    differing = [name for name in names if len({one.get(name) for one in settings}) > 1]
    shown = [name for name in differing if name not in ("model.length", "model.mixer", "model.protocol")]
    return lambda run: [(name, every(run).get(name, "")) for name in shown]


def explorer(
    model: Paramixer, info: TaskInfo, sequence: Tensor, title: str, budget: int, found: Explanation | None = None
) -> dict[str, Any]:
    """A sequence for the page's explorer.

    Args:
        model: which answers it.
        info: what the model was trained on.
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        title: what it is called.
        budget: bytes that its factors may take.
        found: what is known about it already; the explorer starts at its first position.
    """
    model.eval()
    mixing = mixing_of(model, sequence, budget)
    # Derivatives, which the explorer does not show, would take longest.
    found = found or explain(model, sequence, derivatives=False)
    rest = [0.0] * (mixing.length - found.length)
    return {
        "title": title,
        "length": mixing.length,
        "look": look_of(sequence, info, mixing.length).document(),
        "blocks": mixing.blocks,
        "left_out": mixing.left_out,
        "evidence": [_short(value) for value in found.evidence.tolist()[: mixing.length]] + rest,
        "occlusion": [_short(value) for value in found.occlusion.tolist()[: mixing.length]] + rest,
        "start": found.positions[0],
    }


def explorer_words(explorers: Sequence[dict[str, Any]]) -> str:
    """What can be done with the explorer, and what it leaves out."""
    words = "Move over a position, tap it, or use the arrow keys. "
    if any(one["blocks"] for one in explorers):
        words += (
            "Bars show which positions feed it, through all factors, their heights by the square root; the strips "
            "below, how this comes about factor by factor; the table, the links it writes itself. Entries are rounded "
            "to 8 bits."
        )
    elif any(one["left_out"] for one in explorers):
        words += "The factors of this model are too large for a page; paramixer explain draws single rows of them."
    else:
        words += "This model has no links to follow; what is shown is how much each position speaks for the answer."
    if any(one["blocks"] and one["left_out"] for one in explorers):
        words += " Later blocks are left out: the page would be too large."
    return words


def answer_words(answers: Any, info: TaskInfo) -> str:
    """An answer in words: a class with its probability, or a value."""
    if info.target == "value":
        return f"{float(answers):.4g}"
    shares = answers.double().softmax(-1)
    best = int(shares.argmax())
    return f"{visible(info.classes[best])} ({100 * float(shares[best]):.0f} %)"


def truth_words(target: Any, info: TaskInfo) -> str:
    """What is true, in words."""
    return f"{float(target):.4g}" if info.target == "value" else visible(info.classes[int(target)])


def _metric(run: OpenedRun) -> str:
    known = run.record.get("metric")
    if known is not None:
        return str(known)
    found = [name for line in run.lines if line["kind"] == "validation" for name in line if name in METRICS]
    return next((name for name in found if name != "loss"), "accuracy")


def _headline(run: OpenedRun) -> Pairs:
    record = run.record
    rows: Pairs = []
    if record["finished"]:
        metric = record["metric"]
        if record["test"]:
            rows.append((f"{metric} on test", f"{record['test'][metric]:.4g}"))
        rows.append((f"{metric} on validation", f"{record['validation']:.4g}"))
    else:
        rows.append(("state", "not finished"))
    if record.get("majority") is not None:
        rows.append(("share of the largest class", f"{record['majority']:.4g}"))
    mixer = record["model"]["mixer"]
    rows.append(("model", record["model"]["protocol"].upper() if mixer == "paramixer" else mixer))
    rows.append(("parameters", f"{record['parameters']:,}".replace(",", " ")))
    rows.append(("length N", str(record["model"]["length"])))
    rows.append(("steps", str(record.get("steps", max((line["step"] for line in run.lines), default=0)))))
    return rows


def _speed(run: OpenedRun) -> Pairs:
    record, machine = run.record, run.record["machine"]
    seconds = max(record["seconds"], max((line["seconds"] for line in run.lines if "seconds" in line), default=0.0))
    tokens = max(record["tokens"], max((line.get("tokens", 0) for line in run.lines), default=0))
    rows = [("time of training", f"{seconds / 60:.1f} minutes" if seconds >= 60 else f"{seconds:.0f} seconds")]
    if tokens and seconds:
        rows.append(("tokens a second", f"{tokens / seconds:,.0f}".replace(",", " ")))
    rows.append(("peak memory", f"{record['peak_memory'] / 2**20:.0f} MiB"))
    rows.append(("engine", record["engine"]))
    rows.append(("machine", f"{machine['cpu']}, {machine['threads']} threads"))
    return rows


def _settings(run: OpenedRun) -> list[tuple[str, Pairs]]:
    record = run.record
    about = {name: record[name] for name in ("task", "seed", "processes", "commit", "fingerprint")}
    about |= {"stopped": record["stopped"]} if "stopped" in record else {}
    groups = {"run": about, "as it was told": run.config, "model": record["model"], "training": record["training"]}
    return [(name, [(key, str(value)) for key, value in group.items()]) for name, group in groups.items()]


def _data(name: str, task: Task) -> dict[str, Any]:
    found = summarise(task)
    numbers = ["sequences", "shortest", "median", "longest", "cut", "padded"]
    rows = [(split, [getattr(one, key) for key in numbers]) for split, one in found.items()]
    shown = []
    lengths = {split: np.asarray(one.full_lengths) for split, one in task.splits.items() if len(one)}
    if lengths and len(np.unique(np.concatenate(list(lengths.values())))) > 1:
        shown.append(charts.lengths(lengths, task.length, name))
    words = warnings(task)
    largest = sorted(found["train"].classes, key=lambda label: -found["train"].classes[label])[:_CLASSES]
    if len(largest) < len(task.classes):
        words.append(f"of {len(task.classes)} classes the {_CLASSES} largest are shown")
    kept = [label for label in task.classes if label in set(largest)]
    balances = {split: {visible(label): one.classes[label] for label in kept} for split, one in found.items()}
    if kept:
        shown.append(charts.balance(balances, {split: one.sequences for split, one in found.items()}, name))
    return {"columns": numbers, "rows": rows, "words": words, "charts": shown}


def _answers(part: RunPart, task: Task, found: Findings) -> None:
    name = part.name
    numbers = ", ".join(f"{metric} {value:.4g}" for metric, value in found.metrics.items())
    some = f"{len(found.indices)} of the {found.of} sequences, evenly spread"
    part.asked = f"{some if len(found.indices) < found.of else f'All {found.of} sequences'}: {numbers}."
    if found.classes:
        counts = found.confusion()
        labels = [visible(label) for label in task.classes]
        if len(labels) > _CLASSES:
            part.confused = _most_confused(labels, counts)
        else:
            totals = np.maximum(1, counts.sum(1))
            rows = [
                (label, [(int(count), f"{count / total:.3f}") for count in row])
                for label, row, total in zip(labels, counts, totals, strict=True)
            ]
            part.confusion = {"labels": labels, "rows": rows}
        part.answers = [
            chart for chart in (charts.roc(found, name), charts.calibration(found, name)) if chart is not None
        ]
    else:
        part.answers = [charts.scatter(found, name)]
    part.mistakes = [_mistake(part.name, task, found, place) for place in found.worst()]


def _most_confused(labels: Sequence[str], counts: NDArray[np.int64]) -> list[tuple[str, str, int]]:
    """Truth, answer and how often, for the most frequent of all confusions."""
    wrong = counts * (1 - np.eye(len(counts), dtype=np.int64))
    places = np.argsort(-wrong, axis=None, kind="stable")[:_CLASSES]
    pairs = [(int(truth), int(said)) for truth, said in zip(*np.unravel_index(places, wrong.shape), strict=True)]
    return [(labels[truth], labels[said], int(wrong[truth, said])) for truth, said in pairs if wrong[truth, said]]


def _mistake(name: str, task: Task, found: Findings, place: int) -> dict[str, Any]:
    index = int(found.indices[place])
    named = task.test.id(index)
    look = look_of(task.test[index].inputs, task)
    shown: dict[str, Any] = {
        "said": answer_words(found.answers[place], task),
        "truth": truth_words(found.targets[place], task),
        "place": f"test {index}" + (f" ({visible(named)})" if named not in ("", str(index)) else ""),
        "image": None,
        "chart": None,
        "text": look.beginning(40 if look.kind == "words" else _SNIPPET),
    }
    if look.numbers is not None and look.kind == "image":
        shown["image"] = png(look.numbers)
    elif look.numbers is not None:
        shown["chart"] = charts.curve(look.numbers, name, f"Input of test {index}")
    return shown


def _explorers(part: RunPart, model: Paramixer, task: Task, found: Findings, budget: int) -> None:
    """A few sequences: one that was answered well, then the worst."""
    order = [int(np.argmin(found.losses)), *found.worst()]
    left = budget
    for place in dict.fromkeys(order):
        index = int(found.indices[place])
        said, truth = answer_words(found.answers[place], task), truth_words(found.targets[place], task)
        title = f"test {index}: {said}, truth {truth}"
        if not found.answers[place].isfinite().all():
            continue
        one = explorer(model, task, task.test[index].inputs, title, left)
        size = sum(len(block["entries"]) for block in one["blocks"]) + 12 * one["length"]
        if part.explorers and (size > left or one["left_out"]):
            break
        left -= size
        part.explorers.append(one)
        if len(part.explorers) == _EXPLORED:
            break
    part.explorer_words = explorer_words(part.explorers)
    if not any(one["blocks"] for one in part.explorers):
        part.explorer_title = "What speaks for the answer"


def _short(value: float) -> float:
    return float(f"{value:.3g}") if math.isfinite(value) else 0.0
