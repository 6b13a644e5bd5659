"""Which tasks there are. A module of this package with a tuple ``TASKS`` of definitions is all that a task needs."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import paramixer.data.tasks
from paramixer.data.errors import DataError
from paramixer.data.progress import Counter, silent
from paramixer.data.task import Task


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A task by name, and how its data is loaded."""

    name: str
    """What users call it."""
    title: str
    """What it asks, in a few words."""
    length: str
    """N, or what it depends on."""
    classes: str
    """How many, or what is predicted instead."""
    origin: str
    """Where its data comes from: "generated", or what a user downloads."""
    load: Callable[..., Task]
    """Takes keywords: source, length, seed, count, and the task's own options."""

    @property
    def generated(self) -> bool:
        """Whether it needs no source."""
        return "source" not in self.options or self.options["source"].default is None

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The keywords that ``load`` takes."""
        return dict(inspect.signature(self.load).parameters)


@cache
def definitions() -> dict[str, Definition]:
    """Every task by name."""
    found: dict[str, Definition] = {}
    for module in sorted(pkgutil.iter_modules(paramixer.data.tasks.__path__), key=lambda module: module.name):
        for definition in getattr(importlib.import_module(f"paramixer.data.tasks.{module.name}"), "TASKS", ()):
            found[definition.name] = definition
    return found


def at_hand(name: str) -> Path | None:
    """The task's data in the folder PARAMIXER_DATA: a file or folder of the task's name; None if there is none."""
    folder = os.environ.get("PARAMIXER_DATA")
    found = sorted(Path(folder).glob(f"{name}*")) if folder else []
    place = next((path for path in found if path.name.split(".")[0] == name), None)
    inside = list(place.iterdir()) if place is not None and place.is_dir() else []
    # A folder around a single file stands for the file.
    return inside[0] if len(inside) == 1 and inside[0].is_file() else place


def load(
    name: str,
    source: str | Path | None = None,
    length: int | None = None,
    seed: int = 0,
    *,
    count: Counter = silent,
    **options: Any,
) -> Task:
    """A task with its splits, prepared if it was not before.

    >>> import paramixer as pm
    >>> task = pm.data.load("order", length=32)
    >>> inputs, target = task.train[7]

    Args:
        name: one of :func:`definitions`, or a file of one's own, which is the task "own" with that source.
        source: a file or folder with the data; without one, what PARAMIXER_DATA has under the task's name.
        length: N; by default the task's own. Longer sequences are cut.
        seed: of generated data, and of the cut between train and validation.
        count: shows progress while data is prepared; see ``paramixer.data.progress``.
        options: the task's own settings.
    """
    known = definitions()
    if name not in known:
        if source is None and Path(name).exists():
            return load("own", name, length, seed, count=count, **options)
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise DataError(f"there is no task and no file {name!r}; {hint}")
    definition = known[name]
    given: dict[str, Any] = {"seed": seed, "count": count, **options}
    if length is not None:
        if length < 2:
            raise DataError(f"length={length}; a task needs at least 2 positions")
        given["length"] = length
    if source is None and not definition.generated:
        source = at_hand(name)
    if source is not None:
        given["source"] = Path(source)
    for option in given:
        if option not in definition.options:
            takes = ", ".join(taken for taken in definition.options if taken != "count")
            raise DataError(f"task {name!r} takes no {option}; it takes {takes}")
    if not definition.generated and source is None:
        raise DataError(f"task {name!r} needs a source: {definition.origin}; give it with --source PATH")
    return definition.load(**given)
