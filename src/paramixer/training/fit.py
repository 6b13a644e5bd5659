"""Train a model on a task: learn on train, choose on validation, evaluate test once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch

from paramixer.data.task import Task
from paramixer.errors import TrainingError
from paramixer.nn.model import Paramixer
from paramixer.nn.pretrained import PretrainedModel
from paramixer.recipes import read_recipe
from paramixer.training.assessment.baseline import Baseline
from paramixer.training.assessment.calibration import measure_temperature
from paramixer.training.assessment.metrics import compute_loss
from paramixer.training.assessment.verdict import score_test
from paramixer.training.batches import TrainingBatches, build_collate
from paramixer.training.callback import Callback
from paramixer.training.callbacks.checkpoint import Checkpoints, find_latest
from paramixer.training.callbacks.evaluation import BestInFolder, BestInMemory, Evaluation
from paramixer.training.callbacks.interruption import interrupt_on_signal
from paramixer.training.callbacks.metrics_log import MetricsLog
from paramixer.training.callbacks.progress import Display
from paramixer.training.callbacks.stopping import Stopping
from paramixer.training.callbacks.tensorboard import TensorBoard
from paramixer.training.distributed import build_accelerator, prepare_model
from paramixer.training.factory import count_parameters
from paramixer.training.loop import Loop
from paramixer.training.memory import check_step
from paramixer.training.optimizer import ParameterGroup, build_optimizer, describe_groups
from paramixer.training.options import TrainingOptions, parse_goal
from paramixer.training.recipe import (
    PARAMIXER,
    Resolved,
    check_match,
    describe_config,
    describe_options,
    recipe_of,
    resolve_training,
)
from paramixer.training.runs.baseline_file import read_baseline, write_answers
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.record import Outcome, build_record
from paramixer.training.weights import judge_classes, training_weights


def fit(
    model: PretrainedModel,
    task: Task,
    options: TrainingOptions | Resolved | None = None,
    *,
    recipe: str | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    display: Display | None = None,
    settings: dict[str, Any] | None = None,
    parameter_groups: Sequence[ParameterGroup] | None = None,
    baseline: Baseline | None = None,
    test: bool = True,
) -> Outcome:
    """Train a model on a task; it ends with the weights that are best on validation, or later ones as good.

    Args:
        model: is trained in place.
        task: from :func:`paramixer.data.load`.
        options: overrule the recipe; or complete settings from :func:`paramixer.resolve`.
        recipe: a recipe's name or file; by default "default", and "paper" for the paper's network and baselines.
        folder: the run folder for record, metrics, checkpoints and the best model; None to write nothing.
        seed: of dropout and of the order of the training data.
        resume: go on from the newest checkpoint in the folder.
        callbacks: called after the loop's own.
        display: shows progress; nothing by default.
        settings: written to config.yaml and to the record.
        parameter_groups: groups of the model's parameters, as torch's optimizers take them; ``lr_factor`` scales the
            learning rate of a group, and what is in no group is not trained. To resume, pass them again.
        baseline: of :func:`paramixer.training.assessment.baseline.fit_baseline`, for record and verdict. A run that is
            resumed keeps the one that it was started with.
        test: whether the model is evaluated on test in the end.
    """
    check_match(model.config, task)
    if isinstance(options, Resolved):
        complete, recipe, init = options.training, options.recipe, dataclasses.asdict(options.init)
    else:
        recipe, init = recipe or recipe_of(model.config), {}
        complete = resolve_training(task, read_recipe(recipe, task.preset), options)
    task = judge_classes(task, complete.balance)
    if complete.until is not None and (name := parse_goal(complete.until)[0]) != task.metric:
        raise ValueError(f"until={complete.until!r}, but the task is judged by {task.metric}, not by {name}")
    assert complete.batch is not None
    check_step(model.config, min(complete.batch, len(task.train)))
    run = _Run(model, task, complete, seed, display or Display(), tuple(callbacks), parameter_groups, baseline)
    if folder is None:
        if resume:
            raise ValueError("resume=True needs the folder of the run")
        with _seeded(seed, run.loop.accelerator.process_index):
            return run.in_memory(test)
    with _seeded(seed, run.loop.accelerator.process_index):
        if settings is None and not resume:
            settings = _describe(model, task, complete, recipe, init, seed)
        if settings and parameter_groups is not None:
            settings = {"resume_with": "pm.fit(..., parameter_groups=..., resume=True)", **settings}
        return run.in_folder(RunFolder(Path(folder)), resume, settings or {}, test)


class _Run:
    """One call of :func:`fit`: the loop and what surrounds it."""

    def __init__(
        self,
        model: PretrainedModel,
        task: Task,
        options: TrainingOptions,
        seed: int,
        display: Display,
        callbacks: tuple[Callback, ...],
        parameter_groups: Sequence[ParameterGroup] | None,
        baseline: Baseline | None,
    ) -> None:
        self.model, self.task, self.options, self.seed = model, task, options, seed
        self.display, self.callbacks, self.baseline = display, callbacks, baseline
        accelerator = build_accelerator()
        prepared = prepare_model(model, accelerator)
        if options.compile:
            prepared.compile()
        collate = build_collate(task, model.config)
        pad = task.vocabulary.pad if task.vocabulary else None
        shorter = any(bool((np.asarray(split.lengths) < task.length).any()) for split in task.splits.values())
        if shorter and pad is None and not collate.with_lengths:
            raise ValueError("sequences are shorter than N and there is no pad symbol; use padding='length'")
        assert options.batch is not None
        batches = TrainingBatches(
            sequences=task.train,
            collate=collate,
            batch=options.batch,
            accumulate=options.accumulate,
            seed=seed,
            bucket=options.bucket,
            workers=options.workers,
            rank=accelerator.process_index,
            processes=accelerator.num_processes,
            weights=training_weights(task, options.balance),
            pinned=accelerator.device.type == "cuda",
        )
        self.evaluation = Evaluation(task, collate, options.evaluate_every, display, options.balance)
        optimizer = build_optimizer(model, options, parameter_groups)
        self.groups = None if parameter_groups is None else describe_groups(model, optimizer)
        unit = model.squared_unit() if _is_default_network(model) else 1.0
        self.loop = Loop(prepared, optimizer, batches, compute_loss, options, accelerator, unit=unit)

    def in_memory(self, test: bool) -> Outcome:
        """Train without a file; Ctrl-C raises at once."""
        best = BestInMemory(self.model)
        self.loop.callbacks = (MetricsLog([]), self.evaluation, best, Stopping(self.task.metric), *self._outside())
        with self._running(nullcontext()):
            return self._finish(self.loop.run(), best, test)

    def in_folder(self, folder: RunFolder, resume: bool, settings: dict[str, Any], test: bool) -> Outcome:
        """Train with a run folder, which may exist where a run is resumed."""
        accelerator = self.loop.accelerator
        if not resume and folder.config.exists():
            raise FileExistsError(f"there is a run in {folder.path} already; resume it, or choose another folder")
        # No process writes before all have looked.
        accelerator.wait_for_everyone()
        sinks = [folder.append_line] if accelerator.is_main_process else []
        if self.options.tensorboard and accelerator.is_main_process:
            sinks.append(TensorBoard(folder.path).write)
        checkpoints = Checkpoints(self.model, folder.state)
        best = BestInFolder(self.model, self.task, folder.model)
        stopping = Stopping(self.task.metric)
        self.loop.callbacks = (MetricsLog(sinks), self.evaluation, best, checkpoints, stopping, *self._outside())
        if resume:
            settings = settings or folder.read_config()
            self._resume(folder, checkpoints)
            self.baseline = read_baseline(folder)
        if accelerator.is_main_process:
            folder.write_config(settings)
            if self.baseline is not None and not resume:
                write_answers(folder, self.baseline)
            folder.truncate_lines(self.loop.progress.lines)
            # Not finished from here on, also where a finished run is extended.
            folder.write_record(self._record(folder, settings, None))
        with self._running(interrupt_on_signal(self.loop)):
            try:
                reason = self.loop.run()
            except TrainingError as error:
                newest = find_latest(folder.state)
                where = f"the last good state is {newest}" if newest else "nothing had been saved yet"
                raise TrainingError(f"{error}; {where}") from None
            accelerator.wait_for_everyone()
            outcome = self._finish(reason, best, test)
            if accelerator.is_main_process:
                folder.write_record(self._record(folder, settings, outcome))
            return outcome

    def _outside(self) -> tuple[Callback, ...]:
        return (self.display, *self.callbacks)

    @contextmanager
    def _running(self, signals: Any) -> Iterator[None]:
        was_deterministic = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(self.options.deterministic or was_deterministic)
        try:
            with self.display, signals:
                yield
        finally:
            torch.use_deterministic_algorithms(was_deterministic)

    def _resume(self, folder: RunFolder, checkpoints: Checkpoints) -> None:
        record = folder.read_record()
        fingerprint = record["fingerprint"]
        if fingerprint != self.task.fingerprint:
            raise ValueError(
                f"the data has changed since {folder.path} was started (fingerprint {self.task.fingerprint[:16]}, "
                f"then {fingerprint[:16]}); restore it, or start a new run"
            )
        if record.get("parameter_groups") != self.groups:
            raise ValueError(
                f"{folder.path} was started with other parameter_groups; pass the same to resume it, or start a new run"
            )
        if record["finished"] and find_latest(folder.state) is None:
            raise ValueError(f"{folder.state} holds no checkpoint to resume from; start a new run")
        checkpoints.restore(self.loop)
        progress, per_step = self.loop.progress, self.loop.batches.per_step
        if progress.batch != per_step:
            raise ValueError(
                f"a step of {folder.path} had {progress.batch} sequences and would now have {per_step} "
                f"({self.loop.accelerator.num_processes} processes); resume with as many processes as before"
            )

    def _finish(self, reason: str, best: BestInMemory | BestInFolder, test: bool) -> Outcome:
        progress = self.loop.progress
        if progress.best is None or progress.best_step is None:
            raise TrainingError(f"no evaluation gave a {self.task.metric}; is validation of one class only?")
        best.restore()
        chosen = progress.best if progress.chosen is None else progress.chosen
        outcome = Outcome(self.task.metric, chosen, {}, progress.step, progress.best_step, reason)
        outcome = dataclasses.replace(outcome, temperature=self._calibrate(best))
        if test:
            answers, targets = self.evaluation.predict(self.loop, self.task.test, "test")
            outcome = score_test(
                outcome,
                self.task,
                answers,
                targets,
                self.options.balance,
                self.baseline,
                overfitting=progress.overfitting is not None,
            )
        self.display.on_outcome(outcome)
        return outcome

    def _calibrate(self, best: BestInMemory | BestInFolder) -> float:
        """Make the default network as sure as it is right on validation; return its temperature."""
        if self.task.target != "class" or not _is_default_network(self.model):
            return 1.0
        temperature = measure_temperature(*self.evaluation.predict(self.loop, self.task.validation, "validation"))
        if temperature > 1:
            self.model.soften(temperature)
            best.keep(self.loop)
        return temperature

    def _record(self, folder: RunFolder, settings: dict[str, Any], outcome: Outcome | None) -> dict[str, Any]:
        described: dict[str, Any] = {name: settings[name] for name in ("recipe", "init") if name in settings}
        if self.groups is not None:
            described["parameter_groups"] = self.groups
        return build_record(
            self.task,
            self.model.config,
            {**described, "training": dataclasses.asdict(self.options)},
            parameters=count_parameters(self.model),
            seed=self.seed,
            processes=self.loop.accelerator.num_processes,
            device=self.loop.accelerator.device,
            seconds=self.loop.seconds(),
            tokens=self.loop.progress.tokens,
            validations=[line for line in folder.read_lines() if line["kind"] == "validation"],
            outcome=outcome,
            baseline=self.baseline,
        )


def _is_default_network(model: PretrainedModel) -> TypeGuard[Paramixer]:
    """Return whether the model is ours: the paper's network is trained as the paper has it, and baselines likewise."""
    return isinstance(model, Paramixer) and model.config.layer == "prenorm"


def _describe(
    model: PretrainedModel, task: Task, options: TrainingOptions, recipe: str, init: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Return the settings of a run that starts from a model and a task, as the command line reads them."""
    document = {**task.request, "seed": seed, "recipe": recipe}
    if init:
        document["init"] = init
    system = getattr(model.config, "model", PARAMIXER)
    if system != PARAMIXER:
        document["system"] = system
    return {**document, "model": describe_config(model.config), "training": describe_options(options)}


@contextmanager
def _seeded(seed: int, process: int) -> Iterator[None]:
    """Seed torch's generator, and leave the caller's random numbers alone."""
    with torch.random.fork_rng():
        # Processes must not drop the same units of their different sequences.
        torch.manual_seed(seed + (process << 32))
        yield
