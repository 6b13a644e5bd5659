"""What a user sees while a model trains: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from paramixer.training.assessment.metrics import describe_name, format_number
from paramixer.training.callback import Callback
from paramixer.training.loop import Loop
from paramixer.training.runs.record import Outcome

Tick = Callable[[int], None]

# Seconds between two refreshes of the bar, and between two lines of a log.
_REFRESH, _LINE = 0.5, 30.0
# Columns of the bar, and of the descriptions before it: epochs, or the split under evaluation.
_BAR, _DESCRIPTION = 10, len("validation")


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

    def on_note(self, text: str) -> None:
        """There is something that a user should know."""

    def on_outcome(self, outcome: Outcome) -> None:
        """The run is complete."""


class ConsoleDisplay(Display):
    """Shows epochs, losses, the metric and the time left on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=_BAR),
            TextColumn("{task.fields[more]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._main: TaskID | None = None
        self._shown_at = self._started_at = time.monotonic()
        self._started_step: int | None = None
        self._tokens = 0
        self._rate: float | None = None
        self._loss: float | None = None
        self._validation_loss: float | None = None
        self._metric = ""

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
        """Show epoch, losses, metric, tokens per second and time left."""
        progress, now = loop.progress, time.monotonic()
        self._read_loss(loop)
        waited = now - self._shown_at
        if waited < (_REFRESH if self._console.is_terminal else _LINE):
            return
        self._rate = (progress.tokens - self._tokens) / waited
        self._shown_at, self._tokens = now, progress.tokens
        if self._console.is_terminal:
            self._refresh(loop)
        else:
            self._print(_join(self._describe_losses(loop), self._describe_rate(), self._describe_time_left(loop)))

    def track(self, description: str, total: int) -> Tick:
        """Show a bar for items beside the training steps, such as the sequences of a split."""
        bar = self._bars.add_task(description, total=total, more=f"0/{total}")
        done = 0

        def tick(count: int) -> None:
            nonlocal done
            done += count
            self._bars.update(bar, completed=done, more=f"{done}/{total}")
            if done >= total:
                self._bars.remove_task(bar)

        return tick

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Print a line that stays."""
        self._validation_loss = metrics["loss"]
        self._metric = _join(
            *(f"{describe_name(name)} {format_number(metrics[name], 4)}" for name in metrics if name != "loss")
        )
        self._read_loss(loop)
        # Not always the best: of equally good weights the later ones are kept.
        kept = " (kept)" if improved else ""
        self._print(_join(self._describe_losses(loop) + kept, self._describe_time_left(loop)))
        self._shown_at, self._tokens = time.monotonic(), loop.progress.tokens
        self._refresh(loop)

    def on_note(self, text: str) -> None:
        """Print a line that stays."""
        self._print(text)

    def on_outcome(self, outcome: Outcome) -> None:
        """Print the result."""
        self._print(
            f"{outcome.stopped}; weights of step {outcome.best_step} are kept: validation "
            f"{describe_name(outcome.metric)} {format_number(outcome.validation, 4)}"
        )
        if outcome.verdict:
            self._print(outcome.verdict)

    def _read_loss(self, loop: Loop) -> None:
        """Take the mean training loss since the last line of the metrics, if there is a step since then."""
        if loop.progress.loss_count:
            self._loss = loop.progress.loss_sum / loop.progress.loss_count

    def _refresh(self, loop: Loop) -> None:
        """Bring the bar up to date: epoch, losses and time left, and what else the line has room for."""
        if self._main is None:
            return
        epoch, time_left = _describe_epoch(loop), self._describe_time_left(loop)
        room = self._console.width - max(len(epoch), _DESCRIPTION) - _BAR - 2
        losses = _describe_pair(self._loss, self._validation_loss, "validation")
        if len(_join(losses, time_left)) > room:
            losses = _describe_pair(self._loss, self._validation_loss, "val")
        more = _join(losses, time_left)
        for extra in (_join(self._metric), _join(self._metric, self._describe_rate())):
            if len(longer := _join(losses, extra, time_left)) <= room:
                more = longer
        self._bars.update(self._main, completed=loop.progress.step, description=epoch, more=more)

    def _describe_losses(self, loop: Loop) -> str:
        """Return epoch, step, losses and metric, as a line of a log begins."""
        steps = f"step {loop.progress.step}" + (f"/{loop.last_step}" if loop.last_step else "")
        training = "" if self._loss is None else f"training loss {format_number(self._loss, 4)}"
        validation = (
            "" if self._validation_loss is None else f"validation loss {format_number(self._validation_loss, 4)}"
        )
        return f"{_describe_epoch(loop)}, {steps}: {_join(training, validation, self._metric)}"

    def _describe_rate(self) -> str:
        return "" if self._rate is None else f"{_abbreviate(self._rate)} tokens/s"

    def _describe_time_left(self, loop: Loop) -> str:
        """Return how long training goes on by its steps or minutes, whichever end first; patience may end it sooner."""
        step, estimates = loop.progress.step, []
        if loop.last_step is not None and self._started_step is not None and step > self._started_step:
            per_step = (time.monotonic() - self._started_at) / (step - self._started_step)
            estimates.append(per_step * (loop.last_step - step))
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


def _describe_epoch(loop: Loop) -> str:
    """Return the epoch of the last step, counted from 1, and how many there are."""
    progress, epochs = loop.progress, _count_epochs(loop)
    epoch = max(1, progress.epoch + (progress.position > 0))
    return f"epoch {epoch}" + (f"/{epochs}" if epochs else "")


def _describe_pair(training: float | None, validation: float | None, name: str) -> str:
    """Return both losses in few characters."""
    if validation is None:
        return "" if training is None else f"loss {format_number(training, 4)}"
    if training is None:
        return f"{name} loss {format_number(validation, 4)}"
    return f"loss {format_number(training, 4)}/{format_number(validation, 4)} ({name})"


def _join(*details: str) -> str:
    return ", ".join(detail for detail in details if detail)


def _abbreviate(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"
