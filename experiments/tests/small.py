"""A cell that runs in a second, its sweep, and records without a run."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from experiments.cells import CHORD, Cell
from experiments.records import StoredRun
from experiments.sweep import Sweep
from paramixer.training.runs.run import RunSettings

TINY = RunSettings(
    task="order",
    data={"length": 12, "train": 30, "validation": 9, "test": 7},
    recipe="paper",
    model={"channels": 6},
    training={"steps": 6, "batch": 4, "evaluate_every": 3},
)


def make_cell(**fields: object) -> Cell:
    return Cell(**{"experiment": "x", "row": CHORD, "column": "order 12", "scale": "cpu", "settings": TINY} | fields)


def sweep_cells(*cells: Cell, minutes: float | None = None) -> Sweep:
    sweep = Sweep(cells, Path("results"), Path("runs"), Console(quiet=True), minutes)
    sweep.run()
    return sweep


def list_times() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path("results").rglob("*.json")}


def make_run(row: str, column: str, value: float, experiment: str = "figure-synthetic", **fields: object) -> StoredRun:
    record = {"test": {"error": value}, "metric": "error", "validation": value, "steps": 10, "seconds": 60.0}
    known = {"path": Path("x"), "format": 2, "scale": "cpu", "trial": False, "key": "k", "settings": {}}
    return StoredRun(experiment=experiment, row=row, column=column, **known | {"record": record} | fields)
