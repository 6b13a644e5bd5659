"""How the training of an estimator went."""

from __future__ import annotations

from paramixer.training.callback import Callback
from paramixer.training.loop import Loop


class History(Callback):
    """Collects the training loss and the validation metric of every evaluation.

    Nothing else may reset the loop's training loss: ``log_every`` has to be larger than the number of steps.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        """Mean training loss since the evaluation before."""
        self.metrics: list[dict[str, float]] = []
        """Loss and metric on validation."""
        self.epochs = 0
        """Passes over the training data that were begun."""
        self._mean = 0.0

    def on_step(self, loop: Loop) -> None:
        """Remember the mean loss, which is gone when training has ended."""
        progress = loop.progress
        if progress.loss_count:
            self._mean = progress.loss_sum / progress.loss_count
        self.epochs = progress.epoch + (progress.position > 0)

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Note losses and metric."""
        progress = loop.progress
        self.losses.append(progress.loss_sum / progress.loss_count if progress.loss_count else self._mean)
        self.metrics.append(dict(metrics))
        progress.loss_sum, progress.loss_count = 0.0, 0
