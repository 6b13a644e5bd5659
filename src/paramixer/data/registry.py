"""The tasks by name. A module in ``data/tasks`` with a tuple ``TASKS`` of definitions is all that a task needs."""

from __future__ import annotations

import dataclasses
import difflib
import glob
import importlib
import os
import pkgutil
from collections.abc import Sequence
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
    name: str | Path | Sequence[str | Path],
    source: str | Path | Sequence[str | Path] | None = None,
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
        name: one of :func:`definitions`, or a file of one's own, which is the task "own" with that source; also several
            files, or a pattern such as ``part*.csv``.
        source: a file or folder with the data; by default what PARAMIXER_DATA has under the task's name.
        length: N; by default the task's own. Longer sequences are cut.
        seed: of generated data, and of the random order in which splits are cut.
        progress: shows progress while data is prepared; see ``paramixer.data.progress``.
        options: the task's own settings.

    Raises:
        DataError: a setting or the data cannot be used. Settings are checked before anything is read or written.
    """
    if not isinstance(name, str | Path):
        return load("own", name, length, seed, progress=progress, **options)
    known, name = definitions(), str(name)
    if name not in known:
        if source is None and is_own_file(name):
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
        given["source"] = _find_source(name, source)
    for option in given:
        if option not in definition.options:
            accepted = ", ".join(keyword for keyword in definition.options if keyword != "progress")
            path = given.get("source")
            asked = f"task {name!r}" if name != "own" else path.name if isinstance(path, Path) else "your file"
            raise DataError(f"{asked} takes no {option}; it takes {accepted}")
    if name == "own" and source is None:
        raise DataError(f"there is no file to read; name {definition.origin}")
    if not definition.generated and source is None:
        raise DataError(f"task {name!r} needs a source: {definition.origin}; give it with --source PATH")
    request = {key: _describe(value) for key, value in given.items() if key != "progress"}
    return dataclasses.replace(definition.load(**given), request={"task": name, "data": request})


def is_own_file(name: str) -> bool:
    """Return whether what stands in the place of a task's name is a file, a folder or a pattern of files."""
    return name not in definitions() and (Path(name).exists() or glob.has_magic(name))


def _find_source(name: str, source: str | Path | Sequence[str | Path]) -> Path | tuple[Path, ...]:
    if isinstance(source, str | Path):
        return Path(source)
    if name != "own" and len(source) != 1:
        raise DataError(f"task {name!r} has one source, a file or folder; {len(source)} were given")
    return Path(source[0]) if len(source) == 1 else tuple(map(Path, source))


def _describe(value: Any) -> Any:
    """Return paths as texts that mean the same in every working directory; anything else as it is."""
    if isinstance(value, tuple):
        return [_describe(part) for part in value]
    return str(value.absolute()) if isinstance(value, Path) else value
