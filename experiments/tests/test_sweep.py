"""From cells to runs and records; no run is repeated."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
from pathlib import Path

import pytest

from experiments import records, sweep
from experiments.cells import CHORD, override, settings_key
from experiments.page import paper_tables
from experiments.tests.small import TINY, list_times, make_cell, make_run, sweep_cells
from paramixer.training.callbacks.progress import Display
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import RunSettings

RATES = ({"training.learning_rate": 1e-6}, {"training.learning_rate": 0.02, "model.hidden": 7})


def test_finished_runs_are_found_and_never_repeated():
    second = make_cell(settings=override(TINY, {"seed": 1}))
    sweep_cells(make_cell(), second)
    before = list_times()
    assert len(before) == 2
    again = sweep_cells(make_cell(), second)
    assert list_times() == before
    assert all(state.startswith("done: error") for state in again.states)
    # Nor if the run folders are gone: records are enough.
    Path("runs").rename("gone")
    sweep_cells(make_cell())
    assert list_times() == before
    assert not Path("runs").exists()


def test_choices_are_tried_on_validation_and_the_best_is_run():
    settings = override(TINY, {"training.steps": 40})
    sweep_cells(make_cell(settings=settings, choices=RATES))
    stored = records.read_runs(Path("results"))
    trials = [run for run in stored if run.trial]
    assert len(trials) == 2
    assert all(run.settings["training"]["minutes"] == 2.0 for run in trials)
    assert not any(run.record["test"] for run in trials)
    (final,) = [run for run in stored if not run.trial]
    best = min(trials, key=lowest_loss)
    assert final.learning_rate == best.learning_rate
    assert records.summarize(stored, CHORD, "order 12").seeds == 1
    # The loss decides, whatever the metric of the other choice is.
    final.path.unlink()
    for run in trials:
        document = json.loads(run.path.read_text())
        document["record"]["validation"] = float(run is best)
        run.path.write_text(json.dumps(document))
    sweep_cells(make_cell(settings=settings, choices=RATES))
    (again,) = [run for run in records.read_runs(Path("results")) if not run.trial]
    assert again.key == final.key


def lowest_loss(run: records.StoredRun) -> float:
    return min(line["loss"] for line in run.record["epochs"])


def test_a_diverged_trial_is_not_chosen():
    sweep_cells(make_cell(choices=RATES))
    for path in list_times():
        document = json.loads(path.read_text())
        if not document["trial"]:
            path.unlink()
        else:
            is_first = document["settings"]["training"]["learning_rate"] == 1e-6
            document["record"]["epochs"] = [{"loss": math.nan if is_first else 9.0}]
            path.write_text(json.dumps(document))
    sweep_cells(make_cell(choices=RATES))
    (final,) = [run for run in records.read_runs(Path("results")) if not run.trial]
    assert final.learning_rate == 0.02


def test_an_interrupted_sweep_goes_on_where_it_stopped(monkeypatch):
    whole = sweep_cells(make_cell())
    (path,) = list_times()
    expected = json.loads(path.read_text())["record"]
    Path("results").rename("first")
    Path("runs").rename("first-runs")
    with monkeypatch.context() as patched:
        patched.setattr(Display, "on_start", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            sweep_cells(make_cell())
    assert not Path("results").exists()
    again = sweep_cells(make_cell())
    (path,) = list_times()
    record = json.loads(path.read_text())["record"]
    assert (record["test"], record["validation"]) == (expected["test"], expected["validation"])
    assert again.states[0].split(",")[0] == whole.states[0].split(",")[0]


def test_a_closed_form_model_starts_over_after_an_interruption():
    settings = dataclasses.replace(TINY, system="ngrams", model={"rank": 64}, training={})
    sweep_cells(make_cell(settings=settings))
    (path,) = list_times()
    path.unlink()
    folder = RunFolder(Path("runs") / settings_key(settings, "cpu"))
    record = folder.read_record()
    folder.write_record({**{name: record[name] for name in record if name != "format"}, "finished": False})
    assert sweep_cells(make_cell(settings=settings)).states[0].startswith("done: error")
    assert list(list_times()) == [path]


def test_when_the_time_is_up_the_current_run_is_saved_and_no_signal_is_raised(monkeypatch):
    monkeypatch.setattr(signal, "raise_signal", lambda number: pytest.fail("a signal was raised"))
    slow = override(TINY, {"training.steps": 1_000_000, "training.evaluate_every": 500_000})
    swept = sweep_cells(make_cell(settings=slow), make_cell(), minutes=0.03)
    assert swept.states == ["interrupted, goes on next time", "waiting"]
    assert list(Path("runs").rglob("state/step-*"))
    assert not list_times()


def test_a_system_that_is_too_slow_is_not_run_further(monkeypatch):
    """Six steps of a trial would be many a minute here."""
    monkeypatch.setattr(records, "LEAST_STEPS", 10**9)
    cell = make_cell(row="Transformer", column="image", choices=RATES, least_steps=records.LEAST_STEPS)
    assert sweep_cells(cell).states[0].startswith("done: too slow, ")
    stored = records.read_runs(Path("results"))
    assert [run.trial for run in stored] == [True, True]
    (table,) = paper_tables.tabulate_accuracy([*stored, make_run(CHORD, "image", 0.5)], ("image",), "x")
    (slow,) = [row for row in table.rows if row[0] == "Transformer"]
    assert slow[1].startswith("too slow: ")
    monkeypatch.setattr(records, "LEAST_STEPS", 0)
    sweep_cells(cell)
    assert sum(not run.trial for run in records.read_runs(Path("results"))) == 1


def test_a_cell_that_fails_does_not_stop_the_others(monkeypatch):
    real = sweep.start_run

    def fail(settings, *rest, **named):
        if settings.seed == 0:
            raise RuntimeError("out of memory")
        return real(settings, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(sweep, "start_run", fail)
        swept = sweep_cells(make_cell(), make_cell(settings=override(TINY, {"seed": 1})))
    assert swept.states[0] == "failed: out of memory"
    assert swept.states[1].startswith("done")
    assert swept.failed == [f"{CHORD} order 12: out of memory"]
    assert sweep_cells(make_cell()).states[0].startswith("done")


def test_records_do_not_hold_the_place_of_the_data(tmp_path):
    lines = [f"{'ab' * (3 + n % 4)},{n % 2}" for n in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *lines]))
    settings = RunSettings(
        task="text",
        data={"source": tmp_path / "own.csv", "length": 16},
        recipe="paper",
        model={"channels": 6},
        training={"steps": 2, "batch": 4},
    )
    sweep_cells(make_cell(settings=settings))
    (path,) = list_times()
    assert str(tmp_path) not in path.read_text()
    elsewhere = override(settings, {"data.source": Path("other.csv")})
    assert settings_key(settings, "cpu") == settings_key(elsewhere, "cpu")
    record = json.loads(path.read_text())["record"]
    assert 0.3 < record["majority"] < 0.8


def test_the_table_fits_into_80_columns(capsys, monkeypatch):
    from rich.console import Console

    cells = [make_cell(row="Paramixer CHORD, the paper's initialisation", column="documents-smoke")] * 3
    swept = sweep.Sweep(cells, Path("results"), Path("runs"), Console(width=80))
    swept.states[1] = "running: trial 1 of 2, step 100000, accuracy 0.1234"
    swept.console.print(swept._render())
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "accuracy" in text
