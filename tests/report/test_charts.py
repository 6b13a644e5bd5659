"""Charts: colors belong to runs, and names are drawn as plain text."""

from __future__ import annotations

import re

from paramixer.report.charts import plot_curves


def test_colors_belong_to_runs_and_every_run_is_in_the_legend():
    lines = [{"kind": "train", "step": step, "loss": 1.0 / step} for step in (1, 2)]
    other = [{"kind": "train", "step": step, "error": 1.0 / step} for step in (1, 2)]
    chart = plot_curves([("a", other), ("_b", lines), ("c", lines)], "train", "loss", "Loss")
    assert "var(--series-0)" not in chart.svg
    assert "var(--series-1)" in chart.svg
    assert re.findall(r">\s*([_bc]+)</text>", chart.svg) == ["_b", "c"]
    assert "𠜎" in plot_curves([("𠜎", lines), ("b", lines)], "train", "loss", "Loss").svg
    eight = plot_curves([(str(number), lines) for number in range(8)], "train", "loss", "Loss")
    assert eight.svg.count("stroke-dasharray") >= 2


def test_a_value_that_no_run_has_gives_no_chart():
    assert plot_curves([("a", [{"kind": "train", "step": 1, "loss": 1.0}])], "validation", "loss", "Loss") is None
