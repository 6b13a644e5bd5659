"""Records: both formats, copies, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import records
from experiments.__main__ import main
from experiments.cells import CHORD, override
from experiments.tests.small import TINY, list_times, make_cell, make_run, sweep_cells


def test_a_record_of_format_1_counts_for_the_cell_of_its_place():
    """Whatever its settings were called then."""
    old = make_run(CHORD, "order 12", 0.5, "x", format=1, key="old", settings={"link_rate": 0.3})
    assert records.find_final(make_cell(), [old]) == old
    for other in (
        make_cell(scale="paper"),
        make_cell(experiment="y"),
        make_cell(column="order 24"),
        make_cell(settings=override(TINY, {"seed": 1})),
    ):
        assert records.find_final(other, [old]) is None
    trial = make_run(CHORD, "order 12", 0.5, "x", format=1, key="old", trial=True)
    assert records.find_final(make_cell(), [trial]) is None


def test_a_record_of_format_2_counts_for_its_settings_only():
    sweep_cells(make_cell())
    stored = records.read_runs(Path("results"))
    assert records.find_final(make_cell(), stored) == stored[0]
    assert stored[0].format == 2
    longer = make_cell(settings=override(TINY, {"training.steps": 7}))
    assert records.find_final(longer, stored) is None


def test_a_cell_with_a_record_of_format_1_is_not_run_again():
    old = {"format": 1, "experiment": "x", "row": CHORD, "column": "order 12", "scale": "cpu", "trial": False}
    record = {"metric": "error", "test": {"error": 0.25}, "validation": 0.2, "steps": 3, "seconds": 6.0, "seed": 0}
    path = Path("results/x/old.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**old, "key": "0", "options": {"task": "order"}, "record": record}))
    assert sweep_cells(make_cell()).states == ["done: error 0.2500, 3 steps, 0.1 min"]
    assert not Path("runs").exists()


def test_copies_of_a_record_are_one_seed():
    sweep_cells(make_cell())
    (path,) = list_times()
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert records.summarize(records.read_runs(Path("results")), CHORD, "order 12").seeds == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ('{"format": 1, "rec', "is no JSON"),
        ("[1, 2]", "holds no record"),
        ('{"format": 1, "record": {}}', "is a damaged record"),
        ('{"format": 2, "record": {}}', "is a damaged record"),
    ],
)
def test_a_damaged_record_is_named(capsys, text, message):
    path = Path("results/table-lra/one.json")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert main(["page", "--docs", "docs"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert message in error


@pytest.mark.parametrize(
    ("field", "value"), [("scale", "huge"), ("record", {"test": {"error": None}, "metric": "error"})]
)
def test_a_record_of_nonsense_is_named(capsys, field, value):
    sweep_cells(make_cell())
    (path,) = list_times()
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    assert main(["page", "--docs", "docs"]) == 2
    assert f"{path} is a damaged record" in capsys.readouterr().err


def test_seeds_give_mean_and_deviation():
    summary = records.summarize([make_run("a", "b", value) for value in (0.1, 0.2, 0.3)], "a", "b")
    assert summary.percent() == "20.00 ± 10.00"
    assert records.summarize([make_run("a", "b", 0.5)], "a", "b").percent() == "50.00"
    assert records.summarize([make_run("a", "b", 0.5, trial=True)], "a", "b") is None
