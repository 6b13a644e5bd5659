"""A run from its settings to its folder: load the data, resolve, build, train; and the same again to resume it."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console

from paramixer import data, machine
from paramixer.baselines import registry
from paramixer.data.errors import DataError
from paramixer.data.folds import take_fold
from paramixer.data.progress import Progress, no_progress, show_progress
from paramixer.data.registry import is_own_file
from paramixer.data.task import Task
from paramixer.files import WriteError
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.pretrained import PretrainedModel
from paramixer.recipes import Recipe
from paramixer.training.assessment.baseline import Baseline, fit_baseline
from paramixer.training.assessment.intervals import Interval
from paramixer.training.assessment.metrics import compute_metrics
from paramixer.training.assessment.verdict import measure_intervals
from paramixer.training.batches import build_collate
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.callbacks.progress import ConsoleDisplay, Display
from paramixer.training.distributed import build_accelerator
from paramixer.training.factory import build_model, count_parameters, load_model
from paramixer.training.fit import fit
from paramixer.training.inference import predict_split
from paramixer.training.recipe import PARAMIXER, Resolved, check_settings, resolve
from paramixer.training.runs.closed_form import fit_ngrams
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.record import Outcome
from paramixer.training.sizing import describe_budget, describe_size
from paramixer.training.timing import measure_step
from paramixer.training.weights import judge_classes

_QUIET = Console(quiet=True)


class SplitMetrics(NamedTuple):
    """How a model does on a split."""

    sequences: int
    """How many there are."""
    metrics: dict[str, float]
    """Loss and metric."""
    intervals: dict[str, Interval]
    """The 95 % interval of every metric but the loss."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a user gives for a run; recipe and data complete it."""

    task: str
    """A task's name, or a file."""
    data: dict[str, Any] = field(default_factory=dict)
    """Options of :func:`paramixer.data.load`."""
    recipe: str | None = None
    """A recipe's name or file; None for "default", and for "paper" with a baseline."""
    system: str = PARAMIXER
    """"paramixer", or a baseline's name."""
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of the model's config."""
    init: dict[str, Any] = field(default_factory=dict)
    """Name and options of the initialization."""
    training: dict[str, Any] = field(default_factory=dict)
    """Fields of :class:`paramixer.TrainingOptions`."""
    seed: int = 0
    """Of generated data, splits, initial weights, dropout and order."""
    match_parameters: bool = False
    """Whether a baseline gets as many parameters as Paramixer has on the task."""
    baseline: bool | None = None
    """Whether a simple model is fitted beside the run; None for user files alone."""
    folds: int | None = None
    """How many folds cross-validation has; None for one run on the task's own splits."""
    fold: int | None = None
    """Which of the folds this run is, from 1."""
    resume_with: str | None = None
    """What goes on with a run whose initialization or parameter groups are its caller's; None for
    :func:`resume_run`."""

    def document(self) -> dict[str, Any]:
        """Return what differs from the defaults, as YAML holds it."""
        document = {}
        for known in dataclasses.fields(self):
            value = getattr(self, known.name)
            default = known.default_factory() if callable(known.default_factory) else known.default
            if value != default:
                document[known.name] = value
        document["data"] = {name: _to_plain(value) for name, value in self.data.items()}
        return {name: value for name, value in document.items() if value != {}}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> RunSettings:
        """Return the settings that :meth:`document` wrote."""
        known = {known.name for known in dataclasses.fields(cls)}
        unknown = document.keys() - known
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}; choose from {', '.join(sorted(known))}")
        if "task" not in document:
            raise ValueError("name a task or a file to train on; paramixer data list shows the tasks")
        return cls(**document)

    def check(self) -> None:
        """Raise a ValueError for settings that are wrong whatever the data is."""
        self.refuse_callers_run()
        check_settings(self.recipe, self.system, self.model, self.init, self.training)

    def refuse_callers_run(self) -> None:
        """Raise a ValueError for a run that these settings do not describe completely."""
        if self.resume_with is not None:
            raise ValueError(
                "the initialization or the parameter groups of this run are its caller's, and its settings do not hold "
                f"them; go on with {self.resume_with}"
            )

    def with_absolute_paths(self) -> RunSettings:
        """Return settings that mean the same in every working directory."""
        paths = {name: _make_absolute(self.data[name]) for name in ("source", "labels") if self.data.get(name)}
        task = str(Path(self.task).absolute()) if is_own_file(self.task) else self.task
        return dataclasses.replace(self, task=task, data={**self.data, **paths})

    def load_options(self) -> dict[str, Any]:
        """Return the options by which :func:`paramixer.data.load` loads the task."""
        return {"seed": self.seed, **self.data}

    def load_task(self, progress: Progress = no_progress) -> Task:
        """Return the data, prepared if it was not before; of a fold, split as the fold is."""
        task = data.load(self.task, progress=progress, **self.load_options())
        return task if self.fold is None else take_fold(task, self.fold, self.folds or 0, self.seed)

    def resolve(self, task: Task, recipe: Recipe | None = None) -> Resolved:
        """Return the complete settings of the run on this data, by default with the recipe that the settings name."""
        return resolve(
            task,
            recipe=recipe or self.recipe,
            system=self.system,
            model=self.model,
            init=self.init,
            training=self.training,
            match_parameters=self.match_parameters,
        )

    def complete(self, resolved: Resolved) -> RunSettings:
        """Return the same settings with everything that was resolved."""
        return dataclasses.replace(self, **resolved.document(), match_parameters=False)


def start_run(
    settings: RunSettings,
    folder: Path | None = None,
    *,
    task: Task | None = None,
    console: Console = _QUIET,
    callbacks: Sequence[Callback] = (),
    test: bool = True,
) -> Outcome:
    """Train in a new run folder.

    Args:
        settings: of the run.
        folder: where to; None for a new one below runs/.
        task: the data, where it is loaded already.
        console: shows what is chosen and how training goes.
        callbacks: called after the loop's own.
        test: whether the model is evaluated on test in the end.
    """
    run = RunFolder(check_run(settings, folder))
    accelerator = build_accelerator()
    console = console if accelerator.is_main_process else _QUIET
    # No process writes before all have looked.
    accelerator.wait_for_everyone()
    settings = settings.with_absolute_paths()
    if task is None:
        with show_progress(console) as progress:
            task = settings.load_task(progress)
    resolved = settings.resolve(task)
    return _train(settings.complete(resolved), resolved, task, run, console, callbacks, test, resume=False)


def check_run(settings: RunSettings, folder: Path | None = None) -> Path:
    """Return the folder of a new run, or raise an error for what is wrong before any data is read.

    Args:
        settings: of the run.
        folder: where to; None for a new one below runs/.
    """
    settings.check()
    if settings.system != PARAMIXER:
        registry.get(settings.system).check_installed()
    run = RunFolder(folder or _name_folder(settings))
    # The nearest folder that exists must take new ones, or the run would fail once everything else is done.
    place = next(place for place in (run.path, *run.path.absolute().parents) if place.exists())
    if not place.is_dir():
        raise NotADirectoryError(f"{run.path}: {place} is a file; give a folder to write the run to")
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(f"{run.path}: no folder can be made in {place}; give another folder to write the run to")
    if run.config.exists():
        raise FileExistsError(f"there is a run in {run.path} already; resume it, or choose another folder")
    return run.path


def resume_run(
    folder: Path,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    console: Console = _QUIET,
    callbacks: Sequence[Callback] = (),
    test: bool = True,
) -> Outcome:
    """Go on with a run, to the bit as if it had not been interrupted.

    Args:
        folder: of the run.
        epochs: overrule the run's own, as steps and minutes do.
        steps: see epochs.
        minutes: see epochs.
        console: as in :func:`start_run`.
        callbacks: as in :func:`start_run`.
        test: as in :func:`start_run`.
    """
    if not build_accelerator().is_main_process:
        console = _QUIET
    run = RunFolder(folder)
    settings = RunSettings.from_document(run.read_config())
    settings.refuse_callers_run()
    if _is_closed_form(settings.system):
        raise ValueError(f"{run.path} is fitted in one go; start a new run instead of resuming it")
    limits = {"epochs": epochs, "steps": steps, "minutes": minutes}
    given = {name: value for name, value in limits.items() if value is not None}
    record = run.read_record() if run.record.is_file() else {"finished": False}
    if steps is not None and record["finished"] and steps <= record["steps"]:
        raise ValueError(f"{run.path} has taken {record['steps']} steps already; give more than that")
    if given:
        kept = {name: value for name, value in settings.training.items() if name not in limits}
        settings = dataclasses.replace(settings, training={**kept, **given})
    elif record["finished"]:
        raise ValueError(f"{run.path} is finished; give more epochs, steps or minutes to go on")
    with show_progress(console) as progress:
        task = settings.load_task(progress)
    # The settings of a run are complete; the file of its recipe may be gone.
    resolved = settings.resolve(task, Recipe(settings.recipe or "none"))
    return _train(settings, resolved, task, run, console, callbacks, test, resume=True)


def describe_run(settings: RunSettings, progress: Progress = no_progress) -> dict[str, Any]:
    """Return the complete settings of a run without starting it."""
    settings.check()
    return settings.complete(settings.resolve(settings.load_task(progress))).document()


def open_task(folder: Path, progress: Progress = no_progress) -> Task:
    """Return the data that a run was trained on, and no other."""
    run = RunFolder(folder)
    document = run.read_config()
    if "task" not in document:
        raise ValueError(f"{run.path} was trained on data in memory, which cannot be loaded again")
    try:
        task = RunSettings.from_document(document).load_task(progress)
    except DataError as error:
        raise DataError(f"the data of {run.path} cannot be loaded: {error}") from error
    if run.read_record()["fingerprint"] != task.fingerprint:
        raise ValueError(f"the data has changed since {run.path} was trained; restore it to evaluate")
    return task


def evaluate_run(
    folder: Path,
    split: str = "test",
    *,
    batch: int = 32,
    display: Display | None = None,
    progress: Progress = no_progress,
) -> SplitMetrics:
    """Return loss and metric of a run's model on a split, and how many sequences it has.

    Args:
        folder: of the run.
        split: train, validation or test.
        batch: batch size.
        display: shows progress.
        progress: shows progress while data is prepared.
    """
    accelerator = build_accelerator()
    balanced = bool(RunFolder(folder).read_record()["training"].get("balance", False))
    task = judge_classes(open_task(folder, progress), balanced)
    model = load_model(RunFolder(folder).model)
    with display or Display() as shown:
        answers, targets = predict_split(
            accelerator.prepare_model(model, evaluation_mode=True),
            task.splits[split],
            batch,
            build_collate(task, model.config),
            accelerator,
            tick=shown.track(split, len(task.splits[split])),
        )
    metrics = compute_metrics(answers, targets, task.metric, balanced)
    return SplitMetrics(len(targets), metrics, measure_intervals(metrics, answers, targets))


def _train(
    settings: RunSettings,
    resolved: Resolved,
    task: Task,
    run: RunFolder,
    console: Console,
    callbacks: Sequence[Callback],
    test: bool,
    *,
    resume: bool,
) -> Outcome:
    display = Display() if console.quiet else ConsoleDisplay(console)
    task = judge_classes(task, resolved.training.balance)
    model = build_model(task, resolved, settings.seed)
    _print_choice(model, resolved, task, run, console)
    document = settings.document()
    if not (resume or console.quiet or _is_closed_form(resolved.system) or build_accelerator().num_processes > 1):
        seconds = measure_step(model, task, resolved.training, settings.seed)
        console.print(describe_budget(task, resolved.training, seconds), highlight=False, soft_wrap=True)
    if _is_closed_form(resolved.system):
        return fit_ngrams(model, task, run.path, seed=settings.seed, display=display, settings=document)
    baseline = None
    wanted = task.name == "own" if settings.baseline is None else settings.baseline
    if wanted and test and not resume:
        baseline = _fit_baseline(settings, resolved, task, console)
    try:
        return fit(
            model,
            task,
            resolved.training,
            folder=run.path,
            seed=settings.seed,
            resume=resume,
            callbacks=callbacks,
            display=display,
            settings=document,
            baseline=baseline,
            test=test,
        )
    except Interrupted as error:
        raise Interrupted(f"stopped by {error}; go on with: paramixer train --resume {run.path}") from None
    except WriteError as error:
        if not run.config.is_file():
            raise
        sentence = str(error).removesuffix(" and try again")
        raise WriteError(f"{sentence}, and go on with: paramixer train --resume {run.path}") from error


def _fit_baseline(settings: RunSettings, resolved: Resolved, task: Task, console: Console) -> Baseline | None:
    accelerator = build_accelerator()
    baseline = None
    if accelerator.is_main_process:
        with show_progress(console) as progress:
            baseline = fit_baseline(task, balance=resolved.training.balance, seed=settings.seed, progress=progress)
        line = f"{baseline.describe(len(task.train))} (leave it out with --no-baseline)"
        console.print(line, highlight=False, soft_wrap=True)
    accelerator.wait_for_everyone()
    return baseline


def _print_choice(model: PretrainedModel, resolved: Resolved, task: Task, run: RunFolder, console: Console) -> None:
    processes = build_accelerator()
    plural, threads = "es" if processes.num_processes > 1 else "", torch.get_num_threads()
    config = resolved.config
    if isinstance(config, ParamixerConfig) and config.layer == "prenorm":
        console.print(describe_size(task, config, resolved.training), highlight=False, soft_wrap=True)
    for line in (
        f"recipe {resolved.recipe}; model: {_describe_model(resolved)}, {count_parameters(model)} parameters",
        f"backend {machine.serving_backend(processes.device)} on {processes.device}, "
        f"{threads} thread{'s' if threads > 1 else ''}, {processes.num_processes} process{plural}; "
        f"run folder {run.path}",
    ):
        console.print(line, highlight=False, soft_wrap=True)


def _describe_model(resolved: Resolved) -> str:
    config: Any = resolved.config
    if isinstance(config, ParamixerConfig):
        name = config.protocol.upper()
    else:
        baseline = registry.get(resolved.system)
        if baseline.closed_form:
            return baseline.title
        heads = f" with {config.heads} head{'s' if config.heads > 1 else ''}" if baseline.has_heads else ""
        name = f"{baseline.title}{heads}"
    kind = "layer" if getattr(config, "layer", "paper") == "prenorm" else "block"
    blocks = f"{config.blocks} {kind}{'s' if config.blocks > 1 else ''}"
    return f"{blocks} of {name}, channels {config.channels}, hidden {config.hidden}, pooling {config.pooling}"


def _is_closed_form(system: str) -> bool:
    return system != PARAMIXER and registry.get(system).closed_form


def _name_folder(settings: RunSettings) -> Path:
    source = settings.data.get("source")
    # Several files are named for the first one.
    stem = Path(source[0] if isinstance(source, list) and source else settings.task).stem
    stem, number = re.sub(r"[*?\[\]]+", "", stem) or "files", 1
    while (folder := Path("runs") / f"{stem}-{number}").exists():
        number += 1
    return folder


def _make_absolute(path: str | Path | list[str]) -> str | list[str]:
    return [str(Path(one).absolute()) for one in path] if isinstance(path, list) else str(Path(path).absolute())


def _to_plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
