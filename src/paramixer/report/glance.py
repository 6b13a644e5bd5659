"""The box on top of a run's section: what came out, beside a simple model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paramixer.report.runs import Run
from paramixer.report.svg import Chart
from paramixer.report.wording import format_score, group_digits
from paramixer.training.assessment.metrics import METRICS

# Names of the answers that need no model, in the words of the page.
_GUESSES = {"majority": "largest class, always", "mean": "mean, always"}


@dataclass(frozen=True)
class Score:
    """A number of the box."""

    value: str
    """The number."""
    name: str
    """What it is."""
    interval: str = ""
    """Its 95 % interval, if it was measured."""


@dataclass
class Glance:
    """What the box shows; empty fields are left out."""

    scores: list[Score] = field(default_factory=list)
    verdict: str = ""
    facts: str = ""
    curve: Chart | None = None
    mistakes: list[dict[str, Any]] = field(default_factory=list)


def look_at(run: Run, curve: Chart | None = None) -> Glance:
    """Return the box of a run, without its mistakes.

    Args:
        run: an open run.
        curve: its metric on validation.
    """
    return Glance(_list_scores(run), _judge(run), _describe_model(run), curve)


def _list_scores(run: Run) -> list[Score]:
    record, metric = run.record, run.metric
    name = metric.replace("_", " ")
    scores = []
    if record["finished"]:
        if record["test"]:
            interval = record.get("intervals", {}).get(metric)
            scores.append(Score(format_score(record["test"][metric]), f"{name} on test", _format_interval(interval)))
        else:
            scores.append(Score(format_score(record["validation"]), f"{name} on validation"))
    if (baseline := record.get("baseline")) is not None:
        interval = _format_interval(baseline.get("interval"))
        scores.append(Score(format_score(baseline["test"]), f"baseline: {baseline['name']}", interval))
        guess = _GUESSES.get(baseline["guess_name"], baseline["guess_name"])
        scores.append(Score(format_score(baseline["guess"]), guess))
    elif record.get("majority") is not None:
        scores.append(Score(format_score(record["majority"]), "share of the largest class"))
    return scores


def _format_interval(interval: list[float] | None) -> str:
    return "" if interval is None else f"{format_score(interval[0])} to {format_score(interval[1])}"


def _judge(run: Run) -> str:
    """Return the verdict without its first line, whose numbers the box shows."""
    record = run.record
    if not record["finished"]:
        return "The run is not finished."
    _, *advice = str(record.get("verdict", "")).splitlines() or [""]
    if advice:
        return "\n".join(advice)
    baseline = record.get("baseline")
    if baseline is None:
        return "No baseline was fitted beside this run."
    if record["test"] and METRICS[run.metric].is_better(record["test"][run.metric], baseline["test"]):
        return f"The model is better than the baseline ({baseline['name']})."
    return ""


def _describe_model(run: Run) -> str:
    record = run.record
    steps = record.get("steps", max((line["step"] for line in run.lines), default=0))
    return (
        f"{run.model_name}, {group_digits(record['parameters'])} parameters, "
        f"up to {group_digits(record['model']['length'])} positions, {group_digits(steps)} steps"
    )
