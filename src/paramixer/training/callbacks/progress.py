"""What a user sees while a model trains: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from paramixer.training.callback import Callback
from paramixer.training.loop import Loop
from paramixer.training.runs.record import Outcome

Tick = Callable[[int], None]

# Seconds between two refreshes of the bar, and between two lines of a log.
_REFRESH, _LINE = 0.5, 30.0


class Display(Callback):
    """Shows nothing. The base of displays; use as a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def track(self, description: str, total: int) -> Tick:
        """Return a function to be called with the number of items that are done."""
        return lambda count: None

    def on_outcome(self, outcome: Outcome) -> None:
        """The run is complete."""


class ConsoleDisplay(Display):
    """Shows epochs, losses, the metric and the time left on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn())
        self._bars = Progress(
            *columns,
            TextColumn("{task.fields[more]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._metric, self._validation = "", ""
        self._shown_at = self._started_at = time.monotonic()
        self._started_step = self._tokens = 0
        self._loss: float | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def on_start(self, loop: Loop) -> None:
        """Show the bar of all steps."""
        self._main = self._bars.add_task("training", total=loop.last_step, completed=loop.progress.step, more="")
        self._shown_at = self._started_at = time.monotonic()
        self._started_step, self._tokens = loop.progress.step, loop.progress.tokens

    def on_step(self, loop: Loop) -> None:
        """Show epoch, losses, tokens per second and time left."""
        progress, now = loop.progress, time.monotonic()
        if progress.loss_count:
            self._loss = progress.loss_sum / progress.loss_count
        waited = now - self._shown_at
        if waited < (_REFRESH if self._console.is_terminal else _LINE):
            return
        rate = (progress.tokens - self._tokens) / waited
        self._shown_at, self._tokens = now, progress.tokens
        epochs = _count_epochs(loop)
        epoch = f"epoch {min(progress.epoch + 1, epochs or progress.epoch + 1)}" + (f"/{epochs}" if epochs else "")
        loss = "" if self._loss is None else f"loss {self._loss:.4f}"
        details = [loss, self._validation, f"{_abbreviate(rate)} tokens/s", self._describe_time_left(loop)]
        more = ", ".join(detail for detail in details if detail)
        if self._console.is_terminal:
            self._bars.update(self._main, completed=progress.step, description=epoch, more=more)
        else:
            steps = f"step {progress.step}" + (f"/{loop.last_step}" if loop.last_step else "")
            self._print(f"{epoch}, {steps}: {more}")

    def track(self, description: str, total: int) -> Tick:
        """Show a bar for items beside the training steps, such as the sequences of a split."""
        bar = self._bars.add_task(description, total=total, more="")

        def tick(count: int) -> None:
            self._bars.advance(bar, count)
            if self._bars.tasks[self._bars.task_ids.index(bar)].finished:
                self._bars.remove_task(bar)

        return tick

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Print a line that stays."""
        metric = next(name for name in metrics if name != "loss")
        self._validation = f"validation loss {metrics['loss']:.4f}, {metric} {metrics[metric]:.4f}"
        training = "" if self._loss is None else f"training loss {self._loss:.4f}, "
        progress = loop.progress
        best = " (best)" if improved else ""
        self._print(f"epoch {progress.epoch}, step {progress.step}: {training}{self._validation}{best}")
        self._shown_at = time.monotonic()

    def on_outcome(self, outcome: Outcome) -> None:
        """Print the result."""
        metric = outcome.metric
        test = f"; on test: {metric} {outcome.test[metric]:.4f}" if outcome.test else ""
        self._print(
            f"{outcome.stopped}; best on validation at step {outcome.best_step}: "
            f"{metric} {outcome.validation:.4f}{test}"
        )

    def _describe_time_left(self, loop: Loop) -> str:
        """Return how long training goes on by its steps or minutes, whichever end first; patience may end it sooner."""
        elapsed, done = time.monotonic() - self._started_at, loop.progress.step - self._started_step
        estimates = []
        if loop.last_step is not None and done:
            estimates.append(elapsed / done * (loop.last_step - loop.progress.step))
        if loop.options.minutes is not None:
            estimates.append(60 * loop.options.minutes - loop.seconds())
        if not estimates:
            return ""
        minutes, seconds = divmod(max(0, round(min(estimates))), 60)
        hours, minutes = divmod(minutes, 60)
        return (f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}") + " left"

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


def _count_epochs(loop: Loop) -> int | None:
    """Return how many epochs the run has, where its steps say it."""
    return None if loop.last_step is None else -(-loop.last_step // loop.batches.steps_per_epoch)


def _abbreviate(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"
