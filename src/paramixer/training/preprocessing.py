"""How raw input becomes a model's input, written beside the model so that it can be shared and used anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paramixer.data.task import Task, TaskInfo
from paramixer.nn.pretrained import replace_file

FORMAT = 1
INPUTS = "inputs.json"


def write_inputs(folder: Path, task: Task) -> None:
    """inputs.json: vocabulary, classes, length and settings of the task."""
    info = {name: getattr(task, name) for name in TaskInfo.__dataclass_fields__}
    document: dict[str, Any] = {"format": FORMAT, "fingerprint": task.fingerprint, "info": TaskInfo(**info).document()}
    replace_file(folder / INPUTS, (json.dumps(document, indent=1) + "\n").encode())


def read_inputs(folder: Path) -> tuple[TaskInfo, str]:
    """The info of the task a model was trained on, and the fingerprint of its data."""
    path = folder / INPUTS
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document["format"]
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {folder} was not written by paramixer train") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this version of paramixer reads {FORMAT}; install a newer one")
    return TaskInfo.from_document(document["info"]), str(document["fingerprint"])
