"""Records of runs under results/: one JSON file a run, written by the run, copied freely between machines."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from paramixer.files import replace_file
from experiments.cells import Cell, Scale, key
from paramixer.training.command import TrainOptions, document

FORMAT = 1
# The folder of runs whose recipe is no longer asked for; they are listed, and count for nothing.
SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Kept:
    """A record and the cell it belongs to."""

    path: Path
    experiment: str
    row: str
    column: str
    scale: Scale
    trial: bool
    key: str
    options: dict[str, Any]
    record: dict[str, Any]

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
        """Of training."""
        return float(self.record["seconds"]) / 60


def path_of(folder: Path, cell: Cell, options: TrainOptions) -> Path:
    """Where the record of a run is kept."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{cell.row} {cell.column} seed {options.seed}".lower()).strip("-")
    return folder / cell.experiment / f"{slug}-{key(options, cell.scale)}.json"


def keep(folder: Path, cell: Cell, options: TrainOptions, trial: bool, record: dict[str, Any]) -> Path:
    """Write a finished run's record."""
    path = path_of(folder, cell, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {name: value for name, value in document(options).items() if name != "source"}
    settings = {name: value for name, value in record["settings"].items() if name not in ("source", "labels")}
    document_ = {
        "format": FORMAT,
        "experiment": cell.experiment,
        "row": cell.row,
        "column": cell.column,
        "scale": cell.scale,
        "trial": trial,
        "key": key(options, cell.scale),
        "options": said,
        "record": {**record, "settings": settings},
    }
    replace_file(path, (json.dumps(document_, indent=1) + "\n").encode())
    return path


def read_all(folder: Path, experiment: str | None = None) -> list[Kept]:
    """Every record of an experiment, or of all; of several runs of one cell the first."""
    found: dict[tuple[str, str], Kept] = {}
    for one in read_files(folder, experiment):
        found.setdefault((one.experiment, one.key), one)
    return list(found.values())


def read_files(folder: Path, experiment: str | None = None) -> list[Kept]:
    """Every record that there is a file of."""
    found = []
    for path in sorted(folder.glob(f"{experiment or '*'}/*.json")):
        known = read_json(path)
        if known.get("format") != FORMAT or "record" not in known:
            continue
        fields = ("experiment", "row", "column", "scale", "trial", "key", "options")
        try:
            one = Kept(path=path, **{name: known[name] for name in fields}, record=known["record"])
            if one.scale not in get_args(Scale):
                raise ValueError(f"no scale {one.scale!r}")
            _ = one.trial or one.value, one.steps, one.minutes
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is a damaged record ({error}); restore it, or delete it to run anew") from None
        found.append(one)
    return found


def read_json(path: Path) -> dict[str, Any]:
    """A file under results/."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); restore it, or delete it") from None
    if not isinstance(known, dict):
        raise ValueError(f"{path} holds no record; is it a file of something else?")
    return known


@dataclass(frozen=True)
class Summary:
    """All seeds of a cell; the mean is NaN where every one of them diverged."""

    mean: float
    deviation: float | None
    seeds: int
    diverged: int
    steps: float
    minutes: float

    def percent(self, unit: str = "") -> str:
        """Mean and deviation in %, with the unit if it is to stand there."""
        if self.diverged == self.seeds:
            return "diverged"
        spread = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        lost = f", {self.diverged} of {self.seeds} diverged" if self.diverged else ""
        return f"{100 * self.mean:.2f}{spread}{unit}{lost}"


def summarised(kept: Iterable[Kept], row: str, column: str) -> Summary | None:
    """The final runs of a cell at the largest scale there is; None if there is none."""
    own = [one for one in kept if (one.row, one.column) == (row, column) and not one.trial]
    if not own:
        return None
    largest = max((one.scale for one in own), key=get_args(Scale).index)
    own = [one for one in own if one.scale == largest]
    values = [one.value for one in own if math.isfinite(one.value)]
    return Summary(
        statistics.mean(values) if values else math.nan,
        statistics.stdev(values) if len(values) > 1 else None,
        len(own),
        len(own) - len(values),
        statistics.mean(one.steps for one in own),
        statistics.mean(one.minutes for one in own),
    )
