"""What a finished run comes to, in words: its metric with an interval, beside the baseline and the guess."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from torch import Tensor

from paramixer.data.task import Task
from paramixer.training.assessment.baseline import Baseline
from paramixer.training.assessment.guess import describe_guess, guess
from paramixer.training.assessment.intervals import Interval, measure_difference, measure_interval
from paramixer.training.assessment.metrics import METRICS, compute_metrics, format_number
from paramixer.training.runs.record import Outcome

# With fewer test sequences folds are named; with a larger share of one class --balance is.
_FEW, _UNEVEN = 100, 0.8
# Of the note about duplicates across splits.
_REPEATED = "test sequences also stand in"


def score_test(
    outcome: Outcome,
    task: Task,
    answers: Tensor,
    targets: Tensor,
    balanced: bool = False,
    baseline: Baseline | None = None,
    overfitting: bool = False,
) -> Outcome:
    """Return the outcome with metrics on test, their intervals and the verdict.

    Args:
        outcome: of training.
        task: the data, and how it is judged.
        answers: to the test sequences.
        targets: of the test sequences.
        balanced: whether the balanced accuracy is measured, too.
        baseline: the simple model's results; None if there is none.
        overfitting: whether validation got worse while training got better.
    """
    metrics = compute_metrics(answers, targets, outcome.metric, balanced)
    intervals = measure_intervals(metrics, answers, targets)
    verdict = give_verdict(task, metrics, intervals, baseline, answers, targets, overfitting)
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
    task: Task,
    test: Mapping[str, float],
    intervals: Mapping[str, Interval],
    baseline: Baseline | None,
    answers: Tensor,
    targets: Tensor,
    overfitting: bool = False,
) -> str:
    """Return the result of a run in a few lines: where the model does not win, also what to do.

    Args:
        task: the data, and how it is judged.
        test: loss and metrics of the run on test.
        intervals: of the metrics.
        baseline: the simple model's results; None if there is none.
        answers: the model's to the test sequences.
        targets: of the test sequences.
        overfitting: whether validation got worse while training got better.
    """
    result = f"test {describe_metrics(test, intervals)}"
    if baseline is not None:
        result += f"; {baseline.name} {format_number(baseline.test)}"
        result += f"; {baseline.guess_name} {format_number(baseline.guess)}"
    lines = [result]
    if baseline is not None:
        lines += _compare(task, test[task.metric], baseline, answers, targets, overfitting)
        if task.metric == "accuracy" and baseline.guess >= _UNEVEN:
            lines.append("Most sequences are of one class: --balance lets all classes count alike")
    # The split of a fold is not the one that the notes are about.
    lines += [
        f"{note}, so that test says less about new ones" for note in task.notes if task.request and _REPEATED in note
    ]
    return "\n".join(lines)


def _compare(
    task: Task, value: float, baseline: Baseline, answers: Tensor, targets: Tensor, overfitting: bool
) -> list[str]:
    """Return which of model, baseline and guess is better by more than chance, and what to do about it."""
    known = baseline.answers is not None and len(baseline.answers) == len(targets)
    others = baseline.answers if known else None
    name, always = f"the baseline ({baseline.name})", f"always {describe_guess(task)}"
    wins = _beats_guess(task, answers, targets, value, baseline.guess)
    others_win = others is not None and _beats_guess(task, others, targets, baseline.test, baseline.guess)
    difference = None if others is None else measure_difference(task.metric, answers, others, targets)
    longer = "More sequences help" if overfitting else "Train longer (--minutes) or with more sequences"
    if overfitting:
        longer += ", or a smaller network (--set model.channels, model.blocks): this one learned its own by heart"
    if not wins and not others_win:
        who = "The model is not" if others is None else f"Neither the model nor {name} is"
        check = f"Check that labels and columns are right. {longer}"
        return [f"{who} better than {always} by more than chance. {check}{_test_more(task)}"]
    if difference is None:
        return [] if wins else [f"The model is not better than {always} by more than chance. {longer}"]
    if difference.high < 0:
        gap = f"{format_number(-difference.value)} ({describe_interval(-difference.high, -difference.low)})"
        clue = "" if wins else f" The model is not better than {always} by more than chance, so labels and columns fit."
        cut = "" if overfitting or not wins else ", or a greater --length where inputs are cut"
        return [f"{name[0].upper()}{name[1:]} is better by {gap}.{clue} {longer}{cut}{_keep_simple(baseline)}"]
    if difference.low > 0:
        return []
    if difference.low == difference.high:
        return [f"The model and {name} answer alike on all {len(targets)} test sequences"]
    gap = f"{format_number(difference.value)} ({describe_interval(difference.low, difference.high)})"
    only = (
        ""
        if wins == others_win
        else f". Only {'the model' if wins else name} is better than {always} by more than chance"
    )
    return [f"The model and {name} are about equal: the difference is {gap}{only}{_test_more(task)}"]


def _beats_guess(task: Task, answers: Tensor, targets: Tensor, value: float, level: float) -> bool:
    """Return whether answers are better than the guess by more than chance."""
    gain = measure_difference(task.metric, answers, guess(task, len(targets)), targets)
    return METRICS[task.metric].is_better(value, level) if gain is None else gain.low > 0


def _test_more(task: Task) -> str:
    """Return how to test more sequences, where few are tested and the command line can."""
    few = task.request and len(task.test) < _FEW
    return f". Of {len(task.test)} test sequences chance is large: --folds 5 tests all of the data" if few else ""


def _keep_simple(baseline: Baseline) -> str:
    # Only classes are predicted by the baseline that the command line has.
    has_model = baseline.name == "n-grams" and baseline.guess_name == "majority"
    return "; or keep the simple model: --model ngrams" if has_model else "; or use such a simple model"
