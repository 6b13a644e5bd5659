"""A cell that runs in a second, its sweep, and records without a run."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from experiments import records
from experiments.cells import CHORD, Cell
from experiments.sweep import Sweep
from paramixer.training.command import TrainOptions

TINY = TrainOptions(
    task="order", length=12, train=30, validation=9, test=7, steps=6, batch=4, evaluate_every=3, model={"channels": 6}
)


def cell(**fields: object) -> Cell:
    return Cell(**{"experiment": "x", "row": CHORD, "column": "order 12", "scale": "cpu", "options": TINY} | fields)


def swept(*wanted: Cell, minutes: float | None = None) -> Sweep:
    sweep = Sweep(wanted, Path("results"), Path("runs"), Console(quiet=True), minutes)
    sweep.run()
    return sweep


def times() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path("results").rglob("*.json")}


def kept(row: str, column: str, value: float, experiment: str = "figure-synthetic", **fields: object) -> records.Kept:
    record = {"test": {"error": value}, "metric": "error", "validation": value, "steps": 10, "seconds": 60.0}
    known = {"path": Path("x"), "scale": "cpu", "trial": False, "key": "k", "options": {}, "record": record}
    return records.Kept(experiment=experiment, row=row, column=column, **known | fields)
