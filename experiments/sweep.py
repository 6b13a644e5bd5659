"""A list of cells, run one after another: what is finished is never run twice, what was interrupted goes on."""

from __future__ import annotations

import dataclasses
import math
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from paramixer.baselines import registry
from experiments.cells import Cell, Settings, key
from experiments.records import Kept, keep, path_of, read_all
from paramixer.training import checkpoint
from paramixer.training.command import TrainOptions, train
from paramixer.training.progress import Silent
from paramixer.training.record import Outcome
from paramixer.training.run_folder import RunFolder


class Sweep:
    """Runs cells and keeps their records.

    Args:
        cells: in the order in which they are run.
        results: where records are kept.
        runs: where run folders are.
        console: where the table is shown.
        minutes: stop after so many; what is under way is saved and goes on next time.
    """

    def __init__(
        self, cells: Sequence[Cell], results: Path, runs: Path, console: Console, minutes: float | None = None
    ) -> None:
        self.cells, self.results, self.runs, self.console = cells, results, runs, console
        self.ends = None if minutes is None else time.monotonic() + 60 * minutes
        self.states = ["waiting"] * len(cells)
        known = {one.key: one for one in read_all(results)}
        for number, cell in enumerate(cells):
            if (found := _final(cell, known)) is not None:
                self.states[number] = f"done: {_told(found)}"

    def run(self) -> int:
        """Everything that is not done; returns how many cells are."""
        with Live(get_renderable=self.table, console=self.console, auto_refresh=False, transient=True) as live:
            if not self.console.is_terminal:
                live.stop()
            for number, cell in enumerate(self.cells):
                if self.over:
                    break
                if self.states[number] == "waiting":
                    try:
                        self._cell(number, cell, live)
                    except (RuntimeError, ValueError, OSError, ImportError, MemoryError) as error:
                        # Out of memory, a missing package, missing data: the other cells can still be run.
                        self.states[number] = f"failed: {error}"
        self.console.print(self.table())
        return sum(told.startswith("done") for told in self.states)

    @property
    def failed(self) -> list[str]:
        """Cells that could not be run, and why."""
        return [
            f"{cell.row} {cell.column}: {told.removeprefix('failed: ')}"
            for cell, told in zip(self.cells, self.states, strict=True)
            if told.startswith("failed")
        ]

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.ends is not None and time.monotonic() > self.ends

    def table(self) -> Table:
        """What is done, running and waiting."""
        table = Table("experiment", "model", "cell", "seed", "state", box=box.SIMPLE_HEAD)
        for cell, told in zip(self.cells, self.states, strict=True):
            table.add_row(cell.experiment, cell.row, cell.column, str(cell.options.seed), told)
        return table

    def _cell(self, number: int, cell: Cell, live: Live) -> None:
        choice: Settings = cell.grid[0]
        trials = cell.trials()
        for place, options in enumerate(trials):
            if not self._once(number, cell, options, f"trial {place + 1} of {len(trials)}", live):
                return
        if trials:
            choice = self._best(cell, trials)
        self._once(number, cell, cell.final(choice), "", live)

    def _best(self, cell: Cell, trials: list[TrainOptions]) -> Settings:
        """By loss on validation: in a few minutes slow models stay near a guess, where the metric is luck."""
        known = {one.key: one for one in read_all(self.results, cell.experiment)}
        found = [known[key(options, cell.scale)].record for options in trials]
        losses = [min(filter(math.isfinite, _losses(record)), default=math.inf) for record in found]
        return cell.grid[losses.index(min(losses))]

    def _once(self, number: int, cell: Cell, options: TrainOptions, what: str, live: Live) -> bool:
        """One run, unless it is done; whether it is afterwards."""
        if path_of(self.results, cell, options).is_file():
            return True
        if self.over:
            return False
        folder = self.runs / key(options, cell.scale)
        display = _Watched(self, number, what, live)
        quiet = Console(quiet=True)
        started = folder / "config.yaml"
        if started.is_file() and _in_one_go(options) and not RunFolder(folder).read_record()["finished"]:
            shutil.rmtree(folder)
        words = TrainOptions(resume=folder) if started.is_file() else dataclasses.replace(options, out=folder)
        if not (started.is_file() and RunFolder(folder).read_record()["finished"]):
            try:
                # What only helps to choose does not look at test.
                train(words, quiet, display, test=not what)
            except KeyboardInterrupt:
                if self.over:
                    self.states[number] = "interrupted, goes on next time"
                    return False
                raise
        record = RunFolder(folder).read_record()
        kept = keep(self.results, cell, options, bool(what), record)
        if not what:
            self.states[number] = f"done: {record['metric']} {record['test'][record['metric']]:.4f}"
        if not self.console.is_terminal:
            told = f"{cell.row}, {cell.column}{', ' + what if what else ''}: {record['metric']}"
            value = record["validation"] if what else record["test"][record["metric"]]
            self.console.print(f"{told} {value:.4f} ({kept.name})", highlight=False)
        live.refresh()
        return True


class _Watched(Silent):
    """Shows where a run is in the sweep's table, and ends it when the sweep's time is up."""

    def __init__(self, sweep: Sweep, number: int, what: str, live: Live) -> None:
        self._sweep, self._number, self._live = sweep, number, live
        self._what = f"{what}, " if what else ""
        self._shown = 0.0
        self._latest = ""

    def step(self, progress: checkpoint.Progress) -> None:
        if self._sweep.over:
            # As Ctrl-C would: the loop saves and says so.
            signal.raise_signal(signal.SIGINT)
        if time.monotonic() - self._shown > 0.5:
            self._shown = time.monotonic()
            self._tell(f"running: {self._what}step {progress.step}{self._latest}")

    def evaluated(self, progress: checkpoint.Progress, found: dict[str, float]) -> None:
        name = next(name for name in found if name != "loss")
        self._latest = f", {name} {found[name]:.4f}"
        self._tell(f"running: {self._what}step {progress.step}{self._latest}")

    def finished(self, outcome: Outcome) -> None:
        self._tell("running: writing")

    def _tell(self, text: str) -> None:
        self._sweep.states[self._number] = text
        if self._sweep.console.is_terminal:
            self._live.refresh()


def _in_one_go(options: TrainOptions) -> bool:
    """Whether the model is fitted all at once, so that an interrupted run begins anew."""
    name = options.model.get("mixer", registry.OWN)
    return name != registry.OWN and registry.baseline(name).linear


def _final(cell: Cell, known: dict[str, Kept]) -> Kept | None:
    """The record that counts, if the cell has one."""
    wanted = [key(cell.final(choice), cell.scale) for choice in cell.grid]
    return next((known[name] for name in wanted if name in known and not known[name].trial), None)


def _losses(record: dict[str, Any]) -> list[float]:
    return [line["loss"] for line in record["epochs"]]


def _told(kept: Kept) -> str:
    return f"{kept.record['metric']} {kept.value:.4f}, {kept.steps} steps, {kept.minutes:.1f} min"
