"""The section of a page about one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.progress import Progress, no_progress
from paramixer.data.summary import find_warnings, summarize
from paramixer.data.task import Task
from paramixer.nn.sequence_model import SequenceModel
from paramixer.report.charts import (
    plot_calibration,
    plot_class_balance,
    plot_curves,
    plot_lengths,
    plot_regression,
    plot_roc,
    plot_sequence,
)
from paramixer.report.error_analysis import Predictions, predict_test
from paramixer.report.explorer import build_explorers, describe_explorers, title_explorers
from paramixer.report.page import RunSection
from paramixer.report.record_tables import list_headline, list_settings, list_speed
from paramixer.report.runs import Run
from paramixer.report.sequence import encode_png, view_sequence
from paramixer.report.svg import Chart
from paramixer.report.wording import format_prediction, format_target, show_invisible

# Classes beyond this number are left out of charts and tables.
_MAX_CLASSES = 40
# Symbols of a mistake's sequence.
_SHOWN_WORDS, _SHOWN_LETTERS = 40, 280


def build_section(run: Run, sequences: int, batch: int, max_bytes: int, progress: Progress = no_progress) -> RunSection:
    """Build everything that a page shows of a run.

    Args:
        run: an open run.
        sequences: predict at most this many test sequences.
        batch: batch size.
        max_bytes: size limit of the explorers.
        progress: counts sequences.
    """
    section = RunSection(
        run.name,
        notes=run.notes,
        verdict=str(run.record.get("verdict", "")),
        headline=list_headline(run),
        curves=_plot_training(run),
        speed=list_speed(run),
        settings=list_settings(run),
    )
    if run.task is not None:
        section.data = _summarize_data(run.name, run.task)
    if run.task is None or run.model is None:
        return section
    predictions = predict_test(run.model, run.task, sequences, batch, progress)
    if predictions is None:
        return section
    _add_predictions(section, run.task, predictions)
    if not isinstance(run.model, SequenceModel):
        section.notes += ("This model counts n-grams regardless of their positions: it has no mixing matrix.",)
    elif run.model.config.pooling != "token":
        section.explorers = build_explorers(run.model, run.task, predictions, max_bytes)
        section.explorer_title = title_explorers(section.explorers)
        section.explorer_help = describe_explorers(section.explorers)
    return section


def _plot_training(run: Run) -> list[Chart]:
    curves = [
        plot_curves(
            [(run.name, run.lines)],
            kind,
            value,
            title,
            run.name,
            run.baseline_levels(value) if kind == "validation" else (),
        )
        for kind, value, title in (
            ("train", "loss", "Training loss"),
            ("validation", "loss", "Validation loss"),
            ("validation", run.metric, f"Validation {run.metric}"),
            ("train", "learning_rate", "Learning rate"),
        )
    ]
    return [curve for curve in curves if curve is not None]


def _summarize_data(name: str, task: Task) -> dict[str, Any]:
    """Return sizes, lengths and class balance of the splits."""
    summaries = summarize(task)
    columns = ["sequences", "shortest", "median", "longest", "cut", "padded"]
    rows = [(split, [getattr(summary, column) for column in columns]) for split, summary in summaries.items()]
    charts = []
    lengths = {split: np.asarray(part.full_lengths) for split, part in task.splits.items() if len(part)}
    if lengths and len(np.unique(np.concatenate(list(lengths.values())))) > 1:
        charts.append(plot_lengths(lengths, task.length, name))
    notes = find_warnings(task)
    train_counts = summaries["train"].classes
    largest = set(sorted(train_counts, key=lambda label: -train_counts[label])[:_MAX_CLASSES])
    if len(largest) < len(task.classes):
        notes.append(f"of {len(task.classes)} classes the {_MAX_CLASSES} largest are shown")
    labels = [label for label in task.classes if label in largest]
    if labels:
        counts = {
            split: {show_invisible(label): summary.classes[label] for label in labels}
            for split, summary in summaries.items()
        }
        charts.append(plot_class_balance(counts, {split: s.sequences for split, s in summaries.items()}, name))
    return {"columns": columns, "rows": rows, "notes": notes, "charts": charts}


def _add_predictions(section: RunSection, task: Task, predictions: Predictions) -> None:
    """Add metrics, confusions, charts and mistakes on the test split."""
    metrics = ", ".join(f"{metric} {value:.4g}" for metric, value in predictions.metrics.items())
    count, test_size = len(predictions.indices), predictions.test_size
    subset = f"{count} of the {test_size} test sequences, evenly spaced"
    section.predictions_summary = f"{subset if count < test_size else f'All {test_size} test sequences'}: {metrics}."
    if predictions.are_classes:
        counts = predictions.compute_confusion()
        labels = [show_invisible(label) for label in task.classes]
        if len(labels) > _MAX_CLASSES:
            section.frequent_confusions = list_frequent_confusions(labels, counts)
        else:
            totals = np.maximum(1, counts.sum(1))
            rows = [
                (label, [(int(number), f"{number / total:.3f}") for number in row])
                for label, row, total in zip(labels, counts, totals, strict=True)
            ]
            section.confusion = {"labels": labels, "rows": rows}
        charts = [plot_roc(predictions, section.name), plot_calibration(predictions, section.name)]
        section.prediction_charts = [chart for chart in charts if chart is not None]
    else:
        section.prediction_charts = [plot_regression(predictions, section.name)]
    section.mistakes = [_describe_mistake(section.name, task, predictions, row) for row in predictions.rank_mistakes()]


def list_frequent_confusions(labels: Sequence[str], counts: NDArray[np.int64]) -> list[tuple[str, str, int]]:
    """Return label, prediction and count of the most frequent confusions.

    Args:
        labels: name of each class.
        counts: confusion matrix ``[label, prediction]``.
    """
    wrong = counts * (1 - np.eye(len(counts), dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_CLASSES]
    cells = [
        (int(label), int(prediction)) for label, prediction in zip(*np.unravel_index(order, wrong.shape), strict=True)
    ]
    return [
        (labels[label], labels[prediction], int(wrong[label, prediction]))
        for label, prediction in cells
        if wrong[label, prediction]
    ]


def _describe_mistake(run: str, task: Task, predictions: Predictions, row: int) -> dict[str, Any]:
    index = int(predictions.indices[row])
    identifier = task.test.id(index)
    view = view_sequence(task.test[index].inputs, task)
    mistake: dict[str, Any] = {
        "prediction": format_prediction(predictions.outputs[row], task),
        "target": format_target(predictions.targets[row], task),
        "name": f"test {index}" + (f" ({show_invisible(identifier)})" if identifier not in ("", str(index)) else ""),
        "image": None,
        "chart": None,
        "text": view.join_start(_SHOWN_WORDS if view.kind == "words" else _SHOWN_LETTERS),
    }
    if view.numbers is not None and view.kind == "image":
        mistake["image"] = encode_png(view.numbers)
    elif view.numbers is not None:
        mistake["chart"] = plot_sequence(view.numbers, run, f"Input of test {index}")
    return mistake
