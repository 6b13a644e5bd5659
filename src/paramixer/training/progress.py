"""What a user sees while a model trains: one line that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from paramixer.training import checkpoint

if TYPE_CHECKING:
    from paramixer.training.record import Outcome

Tick = Callable[[int], None]


class Display(Protocol):
    """Is told how a run goes."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, steps: int | None, epochs: int | None, metric: str) -> None:
        """Training begins, with so many steps ahead."""

    def step(self, progress: checkpoint.Progress) -> None:
        """A step is done."""

    def evaluating(self, split: str, count: int) -> Tick:
        """A split of so many sequences is about to be answered; returns what is told of its progress."""

    def evaluated(self, progress: checkpoint.Progress, found: dict[str, float]) -> None:
        """Validation is done."""

    def finished(self, outcome: Outcome) -> None:
        """All is done."""


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, steps: int | None, epochs: int | None, metric: str) -> None:
        """Nothing."""

    def step(self, progress: checkpoint.Progress) -> None:
        """Nothing."""

    def evaluating(self, split: str, count: int) -> Tick:
        """Nothing."""
        return lambda done: None

    def evaluated(self, progress: checkpoint.Progress, found: dict[str, float]) -> None:
        """Nothing."""

    def finished(self, outcome: Outcome) -> None:
        """Nothing."""


class Shown(Silent):
    """Shows a run on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[more]}"),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._metric = ""
        self._clock, self._tokens, self._loss = time.monotonic(), 0, float("nan")
        self._latest = ""

    def __enter__(self) -> Shown:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, steps: int | None, epochs: int | None, metric: str) -> None:
        """The bar of all steps."""
        self._metric = metric
        self._main = self._bars.add_task("training", total=steps, more="")
        self._clock = time.monotonic()

    def step(self, progress: checkpoint.Progress) -> None:
        """Epoch, loss, metric, tokens a second."""
        if progress.loss_count:
            self._loss = progress.loss_sum / progress.loss_count
        now = time.monotonic()
        if now - self._clock > 0.5:
            rate = (progress.tokens - self._tokens) / (now - self._clock)
            self._clock, self._tokens = now, progress.tokens
            more = f"loss {self._loss:.4f}{self._latest}, {_count(rate)} tokens/s"
            self._bars.update(self._main, completed=progress.step, description=f"epoch {progress.epoch + 1}", more=more)

    def evaluating(self, split: str, count: int) -> Tick:
        """A bar for the split."""
        bar = self._bars.add_task(split, total=count, more="")

        def tick(done: int) -> None:
            self._bars.advance(bar, done)
            if self._bars.tasks[self._bars.task_ids.index(bar)].finished:
                self._bars.remove_task(bar)

        return tick

    def evaluated(self, progress: checkpoint.Progress, found: dict[str, float]) -> None:
        """One line that stays."""
        value = found[self._metric]
        self._latest = f", {self._metric} {value:.4f}"
        best = " (best)" if progress.worse == 0 else ""
        self._console.print(
            f"epoch {progress.epoch}, step {progress.step}: validation loss {found['loss']:.4f}, "
            f"{self._metric} {value:.4f}{best}",
            highlight=False,
        )
        self._clock = time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        """What came out."""
        test = f"; on test: {self._metric} {outcome.test[self._metric]:.4f}" if outcome.test else ""
        self._console.print(
            f"{outcome.stopped}; best on validation at step {outcome.best_step}: "
            f"{self._metric} {outcome.validation:.4f}{test}",
            highlight=False,
            soft_wrap=True,
        )


def _count(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"
