"""Measurements of a benchmark as a JSON file that says how, on which machine and with which code."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from paramixer import machine
from paramixer.bench.device import measured_device
from paramixer.files import replace_file

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of a benchmark."""

    what: str
    """Which benchmark: block, scaling, memory, step, training, models, figures or gpu-kernels."""
    settings: dict[str, Any]
    """Its options, so that the run can be repeated."""
    measured: dict[str, Any]
    """Every number that it measured."""
    machine: dict[str, Any]
    """Processor, cores, threads, instruction set, versions."""
    engine: str
    """The backend that served."""
    engines: dict[str, str]
    """Every backend, and whether it was available."""
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
        """Whether the run was only a check that everything works."""
        return bool(self.settings.get("quick"))


def make_record(what: str, options: Any, measured: dict[str, Any], seconds: float) -> Record:
    """Return the record of a measurement, with torch's current number of threads."""
    settings = {name: _plain(value) for name, value in dataclasses.asdict(options).items()}
    return Record(
        what=what,
        settings=settings,
        measured=measured,
        machine=machine.describe_machine() | _describe_gpu(),
        engine=machine.serving_backend(measured_device()),
        engines=machine.describe_backends(),
        commit=machine.commit(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
    )


def write_record(record: Record, folder: Path) -> Path:
    """Write the record into the folder under the name of its benchmark, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    # A quick or partial record does not replace a whole one.
    device = "-cuda" if record.settings.get("device") == "cuda" else ""
    part = device + "-quick" if record.quick else device + "-some" if record.settings.get("models") else device
    path = folder / f"{record.what}{part}.json"
    replace_file(path, (json.dumps(dataclasses.asdict(record), indent=2, allow_nan=False) + "\n").encode())
    return path


def read_record(path: Path) -> Record:
    """Return the record in this file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no record {path}; run python -m benchmarks first") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged, it is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        version = document.get("format") if isinstance(document, dict) else None
        raise ValueError(
            f"{path} has format {version!r}, this version reads format {FORMAT}; run python -m benchmarks again"
        )
    names = {field.name for field in dataclasses.fields(Record)}
    if document.keys() != names:
        different = ", ".join(sorted(document.keys() ^ names))
        raise ValueError(f"{path} is no benchmark record, it differs in {different}; run python -m benchmarks again")
    return Record(**document)


def _describe_gpu() -> dict[str, Any]:
    return {"gpu": torch.cuda.get_device_name()} if measured_device().type == "cuda" else {}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
