"""The section of a page about one run."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from paramixer.report.confusion import show_confusion
from paramixer.report.error_analysis import Predictions, predict_test
from paramixer.report.explorer import build_explorers, describe_explorers, title_explorers
from paramixer.report.glance import look_at
from paramixer.report.page import RunSection
from paramixer.report.record_tables import list_settings, list_speed
from paramixer.report.runs import Run
from paramixer.report.sequence import encode_png, view_sequence
from paramixer.report.svg import Chart
from paramixer.report.wording import format_prediction, format_score, format_target, show_invisible

# Mistakes in the box on top; the others have a section of their own.
_FIRST_MISTAKES = 3
_KINDS = {"train": "Training", "validation": "Validation"}
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
        glance=look_at(run, _plot_curve(run, "validation", run.metric)),
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
    values = [("train", "loss"), ("validation", "loss"), ("train", "learning_rate")]
    curves = [_plot_curve(run, kind, value) for kind, value in values if (kind, value) != ("validation", run.metric)]
    return [curve for curve in curves if curve is not None]


def _plot_curve(run: Run, kind: str, value: str) -> Chart | None:
    title = {"learning_rate": "Learning rate"}.get(value) or f"{_KINDS[kind]} {value.replace('_', ' ')}"
    levels = run.baseline_levels(value) if kind == "validation" else ()
    return plot_curves([(run.name, run.lines)], kind, value, title, run.name, levels)


def _summarize_data(name: str, task: Task) -> dict[str, Any]:
    """Return sizes, lengths and class balance of the splits."""
    summaries = summarize(task)
    names = ["sequences", "shortest", "median", "longest", "cut", "padded"]
    rows = [(name, [getattr(summary, name) for summary in summaries.values()]) for name in names]
    charts = []
    lengths = {split: np.asarray(part.full_lengths) for split, part in task.splits.items() if len(part)}
    if lengths and len(np.unique(np.concatenate(list(lengths.values())))) > 1:
        charts.append(plot_lengths(lengths, task.length, name))
    if task.classes:
        counts = {
            split: {show_invisible(label): summary.classes[label] for label in task.classes}
            for split, summary in summaries.items()
        }
        charts.append(plot_class_balance(counts, {split: s.sequences for split, s in summaries.items()}, name))
    return {"columns": list(summaries), "rows": rows, "notes": find_warnings(task), "charts": charts}


def _add_predictions(section: RunSection, task: Task, predictions: Predictions) -> None:
    """Add metrics, confusions, charts and mistakes on the test split."""
    metrics = ", ".join(
        f"{metric.replace('_', ' ')} {format_score(value)}" for metric, value in predictions.metrics.items()
    )
    count, test_size = len(predictions.indices), predictions.test_size
    subset = f"{count} of the {test_size} test sequences, evenly spaced"
    section.predictions_summary = f"{subset if count < test_size else f'All {test_size} test sequences'}: {metrics}."
    if predictions.are_classes:
        names = [show_invisible(label) for label in task.classes]
        section.confusion = show_confusion(names, predictions.compute_confusion())
        charts = [plot_roc(predictions, section.name), plot_calibration(predictions, section.name)]
        section.prediction_charts = [chart for chart in charts if chart is not None]
    else:
        section.prediction_charts = [plot_regression(predictions, section.name)]
    mistakes = [_describe_mistake(section.name, task, predictions, row) for row in predictions.rank_mistakes()]
    section.glance.mistakes, section.mistakes = mistakes[:_FIRST_MISTAKES], mistakes[_FIRST_MISTAKES:]


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
