"""Systems side by side, and the table of ablations."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.cells import CHORD, DEFAULT
from experiments.page import comparisons
from experiments.records import StoredRun
from experiments.tests.small import make_run


def make(row: str, task: str, value: float, experiment: str = "table-ablations", seed: int = 0) -> StoredRun:
    record = {"metric": "accuracy", "test": {"accuracy": value}, "validation": value, "steps": 10, "seconds": 60.0}
    epochs = [{"kind": "validation", "step": 5, "seconds": 30, "accuracy": value}]
    return make_run(row, task, value, experiment, record={**record, "epochs": epochs, "parameters": 9, "seed": seed})


def test_ablations_are_differences_from_the_default():
    runs = [
        make(DEFAULT, "image", 0.60),
        make(DEFAULT, "image", 0.62, seed=1),
        make("no gate", "image", 0.58),
        make("no gate", "image", 0.60, seed=1),
        # Without the default beside it a number says nothing.
        make("no gate", "text", 0.9),
        make("static links", "image", 0.65, experiment="table-default"),
    ]
    (table,) = comparisons.tabulate_ablations(runs)
    assert table.columns == ["the default network with", "Image"]
    assert table.rows == [
        ["nothing changed", "61.00 ± 1.41 (10 steps)"],
        ["no gate", "59.00 ± 1.41 (-2.00; 10 steps)"],
    ]
    assert comparisons.tabulate_ablations([]) == []


def test_ablations_are_judged_on_validation():
    default, other = make(DEFAULT, "image", 0.5), make("no gate", "image", 0.4)
    better_on_test = dataclasses.replace(other, record={**other.record, "test": {"accuracy": 0.9}})
    (table,) = comparisons.tabulate_ablations([default, better_on_test])
    assert table.rows[1] == ["no gate", "40.00 (-10.00; 10 steps)"]


def test_systems_of_equal_minutes_are_not_mixed_with_longer_runs():
    longer = [make(CHORD, "text", 0.8, "table-lra"), make("Performer", "text", 0.7, "table-lra")]
    alone = make(CHORD, "text", 0.5, "table-systems")
    assert comparisons.select([*longer, alone], "text") == longer
    beside = make("Performer", "text", 0.6, "table-systems")
    assert comparisons.select([*longer, alone, beside], "text") == [alone, beside]
    trial = dataclasses.replace(beside, trial=True)
    assert comparisons.select([*longer, alone, trial], "text") == longer


@pytest.mark.parametrize(
    ("draw", "experiment", "shown"),
    [
        (comparisons.draw_learning, "table-lra", ("minutes", "Performer")),
        (comparisons.draw_parameters, "table-lra", ("parameters", "Performer")),
        (comparisons.draw_ablations, "table-ablations", ("no gate", "points of difference on validation")),
    ],
)
def test_figures_show_what_was_run(draw, experiment, shown, tmp_path):
    path = tmp_path / "figure.svg"
    assert not draw([], path)
    assert not path.exists()
    rows = (DEFAULT, "no gate" if experiment == "table-ablations" else "Performer")
    runs = [make(row, "image", value, experiment) for row, value in zip(rows, (0.6, 0.5), strict=True)]
    assert draw(runs, path)
    first = path.read_bytes()
    # Text is drawn as outlines, with what it says in comments.
    assert all(f"<!-- {words} -->" in first.decode() for words in shown)
    draw(runs, path)
    assert path.read_bytes() == first
