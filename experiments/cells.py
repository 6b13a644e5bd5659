"""A cell of a table or figure: the run behind one number, or the few runs among which validation chooses."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paramixer.training.runs.run import RunSettings

Scale = Literal["smoke", "cpu", "paper"]
Overrides = dict[str, Any]
"""Settings of a run by dotted name, such as ``training.minutes``, ``data.length`` or ``recipe``."""

CHORD, CDIL = "Paramixer CHORD", "Paramixer CDIL"
DEFAULT = "Paramixer, the default network"
# Row titles are part of the records. The rows above have the quick recipe wherever the time is bounded.
PAPER_INIT = f"{CHORD}, the paper's initialisation"


@dataclass(frozen=True)
class Cell:
    """One number of a table or one point of a figure."""

    experiment: str
    """The table or figure."""
    row: str
    """Its row: a model, as the papers call it."""
    column: str
    """Its column: a task, with what belongs to it."""
    scale: Scale
    """At which scale."""
    settings: RunSettings
    """The run, before a choice is made."""
    choices: tuple[Overrides, ...] = ({},)
    """Overrides to choose from on validation."""
    trial_minutes: float = 2.0
    """How long each of them is tried."""
    least_steps: int = 0
    """With fewer steps a minute in every trial a system is not run further; that is its result."""

    def trials(self) -> list[RunSettings]:
        """Return the runs that decide among the choices; none if there is nothing to choose."""
        if len(self.choices) == 1:
            return []
        return [override(self.settings, {**choice, "training.minutes": self.trial_minutes}) for choice in self.choices]

    def final(self, choice: Overrides) -> RunSettings:
        """Return the run that counts."""
        return override(self.settings, choice)


@dataclass(frozen=True)
class Sources:
    """Where data is that is not generated."""

    image: Path | None = None
    text: Path | None = None
    documents: Path | None = None
    genome: Path | None = None
    hfdna: Path | None = None
    mtcdna: Path | None = None
    reviews: Path | None = None


def override(settings: RunSettings, overrides: Overrides) -> RunSettings:
    """Return the settings with overrides; None removes a setting, so that the recipe's counts."""
    changed: dict[str, Any] = {}
    for name, value in overrides.items():
        section, _, field = name.partition(".")
        if not field:
            changed[section] = value
            continue
        mapping = {**changed.get(section, getattr(settings, section)), field: value}
        changed[section] = {key: given for key, given in mapping.items() if given is not None}
    return dataclasses.replace(settings, **changed)


def describe_settings(settings: RunSettings) -> dict[str, Any]:
    """Return the settings as a record holds them: without the place of the data, which differs by machine."""
    document = settings.document()
    data = {name: value for name, value in document.get("data", {}).items() if name not in ("source", "labels")}
    return {**document, "data": data} if data else {name: value for name, value in document.items() if name != "data"}


def settings_key(settings: RunSettings, scale: Scale) -> str:
    """Return the key of a run: a hash of all its settings but the place of its data."""
    text = json.dumps({"scale": scale, **describe_settings(settings)}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
