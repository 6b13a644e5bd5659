"""The training loop: learn on train, choose on validation, look at test once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paramixer.baselines import registry
from paramixer.data.rng import permutation
from paramixer.data.task import Sequences, Task
from paramixer.nn.data_dependent_init import SEQUENCES, settle
from paramixer.nn.model import Paramixer
from paramixer.recipes.presets import recipe
from paramixer.training import checkpoint
from paramixer.training.batches import Batch, collate_for, epoch_order, loaded, mine
from paramixer.training.distributed import accelerator
from paramixer.training.factory import count_parameters
from paramixer.training.inference import answers, autocast
from paramixer.training.metrics import METRICS, loss_of, measured
from paramixer.training.optimizer import optimizer_for, pace
from paramixer.training.options import TrainingOptions, goal
from paramixer.training.preprocessing import write_inputs
from paramixer.training.progress import Display, Silent
from paramixer.training.record import Outcome, run_record
from paramixer.training.run_folder import RunFolder
from paramixer.training.signals import asked_to_stop
from paramixer.training.tensorboard import Board


class TrainingError(RuntimeError):
    """Training cannot go on; says at which step and what is kept."""


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; everything is saved."""


def fit(
    model: Paramixer,
    task: Task,
    options: TrainingOptions | None = None,
    *,
    folder: str | Path,
    seed: int = 0,
    resume: bool = False,
    display: Display | None = None,
    started_with: dict[str, Any] | None = None,
    test: bool = True,
) -> Outcome:
    """Train a model on a task; the best model ends up in ``folder/model`` and in ``model``.

    Args:
        model: is trained in place.
        task: from :func:`paramixer.data.load`.
        options: by default the paper's recipe for the task's preset.
        folder: the run folder; see ``paramixer.training.run_folder``.
        seed: of dropout and of the order of the training data.
        resume: go on from the newest checkpoint in the folder instead of starting anew.
        display: shows progress; nothing by default.
        started_with: written to config.yaml.
        test: whether the model is measured on test in the end; not where a run only helps to choose.
    """
    run = _Run(model, task, options or TrainingOptions(), RunFolder(Path(folder)), seed, display or Silent())
    if not resume and run.folder.config.exists():
        raise FileExistsError(f"there is a run in {run.folder.path} already; resume it, or choose another folder")
    # Nobody writes before everybody has looked.
    run.accelerator.wait_for_everyone()
    # The caller's random numbers are left alone.
    with torch.random.fork_rng():
        # Processes must not drop the same units of their different sequences.
        torch.manual_seed(seed + (run.accelerator.process_index << 32))
        return run.whole(resume, started_with or {}, test)


def learning_rate(options: TrainingOptions, step: int, last: int | None, passed: float = 0.0) -> float:
    """The step size of a step, counted from 0, given the share of the minutes that has passed."""
    assert options.learning_rate is not None
    rate, warmup = options.learning_rate, options.warmup or 0
    if step < warmup:
        return rate * (step + 1) / warmup
    if options.schedule == "cosine":
        stepped = 0.0 if last is None else (step - warmup) / max(1, last - warmup)
        return rate * 0.5 * (1 + math.cos(math.pi * min(1.0, max(stepped, passed))))
    return rate


class _Run:
    def __init__(
        self, model: Paramixer, task: Task, options: TrainingOptions, folder: RunFolder, seed: int, display: Display
    ) -> None:
        _check_fit(model, task)
        self.options = options.resolved(recipe(task.preset))
        if options.until is not None and (name := goal(options.until)[0]) != task.metric:
            raise ValueError(f"until={options.until!r}, but {task.name} is judged by {task.metric}, not by {name}")
        if options.settle and model.config.mixer != registry.OWN:
            raise ValueError(f"settle=true, but mixer={model.config.mixer!r}; it is for Paramixer's own blocks")
        self.task, self.folder, self.seed, self.display = task, folder, seed, display
        self.accelerator = accelerator()
        self.plain = model
        self.model: nn.Module = self.accelerator.prepare_model(model)
        if options.compile:
            self.model.compile()
        self.optimizer = optimizer_for(model, self.options)
        self.metric = METRICS[task.metric]
        lengths = task.train.lengths
        self.bucket = bool(len(np.unique(lengths[:10_000])) > 1) if options.bucket is None else options.bucket
        pad = task.vocabulary.pad if task.vocabulary else None
        self.collate = collate_for(task, model.config)
        if not self.collate.with_lengths and pad is None and any(map(_shorter_than(task.length), task.splits.values())):
            raise ValueError("sequences are shorter than N and there is no pad symbol; use padding='length'")
        self.progress = checkpoint.Progress(batch=self._per_step)
        self.last_step = self._last_step()
        self._since = time.monotonic()
        self._saved_at = self._since
        self._busy, self._logged_at = 0.0, self._since
        self._stop: dict[str, str] = {}
        self._board = Board(folder.path) if options.tensorboard and self.accelerator.is_main_process else None

    @property
    def _per_step(self) -> int:
        assert self.options.batch is not None
        return int(self.options.batch * self.options.accumulate * self.accelerator.num_processes)

    @property
    def _steps_an_epoch(self) -> int:
        return math.ceil(len(self.task.train) / self._per_step)

    def _last_step(self) -> int | None:
        limits = [self.options.steps]
        if self.options.epochs is not None:
            limits.append(self.options.epochs * self._steps_an_epoch)
        known = [limit for limit in limits if limit is not None]
        return min(known) if known else None

    def whole(self, resume: bool, started_with: dict[str, Any], test: bool) -> Outcome:
        """From the beginning, or from a checkpoint, to the outcome."""
        if resume:
            self._resume()
        elif self.accelerator.is_main_process:
            self.folder.write_config(started_with)
            self.folder.keep_lines(0)
            self.folder.write_record(self._record(None))
        was = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(self.options.deterministic or was)
        try:
            with self.display, asked_to_stop() as self._stop:
                if self.options.settle and checkpoint.latest(self.folder.state) is None:
                    self._settle()
                why = self._train()
                return self._finish(why, test)
        finally:
            torch.use_deterministic_algorithms(was)

    def _resume(self) -> None:
        known = self.folder.read_record()["fingerprint"]
        if known != self.task.fingerprint:
            raise ValueError(
                f"the data has changed since {self.folder.path} was started (fingerprint {self.task.fingerprint[:16]}, "
                f"then {known[:16]}); restore it, or start a new run"
            )
        newest = checkpoint.latest(self.folder.state)
        if newest is not None:
            self.progress = checkpoint.read(newest, self.plain, self.optimizer, self.accelerator.process_index)
            if self.progress.batch != self._per_step:
                raise ValueError(
                    f"a step of {self.folder.path} was {self.progress.batch} sequences and would now be "
                    f"{self._per_step} ({self.accelerator.num_processes} processes); "
                    "resume with as many processes as before"
                )
        if self.accelerator.is_main_process:
            checkpoint.tidy(self.folder.state)
            self.folder.keep_lines(self.progress.lines)
        self.accelerator.wait_for_everyone()

    def _settle(self) -> None:
        some = permutation(len(self.task.train), self.seed)[:SEQUENCES]
        batch = next(loaded(self.task.train, [some], self.collate))
        device = self.accelerator.device
        lengths = None if batch.lengths is None else batch.lengths.to(device)
        tick = self.display.evaluating("settling", self.plain.config.blocks)
        settle(self.plain, batch.inputs.to(device), lengths, tick)

    def _train(self) -> str:
        self._since = self._saved_at = self._logged_at = time.monotonic()
        self.model.train()
        self.display.begin(self.last_step, self.options.epochs, self.task.metric)
        if self._due():
            # The run was stopped while it looked at validation.
            self._evaluate()
        while True:
            why = self._why_stop()
            if why is not None:
                return why
            for batch, micros in self._steps():
                begin = time.monotonic()
                self._step(batch, micros)
                self._busy += time.monotonic() - begin
                self.progress.position += 1
                if self.progress.position == self._steps_an_epoch:
                    self.progress.epoch += 1
                    self.progress.position = 0
                self._after_step()
                why = self._why_stop()
                if why is not None:
                    return why

    def _steps(self) -> Iterator[tuple[NDArray[np.int64], list[tuple[Batch, float]]]]:
        """The steps that are left of this epoch: the whole batch's indices, and this process's parts with weights."""
        lengths = np.asarray(self.task.train.lengths)
        batches = epoch_order(lengths, self._per_step, self.seed, self.progress.epoch, self.bucket)
        left = batches[self.progress.position :]
        parts = [self._parts(batch) for batch in left]
        flat = [indices for part in parts for indices, _ in part]
        stream = loaded(self.task.train, flat, self.collate, self.options.workers)
        for batch, part in zip(left, parts, strict=True):
            yield batch, [(next(stream), weight) for _, weight in part]

    def _parts(self, batch: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], float]]:
        processes = self.accelerator.num_processes
        share = mine(batch, self.accelerator.process_index, processes)
        if not len(share):
            # Every process must take part in a step; this one with nothing that counts.
            return [(batch[:1], 0.0)]
        cut = [part for part in np.array_split(share, self.options.accumulate) if len(part)]
        # Processes' gradients are averaged; so weighted, the average is that of the whole batch.
        return [(part, len(part) * processes / len(batch)) for part in cut]

    def _step(self, batch: NDArray[np.int64], micros: list[tuple[Batch, float]]) -> None:
        pace(self.optimizer, self._rate(self.progress.step))
        total = torch.zeros((), device=self.accelerator.device)
        for number, (micro, weight) in enumerate(micros):
            last = number == len(micros) - 1
            with self.accelerator.no_sync(self.model) if not last else nullcontext():
                with autocast(self.accelerator, self.options.precision):
                    answer = self._answer(micro)
                loss = loss_of(answer, micro.targets.to(answer.device)) * weight
                self.accelerator.backward(loss)
            total += loss.detach()
        mean = float(self.accelerator.reduce(total, "mean")) if self.accelerator.num_processes > 1 else float(total)
        if not math.isfinite(mean):
            kept = checkpoint.latest(self.folder.state)
            where = f"the last good state is {kept}" if kept else "nothing had been saved yet"
            raise TrainingError(
                f"the loss is {mean} at step {self.progress.step + 1}; {where}; "
                "try a smaller --learning_rate, a --clip, or --model.init identity"
            )
        if self.options.clip:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.step += 1
        self.progress.loss_sum += mean
        self.progress.loss_count += 1
        self.progress.tokens += int(np.asarray(self.task.train.lengths)[batch].sum())

    def _answer(self, batch: Batch) -> Tensor:
        inputs = batch.inputs.to(self.accelerator.device)
        found: Tensor = (
            self.model(inputs)
            if batch.lengths is None
            else self.model(inputs, batch.lengths.to(self.accelerator.device))
        )
        return found

    def _after_step(self) -> None:
        progress = self.progress
        if progress.step % self.options.log_every == 0:
            self._log_training()
        self.display.step(progress)
        if self._due():
            self._evaluate()
        elif time.monotonic() - self._saved_at > 60 * self.options.save_every:
            self._save()

    def _due(self) -> bool:
        """Whether this step is one to look at validation, and nobody has."""
        every, progress = self.options.evaluate_every, self.progress
        now = progress.position == 0 if every is None else progress.step % every == 0
        return now and progress.step not in (0, progress.evaluated)

    def _log_training(self) -> None:
        progress = self.progress
        if not progress.loss_count:
            return
        now = time.monotonic()
        line = {
            "kind": "train",
            "step": progress.step,
            "epoch": progress.epoch,
            "loss": progress.loss_sum / progress.loss_count,
            "learning_rate": self._rate(progress.step - 1),
            "seconds": self._seconds(),
            "tokens": progress.tokens,
            # The share of the time that went into forward pass, backward pass and optimizer.
            "busy": self._busy / max(now - self._logged_at, 1e-9),
        }
        self._busy, self._logged_at = 0.0, now
        progress.loss_sum, progress.loss_count = 0.0, 0
        self._add(line)

    def _evaluate(self) -> None:
        found = self._measure(self.task.validation, "validation")
        progress, value, loss = self.progress, found[self.task.metric], found["loss"]
        better = self.metric.better(value, progress.best)
        if value == progress.best and progress.best_loss is not None:
            better = loss < progress.best_loss
        if better:
            progress.best, progress.best_loss, progress.best_step, progress.worse = value, loss, progress.step, 0
        else:
            progress.worse += 1
        progress.evaluated = progress.step
        self._add(
            {
                "kind": "validation",
                "step": progress.step,
                "epoch": progress.epoch,
                **found,
                "best": better,
                "seconds": self._seconds(),
            }
        )
        if better and self.accelerator.is_main_process:
            self.plain.save_pretrained(self.folder.model)
            write_inputs(self.folder.model, self.task)
        self._save()
        self.display.evaluated(progress, found)

    def _measure(self, split: Sequences, name: str) -> dict[str, float]:
        assert self.options.batch is not None
        shown = self.display.evaluating(name, len(split))

        def tick(done: int) -> None:
            shown(done)
            # Of several processes the others would wait for this one's answers.
            if self._stop and self.accelerator.num_processes == 1:
                self._halt()

        answer, targets = answers(
            self.model,
            split,
            self.options.batch,
            self.collate,
            self.accelerator,
            self.options.workers,
            self.options.precision,
            tick,
        )
        return measured(answer, targets, self.task.metric)

    def _add(self, line: dict[str, Any]) -> None:
        if self.accelerator.is_main_process:
            self.folder.add_line(line)
        if self._board is not None:
            self._board.add(line)
        self.progress.lines += 1

    def _save(self) -> None:
        self.progress.seconds, self._since = self._seconds(), time.monotonic()
        random = {device: self._from_everyone(row) for device, row in checkpoint.random_state().items()}
        if self.accelerator.is_main_process:
            checkpoint.write(self.folder.state, self.progress, self.plain, self.optimizer, random)
        self.accelerator.wait_for_everyone()
        self._saved_at = time.monotonic()

    def _from_everyone(self, row: Tensor) -> Tensor:
        rows: Tensor = self.accelerator.gather(row[None].to(self.accelerator.device))
        return rows.cpu()

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self._since

    def _rate(self, step: int) -> float:
        return learning_rate(self.options, step, self.last_step, self._passed())

    def _passed(self) -> float:
        """The share of the minutes asked for that is gone, where the schedule follows them; alike for all processes."""
        if self.options.minutes is None or self.options.schedule == "constant":
            return 0.0
        share = self._seconds() / (60 * self.options.minutes)
        if self.accelerator.num_processes == 1:
            return share
        return float(self.accelerator.reduce(torch.tensor(share, device=self.accelerator.device), "mean"))

    def _halt(self) -> NoReturn:
        self._save()
        raise Interrupted(self._stop.get("signal", "another process was stopped"))

    def _why_stop(self) -> str | None:
        """Why training should end now; None to go on."""
        if self._anyone(bool(self._stop)):
            self._halt()
        progress, options = self.progress, self.options
        if self.last_step is not None and progress.step >= self.last_step:
            return "all steps are done"
        if options.minutes is not None and self._anyone(self._seconds() > 60 * options.minutes):
            return f"{options.minutes:g} minutes are over"
        if options.until is not None and progress.best is not None:
            name, wanted = goal(options.until)
            if name == self.task.metric and self.metric.reached(progress.best, wanted):
                return f"validation reached {name} = {progress.best:.4g}"
        if options.patience is not None and progress.worse >= options.patience:
            return f"{progress.worse} evaluations brought nothing better"
        return None

    def _anyone(self, flag: bool) -> bool:
        """Whether it holds for any process: all must decide alike."""
        if self.accelerator.num_processes == 1:
            return flag
        votes = torch.tensor(float(flag), device=self.accelerator.device)
        return float(self.accelerator.reduce(votes, "sum")) > 0

    def _finish(self, why: str, test: bool) -> Outcome:
        self._log_training()
        if self.progress.evaluated != self.progress.step:
            self._evaluate()
        self.accelerator.wait_for_everyone()
        if self.progress.best is None or self.progress.best_step is None:
            raise TrainingError(f"no evaluation gave a {self.task.metric}; is validation of one class only?")
        best = Paramixer.from_pretrained(self.folder.model)
        self.plain.load_state_dict(best.state_dict())
        found = self._measure(self.task.test, "test") if test else {}
        outcome = Outcome(self.task.metric, self.progress.best, found, self.progress.step, self.progress.best_step, why)
        if self.accelerator.is_main_process:
            self.folder.write_record(self._record(outcome))
        self.display.finished(outcome)
        return outcome

    def _record(self, outcome: Outcome | None) -> dict[str, Any]:
        return run_record(
            self.task,
            self.plain.config,
            asdict(self.options),
            parameters=count_parameters(self.plain),
            seed=self.seed,
            processes=self.accelerator.num_processes,
            seconds=self._seconds(),
            tokens=self.progress.tokens,
            validations=[line for line in self.folder.lines() if line["kind"] == "validation"],
            outcome=outcome,
        )


def _check_fit(model: Paramixer, task: Task) -> None:
    """The model answers what the task asks."""
    config = model.config
    symbols = None if task.vocabulary is None else len(task.vocabulary)
    kinds = {
        "target": (config.target, task.target),
        "outputs": (config.outputs, task.outputs),
        "features": (config.features, task.features),
    }
    for what, (own, wanted) in kinds.items():
        if own != wanted:
            raise ValueError(f"the model has {what}={own}, the task {task.name} needs {what}={wanted}")
    if symbols is not None and (config.vocabulary or 0) < symbols:
        raise ValueError(f"the model knows {config.vocabulary} symbols, the task {task.name} has {symbols}")


def _shorter_than(length: int) -> Any:
    return lambda split: bool((np.asarray(split.lengths) < length).any())
