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

from paramixer.pretrained import replace_file
from paramixer.reproduce.cells import Cell, Scale, key
from paramixer.training.command import TrainOptions, document

FORMAT = 1


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
        """Optimiser steps."""
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
    """Every record of an experiment, or of all."""
    found = []
    for path in sorted(folder.glob(f"{experiment or '*'}/*.json")):
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.get("format") != FORMAT or "record" not in known:
            continue
        fields = {name: known[name] for name in ("experiment", "row", "column", "scale", "trial", "key", "options")}
        found.append(Kept(path=path, **fields, record=known["record"]))
    return found


@dataclass(frozen=True)
class Summary:
    """All seeds of a cell."""

    mean: float
    deviation: float | None
    seeds: int
    steps: float
    minutes: float

    def percent(self) -> str:
        """Mean and deviation in %."""
        spread = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.mean:.2f}{spread}"


def summarised(kept: Iterable[Kept], row: str, column: str) -> Summary | None:
    """The final runs of a cell at the largest scale there is; None if there is none."""
    own = [one for one in kept if (one.row, one.column) == (row, column) and not one.trial and math.isfinite(one.value)]
    if not own:
        return None
    largest = max((one.scale for one in own), key=get_args(Scale).index)
    own = [one for one in own if one.scale == largest]
    values = [one.value for one in own]
    return Summary(
        statistics.mean(values),
        statistics.stdev(values) if len(values) > 1 else None,
        len(values),
        statistics.mean(one.steps for one in own),
        statistics.mean(one.minutes for one in own),
    )
