"""Lines of metrics: training loss every so many steps, and every evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from paramixer.training.callback import Callback
from paramixer.training.loop import Loop

Line = dict[str, Any]


class MetricsLog(Callback):
    """Gives lines of metrics to files or boards.

    Args:
        sinks: take a line each; none in processes that write nothing.
    """

    def __init__(self, sinks: Sequence[Callable[[Line], None]]) -> None:
        self._sinks = tuple(sinks)
        self._logged_at = time.monotonic()

    def on_start(self, loop: Loop) -> None:
        """Start the clock of the share of time that training takes."""
        self._logged_at = time.monotonic()

    def on_step(self, loop: Loop) -> None:
        """Log the training loss if it is time."""
        if loop.progress.step % loop.options.log_every == 0:
            self._log_training(loop)

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Log an evaluation."""
        progress = loop.progress
        line = {"kind": "validation", "step": progress.step, "epoch": progress.epoch, **metrics, "best": improved}
        self._write(loop, {**line, "seconds": loop.seconds()})

    def on_end(self, loop: Loop) -> None:
        """Log the steps since the last line."""
        self._log_training(loop)

    def _log_training(self, loop: Loop) -> None:
        progress, now = loop.progress, time.monotonic()
        if not progress.loss_count:
            return
        line = {
            "kind": "train",
            "step": progress.step,
            "epoch": progress.epoch,
            "loss": progress.loss_sum / progress.loss_count,
            "learning_rate": loop.learning_rate(progress.step - 1),
            "seconds": loop.seconds(),
            "tokens": progress.tokens,
            # The share of the time that went into forward pass, backward pass and optimizer.
            "busy": loop.busy / max(now - self._logged_at, 1e-9),
        }
        loop.busy, self._logged_at = 0.0, now
        progress.loss_sum, progress.loss_count = 0.0, 0
        self._write(loop, line)

    def _write(self, loop: Loop, line: Line) -> None:
        for sink in self._sinks:
            sink(line)
        loop.progress.lines += 1
