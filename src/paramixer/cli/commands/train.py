"""``paramixer train``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from paramixer.cli.data_options import FileOptions, name_sources
from paramixer.cli.flags import Switch

_DATA, _MODEL, _TRAINING, _RUN, _SETTINGS = (
    Group.create_ordered(name) for name in ("Data", "Model", "Training", "Run", "All settings")
)


def train(
    task: Annotated[str | None, Parameter(group=_DATA)] = None,
    /,
    *files: Annotated[str, Parameter(group=_DATA)],
    source: Annotated[Path | None, Parameter(group=_DATA)] = None,
    text: Annotated[str | None, Parameter(group=_DATA)] = None,
    label: Annotated[str | None, Parameter(group=_DATA)] = None,
    weight: Annotated[str | None, Parameter(group=_DATA)] = None,
    length: Annotated[int | None, Parameter(group=_DATA)] = None,
    reading: Annotated[FileOptions | None, Parameter(name="*", show=False)] = None,
    model: Annotated[str | None, Parameter(group=_MODEL)] = None,
    recipe: Annotated[str | None, Parameter(group=_MODEL)] = None,
    epochs: Annotated[int | None, Parameter(group=_TRAINING)] = None,
    minutes: Annotated[float | None, Parameter(group=_TRAINING)] = None,
    balance: Annotated[Switch, Parameter(group=_TRAINING)] = False,
    baseline: Annotated[bool | None, Parameter(group=_TRAINING, negative="--no-baseline")] = None,
    batch: Annotated[int | None, Parameter(group=_TRAINING)] = None,
    learning_rate: Annotated[float | None, Parameter(group=_TRAINING)] = None,
    device: Annotated[Literal["cpu", "cuda"] | None, Parameter(group=_TRAINING)] = None,
    folds: Annotated[int | None, Parameter(group=_RUN)] = None,
    out: Annotated[Path | None, Parameter(group=_RUN)] = None,
    seed: Annotated[int | None, Parameter(group=_RUN)] = None,
    resume: Annotated[Path | None, Parameter(group=_RUN)] = None,
    config: Annotated[Path | None, Parameter(group=_SETTINGS)] = None,
    assignments: Annotated[list[str] | None, Parameter(name="--set", group=_SETTINGS)] = None,
    print_config: Annotated[Switch, Parameter(group=_SETTINGS)] = False,
    help_all: Annotated[Switch, Parameter(group=_SETTINGS)] = False,
) -> None:
    """Train a model on a task or on a file of your own.

    Args:
        task: A task's name (paramixer data list), or a file, a folder or a pattern of files of your own.
        files: More files of the same columns.
        source: File or folder with the data of a task.
        text: Column of the texts, sequences or lists of numbers.
        label: Column of the labels or values; in FASTA a key in the header, header:2 for its second word, or file.
        weight: Column that says how much each sequence counts in training.
        length: N, the longest sequence; longer ones are cut.
        reading: How files are read.
        model: The model to train (paramixer models). By default paramixer.
        recipe: Settings that are not given: default, paper or a YAML file. By default default, and paper for baselines.
        epochs: Passes over the training data.
        minutes: Stop after so many minutes.
        balance: Let all classes count alike in training, however many sequences each has.
        baseline: Fit a simple model beside the run. By default for files of your own.
        batch: Batch size.
        learning_rate: Learning rate.
        device: Train on cpu or cuda. By default on a GPU where there is one.
        folds: Cross-validate: so many runs, each tested on another part of the data, and their mean.
        out: The run folder. By default a new one in runs/.
        seed: Seed of the data, of the initialization and of the order of the batches.
        resume: Continue the run in this folder; beside it only more epochs, steps or minutes can be given.
        config: A YAML file with any settings; the command line overrules it.
        assignments: Set any other setting, KEY=VALUE, such as model.hidden=64; can be repeated.
        print_config: Print the resolved settings as YAML, which --config reads, and stop.
        help_all: List every setting with its default, and stop.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.cli.keys import list_keys
    from paramixer.cli.settings import merge_settings

    console = CommandConsole()
    if help_all:
        list_keys(console)
        return
    flags: dict[str, Any] = {
        "recipe": recipe,
        "system": model,
        "baseline": baseline,
        "seed": seed,
        "folds": folds,
        **name_sources(task, files, source),
        **{f"data.{name}": value for name, value in (reading.given() if reading else {}).items()},
        "data.text": text,
        "data.label": label,
        "data.weight": weight,
        "data.length": length,
        "training.epochs": epochs,
        "training.minutes": minutes,
        "training.balance": balance or None,
        "training.batch": batch,
        "training.learning_rate": learning_rate,
    }
    given = merge_settings(config, assignments or [], {key: value for key, value in flags.items() if value is not None})
    from paramixer.training.device import use_device

    with use_device(device):
        if resume is None:
            _start(given, out, print_config, console)
        else:
            _resume(resume, given, out, print_config, console)


def _start(given: dict[str, Any], out: Path | None, print_config: bool, console: Any) -> None:
    from paramixer.data.progress import show_progress
    from paramixer.data.summary_table import print_summary
    from paramixer.training.distributed import build_accelerator
    from paramixer.training.runs.folds import run_folds
    from paramixer.training.runs.run import RunSettings, check_run, describe_run, start_run

    if given.get("task") is None:
        raise ValueError("name a task or a file to train on; paramixer data list shows the tasks")
    settings = RunSettings.from_document(given)
    if print_config:
        import yaml

        print(yaml.safe_dump(describe_run(settings), sort_keys=False, allow_unicode=True), end="")
        return
    folder = check_run(settings, out)
    console.quiet = not build_accelerator().is_main_process
    with show_progress(console) as progress:
        loaded = settings.load_task(progress)
    print_summary(loaded, console)
    if settings.folds is not None and settings.fold is None:
        run_folds(settings, folder, loaded, console)
        return
    start_run(settings, folder, task=loaded, console=console)


def _resume(folder: Path, given: dict[str, Any], out: Path | None, print_config: bool, console: Any) -> None:
    from paramixer.data.progress import show_progress
    from paramixer.training.runs.folder import RunFolder
    from paramixer.training.runs.folds import run_folds
    from paramixer.training.runs.run import RunSettings, resume_run

    stops = dict(given.pop("training", {}))
    limits = {name: stops.pop(name) for name in ("epochs", "steps", "minutes") if name in stops}
    sections = {name: value for name, value in given.items() if isinstance(value, dict)}
    refused = [name for name in given if name not in sections]
    refused += [f"{section}.{name}" for section, values in sections.items() for name in values]
    refused += [f"training.{name}" for name in stops]
    refused += ["--out"] * (out is not None) + ["--print-config"] * print_config
    if refused:
        raise ValueError(
            f"--resume keeps the run's settings; remove {', '.join(refused)} "
            "(only epochs, steps and minutes can be given)"
        )
    document = RunFolder(folder).read_config()
    if document.get("folds") is None or document.get("fold") is not None:
        resume_run(folder, **limits, console=console)
        return
    if limits:
        raise ValueError(f"{folder} holds folds, whose budget stays; remove {', '.join(limits)}")
    settings = RunSettings.from_document(document)
    with show_progress(console) as progress:
        task = settings.load_task(progress)
    run_folds(settings, folder, task, console)
