"""Checkpoints: everything a run needs to go on as if it had never stopped. A checkpoint is complete or absent.

Tensors are in a safetensors file, the rest in JSON, each checkpoint in a folder that gets its name when it is whole.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from paramixer.nn.pretrained import sync_folder, write_synced

FORMAT = 1
_TENSORS, _REST = "tensors.safetensors", "state.json"


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Epochs done."""
    position: int = 0
    """Steps done in the epoch under way."""
    batch: int = 0
    """Sequences in a step, of all processes together."""
    seconds: float = 0.0
    """Time spent training."""
    tokens: int = 0
    """Positions seen."""
    best: float | None = None
    """The best validation metric."""
    best_loss: float | None = None
    """The loss that came with it."""
    best_step: int | None = None
    """And when it was reached."""
    worse: int = 0
    """Evaluations since then."""
    lines: int = 0
    """Lines of metrics.jsonl that belong to this state."""
    evaluated: int | None = None
    """The step of the last evaluation."""
    loss_sum: float = 0.0
    """Of the steps since the last line."""
    loss_count: int = 0
    """How many those are."""


def write(
    folder: Path, progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer, random: dict[str, Tensor]
) -> Path:
    """A new checkpoint below the folder; older ones are removed once it is there.

    Args:
        random: what :func:`random_state` gives, with a row for every process.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors |= {f"random.{device}": rows for device, rows in random.items()}
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}

    folder.mkdir(parents=True, exist_ok=True)
    # Lines too, since a run may save before and after it evaluates at one step.
    wanted = folder / f"step-{progress.step:09d}-{progress.lines:09d}"
    if wanted.exists():
        return wanted
    started = folder / f".{wanted.name}"
    shutil.rmtree(started, ignore_errors=True)
    started.mkdir()
    write_synced(started / _TENSORS, save(plain, {"format": "pt"}))
    document = {"format": FORMAT, "progress": asdict(progress)}
    write_synced(started / _REST, (json.dumps(document, indent=1) + "\n").encode())
    sync_folder(started)
    started.rename(wanted)
    sync_folder(folder)
    tidy(folder)
    return wanted


def tidy(folder: Path) -> None:
    """Only the newest checkpoint, without what a killed process left."""
    newest = latest(folder)
    for other in [*_checkpoints(folder), *folder.glob(".step-*")]:
        if other != newest:
            shutil.rmtree(other)


def latest(folder: Path) -> Path | None:
    """The newest checkpoint below the folder; None if there is none."""
    return max(_checkpoints(folder), default=None)


def random_state() -> dict[str, Tensor]:
    """The random numbers of this process, by device."""
    found = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def read(checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, process: int = 0) -> Progress:
    """Put model, optimizer and this process's random numbers into the checkpoint's state; say where the run is."""
    document = _document(checkpoint)
    try:
        with safe_open(checkpoint / _TENSORS, framework="pt") as file:
            # Into torch's own memory: the file's is aligned otherwise, and products round differently there.
            tensors: dict[str, Tensor] = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{checkpoint / _TENSORS} is damaged: {error}; remove its folder to go on without") from error
    own = _below(tensors, "model.")
    expected = model.state_dict()
    different = {name for name in own.keys() | expected.keys() if not _same_shape(own.get(name), expected.get(name))}
    if different:
        raise ValueError(
            f"{checkpoint} is of another architecture: {', '.join(sorted(different)[:3])}; "
            "resume with the settings the run was started with"
        )
    model.load_state_dict(own)
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        states.setdefault(int(number), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    random = _below(tensors, "random.")
    if process < len(random["cpu"]):
        # A row alone: torch crashes on one inside a larger tensor.
        torch.set_rng_state(random["cpu"][process].clone())
        if "cuda" in random and torch.cuda.is_available():
            torch.cuda.set_rng_state(random["cuda"][process].clone())
    return Progress(**document["progress"])


def _document(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint / _REST
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = document["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}; remove its folder to go on without") from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this version of paramixer reads {FORMAT}; install a newer one")
    return document


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _same_shape(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and one.shape == other.shape
