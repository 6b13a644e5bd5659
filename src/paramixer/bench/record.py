"""What a benchmark measured, as a JSON file that says how, on which machine and with which code."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paramixer import machine
from paramixer.nn.pretrained import replace_file

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of a benchmark."""

    what: str
    """Which benchmark: block, scaling, memory, step or figures."""
    settings: dict[str, Any]
    """Its options, so that the run can be repeated."""
    measured: dict[str, Any]
    """Every number that it measured."""
    machine: dict[str, Any]
    """Processor, cores, threads, instruction set, versions."""
    engine: str
    """The engine that served."""
    engines: dict[str, str]
    """Every engine, and whether it was there."""
    commit: str | None
    """The commit of the code; None outside a checkout."""
    at: str
    """When the run ended, UTC."""
    seconds: float
    """How long the run took."""
    format: int = FORMAT
    """Version of this format."""

    @property
    def quick(self) -> bool:
        """Whether the run was only to see that everything works."""
        return bool(self.settings.get("quick"))


def make(what: str, options: Any, measured: dict[str, Any], seconds: float) -> Record:
    """The record of what was just measured, with the threads that torch has now."""
    settings = {name: _plain(value) for name, value in dataclasses.asdict(options).items()}
    return Record(
        what=what,
        settings=settings,
        measured=measured,
        machine=machine.machine(),
        engine=machine.serving_engine(),
        engines=machine.engine_states(),
        commit=machine.commit(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
    )


def write(record: Record, folder: Path) -> Path:
    """Put the record into the folder under the name of its benchmark, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    # What measured nothing, or only a part, does not take the place of what measured all.
    part = "-quick" if record.quick else "-some" if record.settings.get("models") else ""
    path = folder / f"{record.what}{part}.json"
    replace_file(path, (json.dumps(dataclasses.asdict(record), indent=2, allow_nan=False) + "\n").encode())
    return path


def read(path: Path) -> Record:
    """The record of this file, or one clear error."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no record {path}; run paramixer bench first") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged, it is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else None
        raise ValueError(f"{path} has format {found!r}, this version reads format {FORMAT}; run paramixer bench again")
    names = {field.name for field in dataclasses.fields(Record)}
    if document.keys() != names:
        different = ", ".join(sorted(document.keys() ^ names))
        raise ValueError(f"{path} is no benchmark record, it differs in {different}; run paramixer bench again")
    return Record(**document)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
