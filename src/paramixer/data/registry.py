"""The tasks by name. A module in ``data/tasks`` with a tuple ``TASKS`` of definitions is all that a task needs."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import os
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import paramixer.data.tasks
from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.progress import Progress, no_progress
from paramixer.data.task import Task


@cache
def definitions() -> dict[str, Definition]:
    """Return the definition of every task by name."""
    by_name: dict[str, Definition] = {}
    for module in sorted(pkgutil.iter_modules(paramixer.data.tasks.__path__), key=lambda module: module.name):
        for definition in getattr(importlib.import_module(f"paramixer.data.tasks.{module.name}"), "TASKS", ()):
            by_name[definition.name] = definition
    return by_name


def find_local(name: str) -> Path | None:
    """Return the file or folder in PARAMIXER_DATA that has the task's name; None if there is none."""
    folder = os.environ.get("PARAMIXER_DATA")
    paths = sorted(Path(folder).glob(f"{name}*")) if folder else []
    place = next((path for path in paths if path.name.split(".")[0] == name), None)
    inside = list(place.iterdir()) if place is not None and place.is_dir() else []
    # A folder with a single file stands for the file.
    return inside[0] if len(inside) == 1 and inside[0].is_file() else place


def load(
    name: str | Path,
    source: str | Path | None = None,
    length: int | None = None,
    seed: int = 0,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> Task:
    """Return a task with its splits; its data is prepared on the first call.

    >>> import paramixer as pm
    >>> task = pm.data.load("order", length=32)
    >>> inputs, target = task.train[7]

    Args:
        name: one of :func:`definitions`, or a file of one's own, which is the task "own" with that source.
        source: a file or folder with the data; by default what PARAMIXER_DATA has under the task's name.
        length: N; by default the task's own. Longer sequences are cut.
        seed: of generated data, and of the random order in which splits are cut.
        progress: shows progress while data is prepared; see ``paramixer.data.progress``.
        options: the task's own settings.

    Raises:
        DataError: a setting or the data cannot be used. Settings are checked before anything is read or written.
    """
    known, name = definitions(), str(name)
    if name not in known:
        if source is None and Path(name).exists():
            return load("own", name, length, seed, progress=progress, **options)
        tasks = [task for task in known if task != "own"]
        close = difflib.get_close_matches(name, tasks, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(tasks)}, or name your file"
        raise DataError(f"there is no task and no file {name!r}; {hint}")
    definition = known[name]
    if source is None and not definition.generated:
        source = find_local(name)
    given: dict[str, Any] = {"seed": check_integer("seed", seed), "progress": progress, **options}
    if length is not None:
        given["length"] = check_integer("length", length, 2)
    if source is not None:
        given["source"] = Path(source)
    for option in given:
        if option not in definition.options:
            accepted = ", ".join(keyword for keyword in definition.options if keyword != "progress")
            asked = f"task {name!r}" if name != "own" else "your file" if source is None else Path(source).name
            raise DataError(f"{asked} takes no {option}; it takes {accepted}")
    if name == "own" and source is None:
        raise DataError(f"there is no file to read; name {definition.origin}")
    if not definition.generated and source is None:
        raise DataError(f"task {name!r} needs a source: {definition.origin}; give it with --source PATH")
    request = {key: _describe(value) for key, value in given.items() if key != "progress"}
    return dataclasses.replace(definition.load(**given), request={"task": name, "data": request})


def _describe(value: Any) -> Any:
    """Return a path as a text that means the same in every working directory; anything else as it is."""
    return str(value.absolute()) if isinstance(value, Path) else value
