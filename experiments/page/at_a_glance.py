"""What a reader wants to know first: where the default network wins, where it loses, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.cells import DEFAULT
from experiments.page.paper_tables import SYNTHETIC, TITLES
from experiments.records import StoredRun, read_json, summarize
from paramixer.baselines import registry
from paramixer.training.assessment.intervals import NORMAL

# Test sequences of the default network's table that a simple model has, too.
_IN_TEST = {"text": 25_000, "reviews": 600}
_SIMPLE = registry.get("ngrams").title


@dataclass(frozen=True)
class Comparison:
    """Two models of one file, on the same test sequences."""

    title: str
    ours: float
    simple: float
    count: int
    """The test sequences."""
    minutes: float
    """Of our training."""

    @property
    def group(self) -> str:
        """Ahead, behind, or about equal where the binomial interval of the difference holds 0."""
        noise = sum(share * (1 - share) for share in (self.ours, self.simple)) / self.count
        difference = self.ours - self.simple
        if abs(difference) <= NORMAL * math.sqrt(noise):
            return "about equal"
        return "ahead" if difference > 0 else "behind"

    def describe(self) -> str:
        """Return title and numbers."""
        return f"{self.title} {100 * self.ours:.1f} % against {100 * self.simple:.1f} %"


def list_comparisons(results: Path, runs: Sequence[StoredRun]) -> list[Comparison]:
    """Return the walkthroughs, and the tasks of the default network's table that n-grams have run on."""
    found = []
    for column, count in _IN_TEST.items():
        known = [run for run in runs if run.experiment == "table-default"]
        ours, simple = (summarize(known, row, column) for row in (DEFAULT, _SIMPLE))
        if ours is not None and simple is not None:
            found.append(Comparison(TITLES[column], ours.mean, simple.mean, count, ours.minutes))
    for path in sorted((results / "walkthroughs").glob("*.json")):
        for run in read_json(path)["runs"]:
            if run["metric"] == "accuracy" and run["baseline"] is not None:
                numbers = run["test"], run["baseline"]["test"], run["sizes"]["test"], run["seconds"] / 60
                found.append(Comparison(run["title"].rstrip("?"), *numbers))
    return found


def describe(results: Path, runs: Sequence[StoredRun]) -> list[str]:
    """Return the lines of the section; none without records."""
    found = list_comparisons(results, runs)
    if not found:
        return []
    lines = [
        "The default network by its one recipe, on one thread, against n-grams or statistics with a linear model:\n"
        "accuracy on test. A difference within its 95 % interval (binomial, both models apart) is about equal.\n"
    ]
    for group in ("ahead", "about equal", "behind"):
        members = sorted((one for one in found if one.group == group), key=lambda one: one.simple - one.ours)
        lines.append(f"- **{group.capitalize()}**: {'; '.join(one.describe() for one in members) or 'nothing'}.")
    default = [run for run in runs if run.row == DEFAULT and not run.trial and run.experiment != "table-ablations"]
    exact = [
        f"{title} at {length} {summary.percent()} % error"
        for task, title in SYNTHETIC
        for length in sorted({int(run.column.split()[1]) for run in default if run.column.startswith(f"{task} ")})
        if (summary := summarize(default, DEFAULT, f"{task} {length}")) is not None
    ]
    image = summarize([run for run in default if run.experiment == "table-default"], DEFAULT, "image")
    if image is not None:
        exact.append(f"gray images pixel by pixel {image.percent()} % accuracy in {image.minutes:.0f} minutes")
    if exact:
        lines.append(f"- **Where order and distance are everything**, and no simple model exists: {'; '.join(exact)}.")
    minutes = sorted(one.minutes for one in found)
    cost = f"{minutes[0]:.0f} to {minutes[-1]:.0f} minutes of training, where a simple model takes seconds"
    lines.append(f"- **The cost**: {cost}.")
    return ["\n".join(lines) + "\n"]
