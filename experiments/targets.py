"""What two cores were hoped to reach in bounded minutes, and what they did: measured, and what the curves suggest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paramixer.bench.tables import Table
from experiments.cells import CDIL, CHORD
from experiments.records import Kept
from paramixer.training.metrics import METRICS


@dataclass(frozen=True)
class Target:
    """A number to reach with the better protocol of Paramixer."""

    column: str
    """The cell."""
    wanted: float
    """The metric, as a share."""
    over_majority: bool = False
    """Whether it is wanted beyond the share of the largest class."""
    aim: bool = False
    """Whether it is more than was asked for."""


TARGETS = (
    *(Target(f"adding {1 << power}", 0.0, aim=power > 10) for power in range(7, 13)),
    *(Target(f"order {1 << power}", 0.01, aim=power > 10) for power in range(7, 12)),
    Target("image", 0.45),
    Target("text", 0.70),
    Target("listops", 0.37),
    Target("pathfinder", 0.70),
    Target("genome", 0.97),
    Target("genome", 0.99, aim=True),
    Target("documents-16k", 0.10, over_majority=True),
)


def table(kept: Sequence[Kept]) -> Table:
    """Every target, the best run of ours, by how much it was missed, and how the run was still learning."""
    columns = ["cell", "target", "measured", "reached", "tried first, on validation", "over the last third of the run"]
    found = Table("Targets of scale cpu", columns)
    for target in TARGETS:
        cell = f"{target.column}, the aim" if target.aim else target.column
        own = [one for one in kept if one.column == target.column and one.row in (CHORD, CDIL) and one.scale == "cpu"]
        # Its runs on Adding are shorter, and there for their matrices.
        own = [one for one in own if one.experiment != "figure-rank"]
        final = [one for one in own if not one.trial and math.isfinite(one.value)]
        if not final:
            beyond = " over the largest class" if target.over_majority else ""
            told = "diverged" if any(not one.trial for one in own) else "not run"
            found.rows.append([cell, f"{100 * target.wanted:g} %{beyond}", "", told, "", ""])
            continue
        metric = METRICS[final[0].record["metric"]]
        best = final[0]
        for one in final[1:]:
            if metric.better(one.record["validation"], best.record["validation"]):
                best = one
        wanted = target.wanted + (best.record["majority"] if target.over_majority else 0.0)
        short = f"missed by {100 * abs(best.value - wanted):.2f} points"
        reached = "yes" if metric.reached(best.value, wanted) else short
        name = best.record["metric"]
        found.rows.append(
            [
                cell,
                f"{name} {'>=' if metric.higher_is_better else '<='} {100 * wanted:.2f} %",
                f"{100 * best.value:.2f} % ({best.row}, {_minutes(best.minutes)})",
                reached,
                _tried(own),
                learning(best.record),
            ]
        )
    return found


def _minutes(number: float) -> str:
    return "1 minute" if round(number) == 1 else f"{number:.0f} minutes"


def learning(record: dict[str, Any]) -> str:
    """How much validation still gained in the last third of the time, in points."""
    name = record["metric"]
    metric = METRICS[name]
    lines = [line for line in record["epochs"] if line.get(name) is not None]
    early = [line[name] for line in lines if line["seconds"] <= 2 / 3 * record["seconds"]]
    if not early or len(early) == len(lines):
        return "too short to tell"
    choose = max if metric.higher_is_better else min
    before, after = choose(early), choose(line[name] for line in lines)
    if before == after:
        return "no better"
    return f"validation went from {100 * before:.2f} to {100 * after:.2f} %"


def _tried(own: Sequence[Kept]) -> str:
    """The settings of the grid, with what each gave on validation."""
    told = []
    for one in own:
        if one.trial:
            model = one.options.get("model", {})
            shown = {"learning_rate": one.options.get("learning_rate"), "block_dropout": model.get("block_dropout")}
            settings = ", ".join(f"{name} {value:g}" for name, value in shown.items() if value is not None)
            protocol = model.get("protocol", "chord").upper()
            told.append(f"{protocol} {settings or 'the preset'}: {100 * one.record['validation']:.1f} %")
    return "; ".join(told)
