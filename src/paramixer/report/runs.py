"""A run as a reporter finds it: its record, its curves, and its model and data as far as they are there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from paramixer.data.task import Task
from paramixer.training.command import load_task, read_options
from paramixer.training.factory import Model, load_model
from paramixer.training.run_folder import NO_MODEL, RunFolder

# What a page needs of a record, and what it must be.
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "finished": bool,
    "task": str,
    "fingerprint": str,
    "model": dict,
    "training": dict,
    "machine": dict,
    "parameters": int,
    "seconds": (int, float),
    "tokens": int,
    "peak_memory": int,
}


@dataclass(frozen=True)
class OpenedRun:
    """One run."""

    name: str
    """The folder's name."""
    path: Path
    """The folder."""
    config: dict[str, Any]
    """What it was started with."""
    record: dict[str, Any]
    """What is written down about it."""
    lines: list[dict[str, Any]]
    """Its metrics."""
    model: Model | None
    """The best model so far; None where nothing was evaluated yet."""
    task: Task | None
    """Its data; None where it is not at hand."""
    missing: tuple[str, ...]
    """Why model or data are not there."""


def open_run(path: Path, console: Console) -> OpenedRun:
    """Read a run; what cannot be had is left out with a word, except for the run itself."""
    if not path.is_dir():
        raise FileNotFoundError(f"there is no run folder {path}")
    folder = RunFolder(path)
    config, record, lines = folder.read_config(), folder.read_record(), _lines(folder)
    for name, kinds in _FIELDS.items():
        if not isinstance(record.get(name), kinds):
            raise ValueError(f"{folder.record} is damaged: its {name} is {record.get(name)!r}")
    missing = []
    model = task = None
    try:
        if folder.model.is_dir():
            model = load_model(folder.model)
        else:
            missing.append(NO_MODEL)
    except (OSError, ValueError) as error:
        missing.append(f"The model cannot be read: {error}.")
    try:
        task = load_task(read_options(config), console)
    except (OSError, ValueError) as error:
        missing.append(f"The data is not at hand: {error}.")
    if task is not None and task.fingerprint != record["fingerprint"]:
        missing.append("The data has changed since the run was trained; nothing is shown of it.")
        task = None
    return OpenedRun(path.resolve().name, path, config, record, lines, model, task, tuple(missing))


def _lines(folder: RunFolder) -> list[dict[str, Any]]:
    try:
        lines = folder.lines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{folder.metrics} is damaged: {error}") from error
    for number, line in enumerate(lines, 2):
        # JSON has no other numbers than these, and true and false, which Python takes for some.
        right = isinstance(line, dict) and isinstance(line.get("step"), int) and isinstance(line.get("kind"), str)
        if not right or any(not isinstance(line[name], int | float) for name in line if name != "kind"):
            raise ValueError(f"{folder.metrics}, line {number}: {str(line)[:80]!r} is no line of metrics")
    return lines
