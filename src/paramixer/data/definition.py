"""The definition of a task: its name, what it asks, and the function that loads its data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from paramixer.data.task import Task


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A task by name, and how its data is loaded."""

    name: str
    """The name that users type."""
    title: str
    """What the task asks, in a few words."""
    length: str
    """N, or what it depends on."""
    classes: str
    """How many classes there are, or what is predicted instead."""
    origin: str
    """Where its data comes from: "generated", or what a user downloads."""
    load: Callable[..., Task]
    """Takes keywords: source, length, seed, progress, and the task's own options."""

    @property
    def generated(self) -> bool:
        """Whether the task needs no source."""
        return "source" not in self.options or self.options["source"].default is None

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The keywords that ``load`` takes."""
        return dict(inspect.signature(self.load).parameters)
