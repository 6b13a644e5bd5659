"""A list of cells, run one after another: a finished run is never repeated, an interrupted one goes on."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live

from experiments import ablations
from experiments.cells import Cell, Overrides, settings_key
from experiments.quick import run as quick
from experiments.records import StoredRun, count_steps, find_final, find_run, read_runs, write_run
from paramixer.baselines import registry
from paramixer.bench.rendering import Table, render
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.loop import Loop
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import RunSettings, resume_run, start_run

_WAITING = "waiting"
_REFRESH_SECONDS = 0.5


class Sweep:
    """Runs cells and stores their records.

    Args:
        cells: in the order in which they are run.
        results: folder of the records.
        runs: folder of the run folders.
        console: where the table is shown.
        minutes: stop after so many; the current run is saved and goes on next time.
    """

    def __init__(
        self, cells: Sequence[Cell], results: Path, runs: Path, console: Console, minutes: float | None = None
    ) -> None:
        self.cells, self.results, self.runs, self.console = cells, results, runs, console
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes
        stored = read_runs(results)
        self.states = [_describe_final(find_final(cell, stored)) for cell in cells]

    def run(self) -> int:
        """Run everything that is not done; returns the number of cells that are."""
        with Live(get_renderable=self._render, console=self.console, auto_refresh=False, transient=True) as live:
            if not self.console.is_terminal:
                live.stop()
            for number, cell in enumerate(self.cells):
                if self.is_over:
                    break
                if self.states[number] == _WAITING:
                    try:
                        self._run_cell(number, cell, live)
                    except (RuntimeError, ValueError, OSError, ImportError, MemoryError) as error:
                        # Out of memory, a missing package, missing data: the other cells can still be run.
                        self.states[number] = f"failed: {error}"
        self.console.print(self._render())
        return sum(state.startswith("done") for state in self.states)

    @property
    def failed(self) -> list[str]:
        """Cells that could not be run, and why."""
        return [
            f"{cell.row} {cell.column}: {state.removeprefix('failed: ')}"
            for cell, state in zip(self.cells, self.states, strict=True)
            if state.startswith("failed")
        ]

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def table(self) -> Table:
        """Return what is done, running and waiting."""
        rows = [
            [cell.row, cell.column, str(cell.settings.seed), state]
            for cell, state in zip(self.cells, self.states, strict=True)
        ]
        return Table(", ".join(dict.fromkeys(cell.experiment for cell in self.cells)), _COLUMNS, rows)

    def _render(self) -> RenderableType:
        return render(self.table())

    def _run_cell(self, number: int, cell: Cell, live: Live) -> None:
        choice: Overrides = cell.choices[0]
        trials = cell.trials()
        for place, settings in enumerate(trials):
            if not self._run_once(number, cell, settings, f"trial {place + 1} of {len(trials)}", live):
                return
        if trials:
            stored = read_runs(self.results, cell.experiment)
            rate = count_steps(cell.row, cell.column, stored) if cell.least_steps else None
            if rate is not None:
                self.states[number] = f"done: too slow, {rate:.1f} steps in a minute"
                return
            choice = self._choose(cell, trials)
        self._run_once(number, cell, cell.final(choice), "", live)

    def _choose(self, cell: Cell, trials: list[RunSettings]) -> Overrides:
        """Choose by loss on validation: after a few minutes slow models are near a guess, where the metric is noise."""
        stored = read_runs(self.results, cell.experiment)
        losses = [_lowest_loss(find_run(cell, settings, stored)) for settings in trials]
        return cell.choices[losses.index(min(losses))]

    def _run_once(self, number: int, cell: Cell, settings: RunSettings, trial: str, live: Live) -> bool:
        """Do one run, unless there is a record; returns whether there is one afterwards."""
        if find_run(cell, settings, read_runs(self.results, cell.experiment)) is not None:
            return True
        if self.is_over:
            return False
        folder = RunFolder(self.runs / settings_key(settings, cell.scale))
        watcher = _Watcher(self, number, trial, live)
        is_finished = folder.config.is_file() and folder.read_record()["finished"]
        if folder.config.is_file() and not is_finished and _is_closed_form(settings):
            shutil.rmtree(folder.path)
        if not is_finished:
            try:
                # A run that only helps to choose is not evaluated on test.
                if settings.recipe == quick.QUICK:
                    quick.train(settings, folder.path, callbacks=[watcher], test=not trial)
                elif settings.recipe in ablations.ABLATIONS:
                    ablations.train(settings, folder.path, callbacks=[watcher], test=not trial)
                elif folder.config.is_file():
                    resume_run(folder.path, callbacks=[watcher], test=not trial)
                else:
                    start_run(settings, folder.path, callbacks=[watcher], test=not trial)
            except Interrupted:
                if not self.is_over:
                    raise
                self.states[number] = "interrupted, goes on next time"
                return False
        record = folder.read_record()
        path = write_run(self.results, cell, settings, bool(trial), record)
        metric = record["metric"]
        value = record["validation"] if trial else record["test"][metric]
        if not trial:
            self.states[number] = f"done: {metric} {value:.4f}"
        if not self.console.is_terminal:
            name = ", ".join(filter(None, (cell.row, cell.column, trial)))
            self.console.print(f"{name}: {metric} {value:.4f} ({path.name})", highlight=False, soft_wrap=True)
        live.refresh()
        return True


class _Watcher(Callback):
    """Shows the state of a run in the sweep's table, and interrupts it when the sweep's time is up."""

    def __init__(self, sweep: Sweep, number: int, trial: str, live: Live) -> None:
        self._sweep, self._number, self._live = sweep, number, live
        self._prefix = f"running: {trial}, " if trial else "running: "
        self._shown_at = 0.0
        self._validation = ""

    def on_step(self, loop: Loop) -> None:
        """Show the step now and then."""
        if self._sweep.is_over:
            loop.interrupt("the end of the sweep's minutes")
        if time.monotonic() - self._shown_at > _REFRESH_SECONDS:
            self._shown_at = time.monotonic()
            self._show(loop)

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Show the metric."""
        name = next(name for name in metrics if name != "loss")
        self._validation = f", {name} {metrics[name]:.4f}"
        self._show(loop)

    def _show(self, loop: Loop) -> None:
        self._sweep.states[self._number] = f"{self._prefix}step {loop.progress.step}{self._validation}"
        if self._sweep.console.is_terminal:
            self._live.refresh()


_COLUMNS = ["model", "cell", "seed", "state"]


def _is_closed_form(settings: RunSettings) -> bool:
    """Whether the model is fitted in one go, so that an interrupted run starts over."""
    return settings.system in registry.BASELINES and registry.get(settings.system).closed_form


def _lowest_loss(run: StoredRun | None) -> float:
    losses = [] if run is None else [line["loss"] for line in run.record["epochs"]]
    return min(filter(math.isfinite, losses), default=math.inf)


def _describe_final(run: StoredRun | None) -> str:
    if run is None:
        return _WAITING
    return f"done: {run.record['metric']} {run.value:.4f}, {run.steps} steps, {run.minutes:.1f} min"
