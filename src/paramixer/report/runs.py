"""A run folder with its record, its metrics, and its model and data if they are available."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paramixer.data.progress import Progress, no_progress
from paramixer.data.task import Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.assessment.metrics import METRICS
from paramixer.training.factory import load_model
from paramixer.training.runs.folder import NO_MODEL, RunFolder
from paramixer.training.runs.run import open_task

# Fields of a record that a page needs, with their types.
_REQUIRED_FIELDS: dict[str, type | tuple[type, ...]] = {
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
class Run:
    """One run."""

    name: str
    """Name of the folder."""
    path: Path
    """The folder."""
    config: dict[str, Any]
    """Content of config.yaml."""
    record: dict[str, Any]
    """Content of record.json."""
    lines: list[dict[str, Any]]
    """Lines of metrics.jsonl."""
    model: PretrainedModel | None
    """The best model; None before the first evaluation."""
    task: Task | None
    """The data; None if it is not available."""
    notes: tuple[str, ...]
    """Why model or data are missing."""

    @property
    def metric(self) -> str:
        """Name of the metric on validation."""
        name = self.record.get("metric")
        if name is not None:
            return str(name)
        names = [name for line in self.lines if line["kind"] == "validation" for name in line if name in METRICS]
        return next((name for name in names if name != "loss"), "accuracy")

    def baseline_levels(self, value: str) -> list[tuple[str, float]]:
        """Return name and value on validation of the baseline beside the run, if it has one.

        Args:
            value: the metric, or "loss".
        """
        baseline = self.record.get("baseline")
        if not isinstance(baseline, dict) or value not in ("loss", self.metric):
            return []
        level = baseline.get("validation_loss" if value == "loss" else "validation")
        return [(str(baseline["name"]), level)] if isinstance(level, int | float) and math.isfinite(level) else []

    @property
    def model_name(self) -> str:
        """The link protocol of a Paramixer, or the name of a baseline."""
        settings = self.record["model"]
        # Records of older versions name the baseline among the model's settings.
        system = str(self.record.get("system") or settings.get("mixer", "paramixer"))
        return str(settings["protocol"]).upper() if system == "paramixer" else system


def open_run(path: Path, progress: Progress = no_progress) -> Run:
    """Read a run folder. A missing model or missing data becomes a note; a damaged record raises.

    Args:
        path: the run folder.
        progress: counts samples while data is prepared.
    """
    if not path.is_dir():
        raise FileNotFoundError(f"there is no run folder {path}")
    folder = RunFolder(path)
    config, record, lines = folder.read_config(), folder.read_record(), _read_metrics(folder)
    for name, types in _REQUIRED_FIELDS.items():
        if not isinstance(record.get(name), types):
            raise ValueError(f"{folder.record} is damaged: its {name} is {record.get(name)!r}")
    notes = []
    model = task = None
    try:
        if folder.model.is_dir():
            model = load_model(folder.model)
        else:
            notes.append(NO_MODEL)
    except (OSError, ValueError) as error:
        notes.append(f"The model cannot be read: {error}.")
    try:
        task = open_task(path, progress)
    except (OSError, ValueError) as error:
        notes.append(f"The data is not available: {error}.")
    return Run(path.resolve().name, path, config, record, lines, model, task, tuple(notes))


def _read_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    lines = folder.read_lines()
    # Line 1 is the format.
    for number, line in enumerate(lines, 2):
        complete = isinstance(line, dict) and isinstance(line.get("step"), int) and isinstance(line.get("kind"), str)
        # JSON's true and false pass as numbers, as they do in Python.
        if not complete or any(not isinstance(line[name], int | float) for name in line if name != "kind"):
            raise ValueError(f"{folder.metrics}, line {number}: {str(line)[:80]!r} is no line of metrics")
    return lines
