"""What a finished run comes to, in words: its metric with an interval, beside the baseline and the guess."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from torch import Tensor

from paramixer.training.assessment.baseline import Baseline
from paramixer.training.assessment.intervals import Interval, measure_difference, measure_interval
from paramixer.training.assessment.metrics import METRICS, compute_metrics, format_number
from paramixer.training.runs.record import Outcome


def score_test(
    outcome: Outcome, answers: Tensor, targets: Tensor, balanced: bool = False, baseline: Baseline | None = None
) -> Outcome:
    """Return the outcome with metrics on test, their intervals and the verdict.

    Args:
        outcome: of training.
        answers: to the test sequences.
        targets: of the test sequences.
        balanced: whether the balanced accuracy is measured, too.
        baseline: the simple model's results; None if there is none.
    """
    metrics = compute_metrics(answers, targets, outcome.metric, balanced)
    intervals = measure_intervals(metrics, answers, targets)
    verdict = give_verdict(outcome.metric, metrics, intervals, baseline, answers, targets)
    return dataclasses.replace(outcome, test=metrics, intervals=intervals, verdict=verdict)


def measure_intervals(metrics: Mapping[str, float], answers: Tensor, targets: Tensor) -> dict[str, Interval]:
    """Return the 95 % interval of every metric but the loss."""
    measured = {name: measure_interval(name, answers, targets) for name in metrics if name != "loss"}
    return {name: interval for name, interval in measured.items() if interval is not None}


def describe_interval(low: float, high: float) -> str:
    """Return a 95 % interval in words."""
    return f"95 % interval {format_number(low)} to {format_number(high)}"


def describe_metric(name: str, value: float, interval: Interval | None = None) -> str:
    """Return a metric with its 95 % interval."""
    sure = "" if interval is None else f" ({describe_interval(*interval)})"
    return f"{name.replace('_', ' ')} {format_number(value)}{sure}"


def describe_metrics(values: Mapping[str, float], intervals: Mapping[str, Interval]) -> str:
    """Return every metric but the loss with its interval."""
    return ", ".join(describe_metric(name, values[name], intervals.get(name)) for name in values if name != "loss")


def give_verdict(
    metric: str,
    test: Mapping[str, float],
    intervals: Mapping[str, Interval],
    baseline: Baseline | None,
    answers: Tensor,
    targets: Tensor,
) -> str:
    """Return the result of a run in a line or two: where the baseline wins, also what to do.

    Args:
        metric: the task's metric.
        test: loss and metrics of the run on test.
        intervals: of the metrics.
        baseline: the simple model's results; None if there is none.
        answers: the model's to the test sequences.
        targets: of the test sequences.
    """
    result = f"test {describe_metrics(test, intervals)}"
    if baseline is None:
        return result
    result += f"; {baseline.name} {format_number(baseline.test)}; {baseline.guess_name} {format_number(baseline.guess)}"
    return result + _compare(metric, test[metric], baseline, answers, targets)


def _compare(metric: str, value: float, baseline: Baseline, answers: Tensor, targets: Tensor) -> str:
    interval = None
    if baseline.answers is not None and len(baseline.answers) == len(targets):
        interval = measure_difference(metric, answers, baseline.answers, targets)
    name = baseline.name
    if not METRICS[metric].is_better(value, baseline.guess):
        guess = "answering the mean" if baseline.guess_name == "mean" else "answering the largest class"
        if METRICS[metric].is_better(baseline.test, baseline.guess) and interval is not None and interval.high < 0:
            return (
                f"\nThe model is no better than always {guess}, and the baseline ({name}) is: labels and columns fit. "
                f"Train longer (--minutes) or with more sequences{_keep_simple(baseline)}"
            )
        return (
            f"\nThe model is no better than always {guess}. Check that labels and columns are right, then train "
            "longer (--minutes) or with more sequences"
        )
    if interval is None or interval.low > 0:
        return ""
    if interval.high >= 0:
        difference = f"{format_number(interval.value)} ({describe_interval(interval.low, interval.high)})"
        return f"\nThe model and the baseline ({name}) are about equal: the difference is {difference}"
    gap = f"{format_number(-interval.value)} ({describe_interval(-interval.high, -interval.low)})"
    return (
        f"\nThe baseline ({name}) is better by {gap}. Train longer (--minutes), with more sequences or a greater "
        f"--length where inputs are cut{_keep_simple(baseline)}"
    )


def _keep_simple(baseline: Baseline) -> str:
    # Only classes are predicted by the baseline that the command line has.
    has_model = baseline.name == "n-grams" and baseline.guess_name == "majority"
    return "; or keep the simple model: --model ngrams" if has_model else "; or use such a simple model"
