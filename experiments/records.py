"""Records of runs under results/: one JSON file per run, written by the run, copied freely between machines.

Format 2 knows a run by a key of all its settings. Format 1, from before recipes were files, has the settings of that
time; its runs count for the cell of the same experiment, row, column, scale, seed and kind.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from experiments.cells import Cell, Scale, describe_settings, settings_key
from paramixer.files import replace_file
from paramixer.training.runs.run import RunSettings

FORMAT = 2
LEAST_STEPS = 10
"""A system that takes fewer steps in a minute learns nothing in ten."""
# The folder of runs by earlier recipes; they are listed, and count for nothing.
SUPERSEDED = "superseded"


@dataclass(frozen=True)
class StoredRun:
    """A record and the cell it belongs to."""

    path: Path
    format: int
    experiment: str
    row: str
    column: str
    scale: Scale
    trial: bool
    key: str
    settings: dict[str, Any]
    """What was given for the run, in the words of the record's format."""
    record: dict[str, Any]
    """What the run wrote."""

    @property
    def value(self) -> float:
        """The metric on test."""
        return float(self.record["test"][self.record["metric"]])

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return int(self.record["steps"])

    @property
    def minutes(self) -> float:
        """Minutes of training."""
        return float(self.record["seconds"]) / 60

    @property
    def learning_rate(self) -> float | None:
        """The learning rate, if one was given."""
        section = self.settings if self.format == 1 else self.settings.get("training", {})
        rate: float | None = section.get("learning_rate")
        return rate

    @property
    def model(self) -> dict[str, Any]:
        """The fields of the model's config that were given."""
        fields: dict[str, Any] = self.settings.get("model", {})
        return fields

    def belongs_to(self, cell: Cell) -> bool:
        """Whether it is a run of this cell, of whatever settings."""
        place = (self.experiment, self.row, self.column, self.scale, self.record.get("seed", 0))
        return place == (cell.experiment, cell.row, cell.column, cell.scale, cell.settings.seed)


def find_final(cell: Cell, runs: Iterable[StoredRun]) -> StoredRun | None:
    """Return the record that counts for a cell, if there is one."""
    keys = {settings_key(cell.final(choice), cell.scale) for choice in cell.choices}
    for run in runs:
        if not run.trial and run.belongs_to(cell) and (run.format == 1 or run.key in keys):
            return run
    return None


def find_run(cell: Cell, settings: RunSettings, runs: Iterable[StoredRun]) -> StoredRun | None:
    """Return the record of exactly these settings, if there is one."""
    key = settings_key(settings, cell.scale)
    return next((run for run in runs if run.key == key and run.experiment == cell.experiment), None)


def count_steps(row: str, column: str, runs: Iterable[StoredRun]) -> float | None:
    """Return how many steps a minute the trials of a cell took at best, where that is too few to go on."""
    rates = [run.steps / run.minutes for run in runs if (run.row, run.column) == (row, column) and run.trial]
    return max(rates) if rates and max(rates) < LEAST_STEPS else None


def make_path(folder: Path, cell: Cell, settings: RunSettings) -> Path:
    """Return where the record of a run is stored."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{cell.row} {cell.column} seed {settings.seed}".lower()).strip("-")
    return folder / cell.experiment / f"{slug}-{settings_key(settings, cell.scale)}.json"


def write_run(folder: Path, cell: Cell, settings: RunSettings, trial: bool, record: dict[str, Any]) -> Path:
    """Write the record of a finished run."""
    path = make_path(folder, cell, settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    task_settings = {name: value for name, value in record["settings"].items() if name not in ("source", "labels")}
    document = {
        "format": FORMAT,
        "experiment": cell.experiment,
        "row": cell.row,
        "column": cell.column,
        "scale": cell.scale,
        "trial": trial,
        "key": settings_key(settings, cell.scale),
        "settings": describe_settings(settings),
        "record": {**record, "settings": task_settings},
    }
    write_json(path, document)
    return path


def read_runs(folder: Path, experiment: str | None = None) -> list[StoredRun]:
    """Read every record of an experiment, or of all; of several copies of one run the first."""
    runs: dict[tuple[str, str], StoredRun] = {}
    for run in read_files(folder, experiment):
        runs.setdefault((run.experiment, run.key), run)
    return list(runs.values())


def read_files(folder: Path, experiment: str | None = None) -> list[StoredRun]:
    """Read every file that holds a run."""
    runs = []
    for path in sorted(folder.glob(f"{experiment or '*'}/*.json")):
        document = read_json(path)
        if document.get("format") in (1, FORMAT) and "record" in document:
            runs.append(_read_run(path, document))
    return runs


def _read_run(path: Path, document: dict[str, Any]) -> StoredRun:
    fields = ("format", "experiment", "row", "column", "scale", "trial", "key", "record")
    try:
        settings = document["options" if document["format"] == 1 else "settings"]
        run = StoredRun(path=path, settings=settings, **{name: document[name] for name in fields})
        if run.scale not in get_args(Scale):
            raise ValueError(f"no scale {run.scale!r}")
        _ = run.trial or run.value, run.steps, run.minutes
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is a damaged record ({error}); restore it, or delete it to run it again") from None
    return run


def read_json(path: Path) -> dict[str, Any]:
    """Read a file under results/."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); restore it, or delete it") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path} holds no record; restore it, or delete it")
    return document


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a file under results/, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(document, indent=1) + "\n").encode())


@dataclass(frozen=True)
class Summary:
    """All seeds of a cell; the mean is NaN if every one of them diverged."""

    mean: float
    deviation: float | None
    seeds: int
    diverged: int
    steps: float
    minutes: float

    @property
    def finished(self) -> int:
        """The seeds that did not diverge."""
        return self.seeds - self.diverged

    def percent(self, unit: str = "") -> str:
        """Return mean and deviation in %, with the unit if one is given."""
        if self.diverged == self.seeds:
            return "diverged"
        spread = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        lost = f", {self.diverged} of {self.seeds} diverged" if self.diverged else ""
        return f"{100 * self.mean:.2f}{spread}{unit}{lost}"


def summarize(runs: Sequence[StoredRun], row: str, column: str) -> Summary | None:
    """Summarize the final runs of a cell at the largest scale that was run; None if there is none."""
    final = [run for run in runs if (run.row, run.column) == (row, column) and not run.trial]
    if not final:
        return None
    largest = max((run.scale for run in final), key=get_args(Scale).index)
    final = [run for run in final if run.scale == largest]
    values = [run.value for run in final if math.isfinite(run.value)]
    return Summary(
        statistics.mean(values) if values else math.nan,
        statistics.stdev(values) if len(values) > 1 else None,
        len(final),
        len(final) - len(values),
        statistics.mean(run.steps for run in final),
        statistics.mean(run.minutes for run in final),
    )
