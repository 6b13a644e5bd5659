"""The charts of a report: training curves, error analysis, data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from paramixer.report.error_analysis import Predictions
from paramixer.report.svg import FAINT, INK, SERIES, Chart, add_legend, draw_svg, escape_label

# Line styles tell runs apart where there are more runs than colors.
_LINE_STYLES = ("-", "--", ":", "-.")
_SQUARE = (3.4, 3.2)
# More points than this overlap.
_MAX_POINTS = 600
# Bars of more classes are too thin to have names.
_MAX_BARS = 12


def plot_curves(
    runs: Sequence[tuple[str, list[dict[str, Any]]]],
    kind: str,
    value: str,
    title: str,
    run: str = "",
    levels: Sequence[tuple[str, float]] = (),
) -> Chart | None:
    """Plot a value of metrics.jsonl against the step, one line per run; None if no run has the value.

    Args:
        runs: name and metrics lines of each run.
        kind: "train" or "validation".
        value: key of the value in these lines.
        title: of the chart.
        run: name of the run that the chart belongs to; empty for a chart of all runs.
        levels: name and value of what does not change with the step, such as a baseline.
    """
    series = []
    for number, (name, lines) in enumerate(runs):
        points = [
            (line["step"], line[value])
            for line in lines
            if line["kind"] == kind and line.get(value) is not None and math.isfinite(line[value])
        ]
        if points:
            series.append((number, name, np.array(points, float)))
    if not series:
        return None
    ends = "; ".join(f"{name}: from {curve[0, 1]:.4g} to {curve[-1, 1]:.4g}" for _, name, curve in series)
    ends += "".join(f"; {name}: {level:.4g}" for name, level in levels)
    chart = Chart(run, title, f"{value} against the step. {ends}.")
    with draw_svg(chart) as axes:
        for number, name, curve in series:
            thinned = curve[:: -(-len(curve) // _MAX_POINTS)]
            marker = "o" if len(thinned) < 20 else None
            color, style = SERIES[number % len(SERIES)], _LINE_STYLES[number // len(SERIES) % len(_LINE_STYLES)]
            axes.plot(*thinned.T, color=color, linestyle=style, label=escape_label(name), marker=marker, markersize=3)
        for name, level in levels:
            axes.axhline(level, color=INK, linewidth=1, linestyle="--", label=escape_label(name))
        positive = all((curve[:, 1] > 0).all() for *_, curve in series)
        if value == "loss" and positive and max(curve[:, 1].max() / curve[:, 1].min() for *_, curve in series) > 50:
            axes.set_yscale("log")
        else:
            axes.ticklabel_format(axis="y", useOffset=False)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("step")
        axes.set_ylabel(value.replace("_", " "))
        if len(series) + len(levels) > 1:
            add_legend(axes, min(len(series) + len(levels), 3))
    return chart


def plot_scores(scores: Sequence[tuple[str, float, Sequence[float] | None]], metric: str) -> Chart | None:
    """Plot a metric on test of several runs with its intervals; None if no run has it.

    Args:
        scores: name, value and 95 % interval of each.
        metric: name of the metric.
    """
    finite = [(name, value, interval or (value, value)) for name, value, interval in scores if math.isfinite(value)]
    if not finite:
        return None
    name = metric.replace("_", " ")
    description = "; ".join(f"{run}: {value:.4g}" for run, value, _ in finite)
    chart = Chart("", f"Test {name} with 95 % intervals", f"{description}.")
    with draw_svg(chart) as axes:
        for number, (_, value, (low, high)) in enumerate(finite):
            color = SERIES[number % len(SERIES)]
            axes.plot([low, high], [number, number], color=color, linewidth=2.5)
            axes.plot(value, number, "o", color=color, markersize=7)
        axes.set_yticks(range(len(finite)), [escape_label(run) for run, *_ in finite], fontsize=9)
        axes.set_ylim(len(finite) - 0.5, -0.5)
        axes.set_xlabel(f"{name} on test")
    return chart


def plot_roc(predictions: Predictions, run: str) -> Chart | None:
    """Plot the ROC curve; None unless there are two classes, both among the labels."""
    rates = predictions.compute_roc()
    if rates is None:
        return None
    false_positives, true_positives = rates
    area = float(np.trapezoid(true_positives, false_positives))
    chart = Chart(run, "ROC curve", f"Area under the curve {area:.4f}.")
    with draw_svg(chart, _SQUARE) as axes:
        axes.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
        axes.plot(false_positives, true_positives, color=SERIES[0])
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.text(0.95, 0.08, f"AUC {area:.4f}", ha="right")
    return chart


def plot_calibration(predictions: Predictions, run: str) -> Chart:
    """Plot accuracy against confidence."""
    confidence, accuracy, counts, error = predictions.compute_calibration()
    bins = "; ".join(
        f"confidence {c:.2f}: accuracy {a:.2f} of {n}" for c, a, n in zip(confidence, accuracy, counts, strict=True)
    )
    chart = Chart(run, "Calibration", f"Expected calibration error {error:.3f}. {bins}.")
    with draw_svg(chart, _SQUARE) as axes:
        axes.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
        axes.scatter(confidence, accuracy, s=12 + 160 * counts / counts.sum(), color=SERIES[0], zorder=3)
        axes.plot(confidence, accuracy, color=SERIES[0], linewidth=1)
        axes.set_xlabel("confidence")
        axes.set_ylabel("accuracy")
        axes.text(0.95, 0.08, f"ECE {error:.3f}", ha="right", transform=axes.transAxes)
    return chart


def plot_regression(predictions: Predictions, run: str) -> Chart:
    """Plot predicted against true values."""
    targets, outputs = predictions.targets.double().numpy(), predictions.outputs.double().numpy()
    error = np.sqrt(np.mean((outputs - targets) ** 2))
    chart = Chart(run, "Predictions and targets", f"Root mean square error {error:.4g}.")
    with draw_svg(chart, _SQUARE) as axes:
        ends = [min(targets.min(), outputs.min()), max(targets.max(), outputs.max())]
        axes.plot(ends, ends, color=FAINT, linestyle="--", linewidth=1)
        thinned = slice(None, None, -(-len(targets) // _MAX_POINTS))
        axes.scatter(targets[thinned], outputs[thinned], s=7, color=SERIES[0], alpha=0.6, linewidths=0)
        axes.set_xlabel("target")
        axes.set_ylabel("prediction")
    return chart


def plot_lengths(lengths: dict[str, NDArray[np.int64]], limit: int, run: str) -> Chart:
    """Plot a histogram of the sequence lengths before truncation to ``limit``, stacked by split."""
    together = np.concatenate(list(lengths.values()))
    description = f"From {together.min()} to {together.max()}, median {int(np.median(together))}; N is {limit}."
    chart = Chart(run, "Lengths before truncation", description)
    with draw_svg(chart) as axes:
        bins = np.linspace(together.min(), max(together.max(), together.min() + 1), 40).tolist()
        axes.hist(list(lengths.values()), bins, stacked=True, label=list(lengths), color=list(SERIES[: len(lengths)]))
        axes.axvline(limit, color=INK, linewidth=1, linestyle="--")
        axes.set_xlabel("length")
        axes.set_ylabel("sequences")
        add_legend(axes, len(lengths))
    return chart


def plot_class_balance(counts: dict[str, dict[str, int]], sizes: dict[str, int], run: str) -> Chart:
    """Plot the share of each class in each split.

    Args:
        counts: sequences of each class, by split.
        sizes: sequences of each split.
        run: name of the run.
    """
    labels = list(next(iter(counts.values())))
    if len(labels) > _MAX_BARS:
        return _plot_many_classes(counts, sizes, run)
    description = "; ".join(
        f"{split}: " + ", ".join(f"{label} {count}" for label, count in classes.items())
        for split, classes in counts.items()
    )
    chart = Chart(run, "Classes", f"{description}.")
    with draw_svg(chart, (4.6, max(3.0, 0.8 + 0.32 * len(labels)))) as axes:
        height = 0.8 / len(counts)
        for number, (split, classes) in enumerate(counts.items()):
            total = max(1, sizes[split])
            centers = np.arange(len(labels)) + (number - (len(counts) - 1) / 2) * height
            shares = [classes[label] / total for label in labels]
            axes.barh(centers, shares, height, color=SERIES[number], label=split)
        axes.set_yticks(range(len(labels)), [escape_label(label) for label in labels], fontsize=9)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("share of the split")
        add_legend(axes, len(counts))
    return chart


def _plot_many_classes(counts: dict[str, dict[str, int]], sizes: dict[str, int], run: str) -> Chart:
    """Plot the shares of the classes in each split, from the largest class of the first split to its smallest."""
    first = next(iter(counts.values()))
    order = sorted(first, key=lambda label: -first[label])
    ends = f"From {first[order[0]]} to {first[order[-1]]} sequences of {next(iter(counts))}."
    chart = Chart(run, f"{len(order)} classes, from the largest to the smallest", ends)
    with draw_svg(chart) as axes:
        for number, (split, classes) in enumerate(counts.items()):
            shares = [classes[label] / max(1, sizes[split]) for label in order]
            axes.plot(range(1, len(order) + 1), shares, "o-", markersize=3, color=SERIES[number], label=split)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("class")
        axes.set_ylabel("share of the split")
        add_legend(axes, len(counts))
    return chart


def plot_sequence(numbers: NDArray[np.float32], run: str, title: str) -> Chart:
    """Plot a sequence of numbers ``[length, features]``, one line per feature."""
    chart = Chart(run, title, f"{len(numbers)} positions, {numbers.shape[1]} features.")
    thinned = numbers[:: -(-len(numbers) // _MAX_POINTS)]
    with draw_svg(chart, (4.6, 1.5)) as axes:
        positions = np.linspace(0, len(numbers) - 1, len(thinned))
        for number, feature in enumerate(thinned.T):
            axes.plot(positions, feature, color=SERIES[number % len(SERIES)], linewidth=0.9)
        axes.set_xlabel("position")
    return chart
