"""Evaluation on validation, and the best model so far."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from paramixer.data.task import Sequences, Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.assessment.guess import measure_guess_loss
from paramixer.training.assessment.metrics import METRICS, Metric, compute_metrics
from paramixer.training.batches import Collate
from paramixer.training.callback import Callback, Progress
from paramixer.training.callbacks.progress import Display
from paramixer.training.inference import predict_split
from paramixer.training.loop import Loop
from paramixer.training.options import TrainingOptions
from paramixer.training.runs.folder import write_inputs

# Losses of which the mean is taken, and how much worse than the best one it must be to be told: by this factor, and by
# this share of the guess's loss.
_SMOOTHED, _RISE, _RISE_OF_GUESS = 3, 1.1, 0.05
# Losses that are better by less than this share of the guess's loss are no improvement.
_NEGLIGIBLE = 1e-4
# Later weights are kept where their share of right answers is within so many standard errors of the best.
_NEAR = 0.5
# The first evaluation's step at least, and the share of the time that evaluations may take.
_FIRST, _SHARE = 20, 0.12


class Evaluation(Callback):
    """Evaluates the validation split every so many steps, or once per epoch, and at the end.

    Args:
        task: the data, and how it is judged.
        collate: turns items into batches.
        every: steps between evaluations; None for once per epoch; "growing" as in :class:`GrowingSteps`.
        display: shows how far an evaluation is.
        balanced: whether the balanced accuracy is measured, too.
    """

    def __init__(
        self,
        task: Task,
        collate: Collate,
        every: int | Literal["growing"] | None,
        display: Display,
        balanced: bool = False,
    ) -> None:
        self._task, self._collate, self._every, self._display = task, collate, every, display
        self._balanced = balanced
        self._growing: GrowingSteps | None = None
        self._guess_loss = measure_guess_loss(task)

    def on_start(self, loop: Loop) -> None:
        """Evaluate where a run was interrupted before or during an evaluation."""
        self.on_step(loop)

    def on_step(self, loop: Loop) -> None:
        """Evaluate if it is time."""
        progress = loop.progress
        if due := self._is_due(loop):
            due = progress.step not in (0, progress.evaluated)
        if due and progress.step not in (0, progress.evaluated):
            self._evaluate(loop)

    def on_end(self, loop: Loop) -> None:
        """Evaluate the last step."""
        if loop.progress.evaluated != loop.progress.step:
            self._evaluate(loop)

    def measure(self, loop: Loop, split: Sequences, name: str) -> dict[str, float]:
        """Return loss and metric on a split."""
        return compute_metrics(*self.predict(loop, split, name), self._task.metric, self._balanced)

    def predict(self, loop: Loop, split: Sequences, name: str) -> tuple[Tensor, Tensor]:
        """Return answers and targets of a split."""
        shown = self._display.track(name, len(split))

        def tick(count: int) -> None:
            shown(count)
            # Of several processes the others would wait for this one's answers.
            if loop.interruption is not None and loop.accelerator.num_processes == 1:
                loop.check_interruption()

        assert loop.options.batch is not None
        return predict_split(
            loop.model,
            split,
            loop.options.batch,
            self._collate,
            loop.accelerator,
            loop.options.workers,
            loop.options.precision,
            tick,
        )

    def _evaluate(self, loop: Loop) -> None:
        metrics = self.measure(loop, self._task.validation, "validation")
        progress, value, loss = loop.progress, metrics[self._task.metric], metrics["loss"]
        metric = METRICS[self._task.metric]
        improved = metric.is_better(value, progress.best)
        negligible = progress.best is not None and abs(value - progress.best) < self._negligible(metric)
        progress.worse = 0 if improved and not negligible else progress.worse + 1
        if value == progress.best and progress.best_loss is not None:
            improved = loss < progress.best_loss
        if improved:
            progress.best, progress.best_loss = value, loss
        chosen = improved or self._is_as_good(loop, value)
        if chosen:
            progress.chosen, progress.best_step = value, progress.step
        self._smooth(progress, loss)
        if progress.cooling is None and has_stalled(progress, loop.options):
            progress.cooling = progress.step
        progress.evaluated = progress.step
        for callback in loop.callbacks:
            callback.on_evaluation(loop, metrics, chosen)

    def _negligible(self, metric: Metric) -> float:
        """Return the difference below which two values of the metric are equal; a mean squared error is a loss."""
        return 0.0 if math.isfinite(metric.most) else _NEGLIGIBLE * self._guess_loss

    def _is_as_good(self, loop: Loop, value: float) -> bool:
        """Return whether a later result is so near the best one that the smaller learning rate decides for it.

        The best of many evaluations on few sequences is the luckiest, and is often an early one.
        """
        best, count = loop.progress.best, len(self._task.validation)
        if best is None or loop.options.schedule != "cosine" or self._task.metric not in ("accuracy", "error"):
            return False
        return abs(value - best) <= _NEAR * math.sqrt(best * (1 - best) / count)

    def _is_due(self, loop: Loop) -> bool:
        if self._every is None:
            return loop.progress.position == 0
        if isinstance(self._every, int):
            return loop.progress.step % self._every == 0
        if self._growing is None:
            train = float(np.mean(self._task.train.lengths)) * loop.batches.per_step
            self._growing = GrowingSteps(
                loop.batches.steps_per_epoch, float(np.sum(self._task.validation.lengths)) / train
            )
        return self._growing.includes(loop.progress.step)

    def _smooth(self, progress: Progress, loss: float) -> None:
        progress.recent_losses = [*progress.recent_losses, loss][-_SMOOTHED:]
        mean = sum(progress.recent_losses) / len(progress.recent_losses)
        if progress.best_mean_loss is None or mean < progress.best_mean_loss - _NEGLIGIBLE * self._guess_loss:
            progress.best_mean_loss, progress.best_mean_step, progress.flat = mean, progress.step, 0
            progress.best_training_loss = progress.training_loss
            return
        progress.flat += 1
        fell = (progress.training_loss or 0) < (progress.best_training_loss or 0)
        risen = mean - progress.best_mean_loss
        rose = risen > max((_RISE - 1) * progress.best_mean_loss, _RISE_OF_GUESS * self._guess_loss)
        # A metric that still improves is worth more than a loss that rises.
        lasts = min(progress.flat, progress.worse) >= _SMOOTHED
        if progress.overfitting is None and fell and rose and lasts:
            progress.overfitting = progress.step
            smoothing = ", training.label_smoothing=0.1" if self._task.target == "class" else ""
            self._display.on_note(
                f"note: since step {progress.best_mean_step} the loss on validation has risen from "
                f"{progress.best_mean_loss:.3g} to {mean:.3g}, while that of training falls: the model learns its "
                "sequences by heart. The best weights are kept. More sequences help, or a smaller network (--set "
                f"model.channels, model.blocks), or --set training.weight_decay=0.2{smoothing}"
            )


def has_stalled(progress: Progress, options: TrainingOptions) -> bool:
    """Return whether there was no improvement for as many evaluations as the options allow.

    A metric of few sequences is noise, and a loss may rise while the metric still improves: both must be worse. Losses
    near zero fall forever, so that a share of the guess's loss counts.
    """
    return bool(options.patience) and min(progress.worse, progress.flat) >= (options.patience or 0)


class GrowingSteps:
    """The steps after which to evaluate: early first, then at growing distances, up to an epoch.

    They follow from the data alone, never from the clock, so that a run can be repeated.

    Args:
        epoch: steps per epoch.
        cost: an evaluation's positions as a multiple of a step's.
    """

    def __init__(self, epoch: int, cost: float) -> None:
        # A step passes forward and backward, about three times the work of an evaluation's forward pass.
        self._least = max(_FIRST, math.ceil(cost / 3 / _SHARE))
        self._most = max(self._least, epoch)
        self._next = self._least

    def includes(self, step: int) -> bool:
        """Return whether to evaluate after this step, counted from 1; steps must not fall."""
        while self._next < step:
            self._next += min(self._most, max(self._least, self._next // 4))
        return step == self._next


class BestInMemory(Callback):
    """Holds a copy of the best weights."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._weights: dict[str, torch.Tensor] = {}

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Copy the weights where they are the best so far."""
        if improved:
            self._weights = {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}

    def restore(self) -> None:
        """Put the best weights into the model."""
        self._model.load_state_dict(self._weights)

    def keep(self, loop: Loop) -> None:
        """Hold the model as it is now; it is in memory anyway."""


class BestInFolder(Callback):
    """Writes the best model, and how raw input becomes its input, into a folder."""

    def __init__(self, model: PretrainedModel, task: Task, folder: Path) -> None:
        self._model, self._task, self._folder = model, task, folder

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Write the model where it is the best so far."""
        if improved and loop.accelerator.is_main_process:
            self._model.save_pretrained(self._folder)
            write_inputs(self._folder, self._task)

    def restore(self) -> None:
        """Read the best weights back into the model."""
        from paramixer.training.factory import load_model

        self._model.load_state_dict(load_model(self._folder).state_dict())

    def keep(self, loop: Loop) -> None:
        """Write the model as it is now."""
        if loop.accelerator.is_main_process:
            self._model.save_pretrained(self._folder)
