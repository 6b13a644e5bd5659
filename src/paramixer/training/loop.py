"""The training loop: batches, loss, step. Files, evaluations, signals and displays are callbacks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from paramixer.errors import TrainingError
from paramixer.training.batches import Batch, Step, TrainingBatches
from paramixer.training.callback import Callback, Interrupted, Progress
from paramixer.training.distributed import any_process, autocast, average_rows
from paramixer.training.optimizer import learning_rate, set_lr
from paramixer.training.options import TrainingOptions
from paramixer.training.row_sparse import clip_gradients, row_sparse_tables

# How much a step counts in the smoothed training loss.
_FORGETTING = 0.05

Loss = Callable[[Tensor, Tensor, Tensor | None, float], Tensor]


class Loop:
    """Trains a model on batches until a callback gives a reason to stop.

    Args:
        model: as prepared for the device and the processes.
        optimizer: over its parameters.
        batches: the training data.
        loss: of answers, targets, weights and label smoothing.
        options: complete training options.
        accelerator: device and processes.
        callbacks: called in this order.
        unit: what the loss is divided by before its gradient is taken, so that neither clipping nor the optimizer's
            epsilon depend on the unit of values.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: TrainingBatches,
        loss: Loss,
        options: TrainingOptions,
        accelerator: Accelerator,
        callbacks: Sequence[Callback] = (),
        unit: float = 1.0,
    ) -> None:
        self.model, self.optimizer, self.batches, self.loss, self.unit = model, optimizer, batches, loss, unit
        self.options, self.accelerator, self.callbacks = options, accelerator, tuple(callbacks)
        self.progress = Progress(batch=batches.per_step)
        self.busy = 0.0
        """Seconds spent in forward pass, backward pass and optimizer since the last reset."""
        self._since = time.monotonic()
        self._interruption: str | None = None

    def run(self) -> str:
        """Train until there is a reason to stop, and return it."""
        self._since = time.monotonic()
        self.model.train()
        for callback in self.callbacks:
            callback.on_start(self)
        while (reason := self.stop_reason()) is None:
            for step in self.batches.steps(self.progress.epoch, self.progress.position):
                self.take_step(step)
                self._advance()
                for callback in self.callbacks:
                    callback.on_step(self)
                if (reason := self.stop_reason()) is not None:
                    break
        for callback in self.callbacks:
            callback.on_end(self)
        return reason

    def take_step(self, step: Step) -> None:
        """Forward and backward pass of all parts, then one optimizer step."""
        begin = time.monotonic()
        set_lr(self.optimizer, self.learning_rate(self.progress.step))
        total = torch.zeros((), device=self.accelerator.device)
        for number, (part, weight) in enumerate(step.parts):
            last = number == len(step.parts) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.model):
                batch = part.to(self.accelerator.device)
                with autocast(self.accelerator, self.options.precision):
                    answers = call_model(self.model, batch)
                loss = self.loss(answers, batch.targets, batch.weights, self.options.label_smoothing) * weight
                self.accelerator.backward(loss / self.unit)
            total += loss.detach()
        mean = float(self.accelerator.reduce(total, "mean")) if self.accelerator.num_processes > 1 else float(total)
        if not math.isfinite(mean):
            raise TrainingError(
                f"the loss is {mean} at step {self.progress.step + 1}; try a smaller learning rate, or training.clip=1"
            )
        average_rows(row_sparse_tables(self.optimizer), self.accelerator)
        if self.options.clip:
            clip_gradients(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.loss_sum += mean
        self.progress.loss_count += 1
        smooth = self.progress.training_loss
        self.progress.training_loss = mean if smooth is None else smooth + _FORGETTING * (mean - smooth)
        self.progress.tokens += step.tokens
        self.busy += time.monotonic() - begin

    def stop_reason(self) -> str | None:
        """Return the first reason to end training; None to go on. Raises Interrupted after :meth:`interrupt`."""
        self.check_interruption()
        reasons = (callback.stop_reason(self) for callback in self.callbacks)
        return next((reason for reason in reasons if reason is not None), None)

    def interrupt(self, reason: str) -> None:
        """Stop before the next step, so that training can go on later. Safe to call from a signal handler."""
        self._interruption = reason

    @property
    def interruption(self) -> str | None:
        """Why training was asked to stop; None if it was not."""
        return self._interruption

    def check_interruption(self) -> None:
        """Let callbacks save and raise Interrupted where any process was asked to stop."""
        if any_process(self._interruption is not None, self.accelerator):
            for callback in self.callbacks:
                callback.on_interrupt(self)
            raise Interrupted(self._interruption or "another process was stopped")

    @property
    def last_step(self) -> int | None:
        """The number of steps of the run, where steps or epochs say it."""
        limits = [self.options.steps]
        if self.options.epochs is not None:
            limits.append(self.options.epochs * self.batches.steps_per_epoch)
        return min((limit for limit in limits if limit is not None), default=None)

    def seconds(self) -> float:
        """Return the time spent training, over all parts of an interrupted run."""
        return self.progress.seconds + time.monotonic() - self._since

    def restart_clock(self) -> None:
        """Put the time so far into the progress, which a checkpoint stores."""
        self.progress.seconds, self._since = self.seconds(), time.monotonic()

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return learning_rate(self.options, step, self.last_step, self._elapsed(), self.progress.cooling)

    def _elapsed(self) -> float:
        """Return the share of the minutes that has passed, where the schedule follows it; equal in all processes."""
        if self.options.minutes is None or self.options.schedule == "constant":
            return 0.0
        share = self.seconds() / (60 * self.options.minutes)
        if self.accelerator.num_processes == 1:
            return share
        return float(self.accelerator.reduce(torch.tensor(share, device=self.accelerator.device), "mean"))

    def _advance(self) -> None:
        self.progress.step += 1
        self.progress.position += 1
        if self.progress.position == self.batches.steps_per_epoch:
            self.progress.epoch += 1
            self.progress.position = 0


def call_model(model: nn.Module, batch: Batch) -> Tensor:
    """Return the model's answers to a batch."""
    answers: Tensor = model(batch.inputs) if batch.lengths is None else model(batch.inputs, batch.lengths)
    return answers
