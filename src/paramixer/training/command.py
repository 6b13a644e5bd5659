"""``paramixer train`` and ``paramixer evaluate``: choose, print what was chosen, run."""

# No postponed annotations here: the command line reads the fields' types.
import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from paramixer import machine
from paramixer.baselines import registry
from paramixer.data import registry as tasks
from paramixer.data.command import TaskOptions, print_summary
from paramixer.data.progress import counted
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.recipes.presets import quick, recipe
from paramixer.training.batches import collate_for
from paramixer.training.closed_form import fit_ngrams
from paramixer.training.distributed import accelerator
from paramixer.training.factory import Model, config_for, count_parameters, load_model, model_for
from paramixer.training.fit import Interrupted, fit
from paramixer.training.inference import answers
from paramixer.training.metrics import measured
from paramixer.training.options import TrainingOptions
from paramixer.training.progress import Display, Shown, Silent
from paramixer.training.record import Outcome
from paramixer.training.run_folder import RunFolder

# Passes over the data along which the quick recipe's step size falls where nobody says when to stop, and steps that
# they make at least, unless the paper has fewer passes.
_QUICK_EPOCHS, _QUICK_STEPS = 20, 2000


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TrainingOptions, TaskOptions):
    """Train a model on a task or on a file of your own."""

    task: str | None = None
    """A task's name, or a file of your own."""
    out: Path | None = None
    """The run folder; None for a new one below runs/."""
    resume: Path | None = None
    """Go on with the run in this folder; of all other flags only epochs, steps and minutes are heard then."""
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of the model's config; the preset's where nothing is said."""
    recipe: Literal["paper", "quick"] | None = None
    """The paper's start and step sizes, or those that learn in minutes; None for the paper's on its tasks, and for the
    quick ones on a file of your own. What else is said comes first."""
    match: Literal["parameters"] | None = None
    """Size a rival to as many parameters as Paramixer has on the task."""


@dataclass(frozen=True)
class EvaluateOptions:
    """Measure a run's model once more."""

    run: Path
    """The run folder."""
    split: Literal["validation", "test"] = "test"
    """On which split."""
    batch: int = 32
    """Sequences at a time."""


def train(options: TrainOptions, console: Console, display: Display | None = None, test: bool = True) -> Outcome:
    """``paramixer train``; the display shows progress in place of the console's own, and test may be left alone."""
    processes = accelerator()
    if not processes.is_main_process:
        console = Console(quiet=True)
    resume = options.resume is not None
    if options.resume is not None:
        folder = RunFolder(options.resume)
        deaf = sorted(set(document(options)) - {"epochs", "steps", "minutes"})
        if deaf:
            raise ValueError(
                f"a resumed run keeps its settings; of {', '.join(deaf)} nothing would be heard: leave them out, "
                "or start a new run (epochs, steps and minutes may be given)"
            )
        known = folder.read_config()
        said = {name: value for name in ("epochs", "steps", "minutes") if (value := getattr(options, name)) is not None}
        options = read_options(known | said)
        if folder.record.is_file() and folder.read_record()["finished"] and not said:
            raise ValueError(f"{folder.path} is finished; give more --steps, --epochs or --minutes to go on")
    else:
        folder = RunFolder(options.out or _new_folder(options.task))
        if folder.path.exists() and not folder.path.is_dir():
            raise NotADirectoryError(f"--out {folder.path} is a file; give a folder")
        if folder.config.exists():
            raise ValueError(f"there is a run in {folder.path} already; --resume it, or choose another --out")
    # Nobody writes before everybody has looked.
    processes.wait_for_everyone()
    if (name := options.model.get("mixer", registry.OWN)) != registry.OWN:
        registry.baseline(name).check()
    if options.task is None:
        raise ValueError("name a task or a file to train on; paramixer data list shows the tasks")
    task = load_task(options, console)
    print_summary(task, console)
    options = hastened(options, task)
    config = config_for(task, options.model, options.match is not None)
    model = model_for(config, torch.Generator().manual_seed(options.seed))
    _print_chosen(model, folder, console)
    training = TrainingOptions(
        **{name.name: getattr(options, name.name) for name in dataclasses.fields(TrainingOptions)}
    )
    display = display or (Silent() if console.quiet else Shown(console))
    if not isinstance(model, Paramixer):
        if resume:
            raise ValueError(f"{folder.path} is fitted in one go; start it anew instead of resuming it")
        return fit_ngrams(config, task, folder.path, seed=options.seed, display=display, started_with=document(options))
    try:
        return fit(
            model,
            task,
            training,
            folder=folder.path,
            seed=options.seed,
            resume=resume,
            display=display,
            started_with=document(options),
            test=test,
        )
    except Interrupted as wish:
        raise Interrupted(f"stopped by {wish}; go on with: paramixer train --resume {folder.path}") from None


def hastened(options: TrainOptions, task: Task) -> TrainOptions:
    """The options with the quick recipe's where nothing was said, if that is wanted; the same again for the result."""
    wanted = options.recipe or ("quick" if task.name == "own" else "paper")
    if wanted == "paper" or options.model.get("mixer", registry.OWN) != registry.OWN:
        return options
    found = quick(task.preset, task.length)
    training: dict[str, Any] = {"schedule": "cosine", "warmup": 20} | found.training
    if options.epochs is None and options.steps is None and options.minutes is None:
        paper = recipe(task.preset)
        steps = math.ceil(len(task.train) / (options.batch or training.get("batch") or paper.batch))
        training["epochs"] = min(paper.epochs, max(_QUICK_EPOCHS, math.ceil(_QUICK_STEPS / steps)))
    unsaid: dict[str, Any] = {name: value for name, value in training.items() if getattr(options, name) is None}
    return dataclasses.replace(options, **unsaid, model=found.model | options.model)


def evaluate(options: EvaluateOptions, console: Console) -> dict[str, float]:
    """``paramixer evaluate``."""
    processes = accelerator()
    if not processes.is_main_process:
        console = Console(quiet=True)
    folder = RunFolder(options.run)
    task = task_of(folder, console)
    model = load_model(folder.model)
    collate = collate_for(task, model.config)
    display = Shown(console)
    with display:
        tick = display.evaluating(options.split, len(task.splits[options.split]))
        answer, targets = answers(
            processes.prepare_model(model, evaluation_mode=True),
            task.splits[options.split],
            options.batch,
            collate,
            processes,
            tick=tick,
        )
    found = measured(answer, targets, task.metric)
    numbers = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    console.print(f"{options.split}, {len(targets)} sequences: {numbers}", highlight=False)
    return found


def document(options: TrainOptions) -> dict[str, Any]:
    """What was said, as config.yaml holds it and the command line reads it back."""
    plain = {}
    for known in dataclasses.fields(options):
        value = getattr(options, known.name)
        default = known.default_factory() if callable(known.default_factory) else known.default
        if known.name not in ("out", "resume") and value != default:
            plain[known.name] = str(value) if isinstance(value, Path) else value
    return plain


def read_options(document: dict[str, Any]) -> TrainOptions:
    """What :func:`document` wrote."""
    known = {name.name for name in dataclasses.fields(TrainOptions)}
    strange = document.keys() - known
    if strange:
        raise ValueError(f"unknown settings in config.yaml: {', '.join(sorted(strange))}")
    paths = {name: Path(document[name]) for name in ("source", "labels") if document.get(name)}
    return TrainOptions(**document | paths)


def task_of(folder: RunFolder, console: Console) -> Task:
    """The task that a run was trained on, and no other."""
    task = load_task(read_options(folder.read_config()), console)
    if folder.read_record()["fingerprint"] != task.fingerprint:
        raise ValueError(f"the data has changed since {folder.path} was trained; restore it to evaluate")
    return task


def load_task(options: TrainOptions, console: Console) -> Task:
    """The task of a run, with progress."""
    assert options.task is not None
    with counted(console) as count:
        return tasks.load(options.task, count=count, **options.given())


def _print_chosen(model: Model, folder: RunFolder, console: Console) -> None:
    config, count = model.config, count_parameters(model)
    processes = accelerator()
    console.print(f"model: {_described(config)}, {count} parameters", highlight=False, soft_wrap=True)
    console.print(
        f"engine {machine.serving_backend()} on {processes.device}, {torch.get_num_threads()} threads, "
        f"{processes.num_processes} process{'es' if processes.num_processes > 1 else ''}; run folder {folder.path}",
        highlight=False,
        soft_wrap=True,
    )


def _described(config: ParamixerConfig) -> str:
    if config.mixer == registry.OWN:
        what = config.protocol.upper()
    else:
        chosen = registry.baseline(config.mixer)
        if chosen.linear:
            return chosen.title
        heads = f" with {config.heads} head{'s' if config.heads > 1 else ''}" if chosen.heads else ""
        what = f"{chosen.title}{heads}"
    blocks = f"{config.blocks} block{'s' if config.blocks > 1 else ''}"
    return f"{blocks} of {what}, channels {config.channels}, hidden {config.hidden}, pooling {config.pooling}"


def _new_folder(task: str | None) -> Path:
    name = Path(task or "run").stem
    number = 1
    while (folder := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return folder
