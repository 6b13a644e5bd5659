"""Evaluation on validation, and the best model so far."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from paramixer.data.task import Sequences, Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.batches import Collate
from paramixer.training.callback import Callback
from paramixer.training.callbacks.progress import Display
from paramixer.training.inference import predict_split
from paramixer.training.loop import Loop
from paramixer.training.metrics import METRICS, compute_metrics
from paramixer.training.runs.folder import write_inputs


class Evaluation(Callback):
    """Evaluates the validation split every so many steps, or once per epoch, and at the end.

    Args:
        task: the data, and how it is judged.
        collate: turns items into batches.
        every: steps between evaluations; None for once per epoch.
        display: shows how far an evaluation is.
        balanced: whether the balanced accuracy is measured, too.
    """

    def __init__(
        self, task: Task, collate: Collate, every: int | None, display: Display, balanced: bool = False
    ) -> None:
        self._task, self._collate, self._every, self._display = task, collate, every, display
        self._balanced = balanced

    def on_start(self, loop: Loop) -> None:
        """Evaluate where a run was interrupted before or during an evaluation."""
        self.on_step(loop)

    def on_step(self, loop: Loop) -> None:
        """Evaluate if it is time."""
        progress = loop.progress
        due = progress.position == 0 if self._every is None else progress.step % self._every == 0
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
        improved = METRICS[self._task.metric].is_better(value, progress.best)
        if value == progress.best and progress.best_loss is not None:
            improved = loss < progress.best_loss
        if improved:
            progress.best, progress.best_loss, progress.best_step, progress.worse = value, loss, progress.step, 0
        else:
            progress.worse += 1
        progress.evaluated = progress.step
        for callback in loop.callbacks:
            callback.on_evaluation(loop, metrics, improved)


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
