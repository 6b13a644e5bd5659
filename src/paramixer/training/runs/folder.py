"""The folder of a run: its config, its record, its metrics, its best model, and its state."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paramixer.data.task import Task, TaskInfo
from paramixer.files import read_json, replace_file, writing

FORMAT = 1
# Its settings are in sections: data, model, init, training.
_CONFIG_FORMAT = 2
# A comment, so that the command line reads the file as it is.
_HEADER_START = "# paramixer run, format "
_HEADER = f"{_HEADER_START}{_CONFIG_FORMAT}\n"
INPUTS = "inputs.json"
"""Beside a model: what it was trained on."""
# A vocabulary of words is long.
_MOST_INPUTS_BYTES = 2**28
_METRICS = {"kind": "format", "format": FORMAT}
NO_MODEL = "The run has no model yet: nothing was evaluated so far."


@dataclass(frozen=True)
class RunFolder:
    """Where everything about a run is written. Only the first of several processes writes."""

    path: Path

    @property
    def config(self) -> Path:
        """config.yaml: the settings of the run, as ``paramixer train --config`` reads them."""
        return self.path / "config.yaml"

    @property
    def record(self) -> Path:
        """record.json: results, machine and backend."""
        return self.path / "record.json"

    @property
    def metrics(self) -> Path:
        """metrics.jsonl: a line for every evaluation and every so many steps."""
        return self.path / "metrics.jsonl"

    @property
    def model(self) -> Path:
        """model/: the best model, and how raw input becomes its input; can be shared."""
        return self.path / "model"

    @property
    def state(self) -> Path:
        """state/: the newest checkpoint."""
        return self.path / "state"

    @property
    def baseline(self) -> Path:
        """baseline.safetensors: the simple model's answers to the test sequences."""
        return self.path / "baseline.safetensors"

    def list_folds(self) -> list[RunFolder]:
        """Return the runs of cross-validation in this folder, in order; none where it is a run itself."""
        found = [RunFolder(path) for path in self.path.glob("fold-*") if path.is_dir()]
        return [] if self.record.is_file() else sorted(found, key=lambda run: (len(run.path.name), run.path.name))

    def write_config(self, config: dict[str, Any]) -> None:
        """Write config.yaml."""
        with writing(self.path, "nothing was written"):
            self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.config, (_HEADER + yaml.safe_dump(config, sort_keys=False)).encode())

    def read_config(self) -> dict[str, Any]:
        """Return what was written to config.yaml, or raise one clear error."""
        try:
            text = self.config.read_text(encoding="utf-8")
            document = yaml.safe_load(text)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} is no run folder: it has no {self.config.name}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.config} is damaged: {' '.join(str(error).split())}") from error
        if not isinstance(document, dict) or not text.startswith(_HEADER_START):
            raise ValueError(f"{self.config} is no config of a run")
        if not text.startswith(_HEADER):
            first = text.splitlines()[0]
            raise ValueError(f"{self.config} says {first!r}, this version of paramixer reads format {_CONFIG_FORMAT}")
        return document

    def write_record(self, record: dict[str, Any]) -> None:
        """Write record.json."""
        replace_file(self.record, (json.dumps({"format": FORMAT, **record}, indent=1) + "\n").encode())

    def read_record(self) -> dict[str, Any]:
        """Return what was written to record.json."""
        try:
            record: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
            version = record["format"]
        except FileNotFoundError:
            self.refuse_folds()
            raise FileNotFoundError(f"{self.path} is no run folder: it has no {self.record.name}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.record} is damaged: {error}") from error
        if version != FORMAT:
            raise ValueError(f"{self.record} has format {version}, this version of paramixer reads {FORMAT}")
        return record

    def read_lines(self) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl after its format; a line that a crash cut off is left out."""
        if not self.metrics.is_file():
            return []
        lines = []
        rows = self.metrics.read_bytes().splitlines(keepends=True)
        for number, row in enumerate(rows, 1):
            try:
                lines.append(json.loads(row))
            except (ValueError, RecursionError):
                if number == len(rows) and not row.endswith(b"\n"):
                    break
                start = row[:40].decode(errors="replace").strip()
                raise ValueError(
                    f"{self.metrics} is damaged: line {number} is not JSON, it begins with {start!r}; remove the line"
                ) from None
        if lines and lines[0] != _METRICS:
            raise ValueError(f"{self.metrics} begins with {lines[0]}, this version of paramixer reads {_METRICS}")
        return lines[1:]

    def refuse_folds(self) -> None:
        """Raise a ValueError where the folder holds the runs of folds and is none itself."""
        folds = self.list_folds()
        if folds:
            raise ValueError(
                f"{self.path} holds a run for each of {len(folds)} folds; name one, such as {folds[0].path}"
            )

    def append_line(self, line: dict[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        with writing(self.metrics, "the lines from before are kept"), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def truncate_lines(self, count: int) -> None:
        """Remove all but the first lines of metrics.jsonl: what came after a checkpoint will come again."""
        text = "".join(json.dumps(line) + "\n" for line in [_METRICS, *self.read_lines()[:count]])
        replace_file(self.metrics, text.encode())


def find_model_folder(path: Path) -> Path:
    """Return the model folder of a run, or the folder itself where it is a model's."""
    if not path.is_dir():
        raise FileNotFoundError(f"there is no run folder {path}")
    run = RunFolder(path)
    if run.model.is_dir():
        return run.model
    if run.config.is_file():
        run.refuse_folds()
        raise ValueError(f"{path}: {NO_MODEL[0].lower()}{NO_MODEL[1:-1]}")
    return path


def write_inputs(folder: Path, task: Task) -> None:
    """Write inputs.json: vocabulary, classes, length and settings of the task, beside the model."""
    info = {name: getattr(task, name) for name in TaskInfo.__dataclass_fields__}
    document: dict[str, Any] = {"format": FORMAT, "fingerprint": task.fingerprint, "facts": TaskInfo(**info).document()}
    replace_file(folder / INPUTS, (json.dumps(document, indent=1) + "\n").encode())


def read_inputs(folder: Path) -> tuple[TaskInfo, str]:
    """Return what a model was trained on, and the fingerprint of its data."""
    path = folder / INPUTS
    try:
        document = read_json(path, _MOST_INPUTS_BYTES)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {folder} was not written by paramixer train") from None
    for name, kind in (("format", int), ("facts", dict), ("fingerprint", str)):
        if not isinstance(document, dict) or not isinstance(document.get(name), kind):
            raise ValueError(f"{path} is damaged: it has no {name}; restore it from the run")
    version = document["format"]
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this version of paramixer reads {FORMAT}; install a newer one")
    try:
        return TaskInfo.from_document(document["facts"]), document["fingerprint"]
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
