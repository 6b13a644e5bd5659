"""The first lines of the results: groups follow the intervals, numbers the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.cells import DEFAULT
from experiments.page import at_a_glance
from experiments.page.at_a_glance import Comparison
from experiments.tests.small import make_run


@pytest.mark.parametrize(
    ("ours", "simple", "count", "group"),
    [
        (0.9, 0.8, 1000, "ahead"),
        (0.8, 0.9, 1000, "behind"),
        (0.82, 0.8, 100, "about equal"),
        (0.8, 0.82, 100, "about equal"),
        (0.82, 0.8, 100_000, "ahead"),
    ],
)
def test_a_difference_within_its_interval_is_about_equal(ours, simple, count, group):
    assert Comparison("x", ours, simple, count, 1.0).group == group


def test_losses_are_named(tmp_path):
    record = {"metric": "accuracy", "validation": 0.5, "steps": 10, "seconds": 120.0}
    runs = [
        make_run(row, "text", 0, "table-default", record={**record, "test": {"accuracy": value}})
        for row, value in ((DEFAULT, 0.7), ("n-gram counts + logistic regression", 0.8))
    ]
    run = {"title": "which bird?", "metric": "accuracy", "test": 0.9, "baseline": {"test": 0.5}, "sizes": {"test": 400}}
    Path(tmp_path, "walkthroughs").mkdir()
    Path(tmp_path, "walkthroughs", "birds.json").write_text(json.dumps({"runs": [{**run, "seconds": 600}]}))
    (text,) = at_a_glance.describe(tmp_path, [*runs, make_run(DEFAULT, "adding 256", 0.0, "table-default")])
    assert "- **Ahead**: which bird 90.0 % against 50.0 %.\n- **About equal**: nothing.\n" in text
    assert "- **Behind**: Text 70.0 % against 80.0 %.\n" in text
    assert "Adding at 256 0.00 % error" in text
    assert "2 to 10 minutes" in text
    assert at_a_glance.describe(tmp_path / "nothing", []) == []
