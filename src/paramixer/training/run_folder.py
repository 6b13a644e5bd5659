"""The folder of a run: its config, its record, its metrics, its best model, and its state."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paramixer.nn.pretrained import replace_file

FORMAT = 1
# A comment, so that the command line reads the file as it is.
_HEADER_START = "# paramixer run, format "
_HEADER = f"{_HEADER_START}{FORMAT}\n"
_METRICS = {"kind": "format", "format": FORMAT}
NO_MODEL = "The run has no model yet: nothing was evaluated so far."


@dataclass(frozen=True)
class RunFolder:
    """Where everything about a run is written. Only the first of several processes writes."""

    path: Path

    @property
    def config(self) -> Path:
        """config.yaml: what the run was started with, as the command line reads it."""
        return self.path / "config.yaml"

    @property
    def record(self) -> Path:
        """record.json: what came out, on which machine, with which engine."""
        return self.path / "record.json"

    @property
    def metrics(self) -> Path:
        """metrics.jsonl: a line for every evaluation and every so many steps."""
        return self.path / "metrics.jsonl"

    @property
    def model(self) -> Path:
        """model/: the best model and how raw input becomes its input; can be shared."""
        return self.path / "model"

    @property
    def state(self) -> Path:
        """state/: the newest checkpoint."""
        return self.path / "state"

    def write_config(self, config: dict[str, Any]) -> None:
        """config.yaml."""
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.config, (_HEADER + yaml.safe_dump(config, sort_keys=False)).encode())

    def read_config(self) -> dict[str, Any]:
        """What was written to config.yaml, or one clear error."""
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
            raise ValueError(f"{self.config} says {first!r}, this version of paramixer reads format {FORMAT}")
        return document

    def write_record(self, record: dict[str, Any]) -> None:
        """record.json."""
        replace_file(self.record, (json.dumps({"format": FORMAT, **record}, indent=1) + "\n").encode())

    def read_record(self) -> dict[str, Any]:
        """What was written to record.json."""
        try:
            found: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
            version = found["format"]
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} is no run folder: it has no {self.record.name}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.record} is damaged: {error}") from error
        if version != FORMAT:
            raise ValueError(f"{self.record} has format {version}, this version of paramixer reads {FORMAT}")
        return found

    def lines(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl below the one with its format; one that was cut off by a crash is left out."""
        if not self.metrics.is_file():
            return []
        found = []
        for line in self.metrics.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        if found and found[0] != _METRICS:
            raise ValueError(f"{self.metrics} begins with {found[0]}, this version of paramixer reads {_METRICS}")
        return found[1:]

    def add_line(self, line: dict[str, Any]) -> None:
        """One more line of metrics.jsonl."""
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def keep_lines(self, count: int) -> None:
        """Only the first so many lines of metrics.jsonl: what came after a checkpoint will come again."""
        text = "".join(json.dumps(line) + "\n" for line in [_METRICS, *self.lines()[:count]])
        replace_file(self.metrics, text.encode())


def model_folder(path: Path) -> Path:
    """The model of a run folder, or the folder itself where it is a model's."""
    if not path.is_dir():
        raise FileNotFoundError(f"there is no run folder {path}")
    run = RunFolder(path)
    if run.model.is_dir():
        return run.model
    if run.config.is_file():
        raise ValueError(f"{path}: {NO_MODEL[0].lower()}{NO_MODEL[1:-1]}")
    return path
