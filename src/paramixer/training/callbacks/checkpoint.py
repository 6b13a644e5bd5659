"""Checkpoints: everything a run needs to go on as if it had never stopped. A checkpoint is complete or absent.

Tensors are in a safetensors file, the rest in JSON, each checkpoint in a folder that gets its name when it is whole.
Of tables with row-sparse gradients and of their moments only rows that are not zero are stored.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from paramixer.files import sync_folder, write_synced, writing
from paramixer.nn.row_storage import RowStorage
from paramixer.training.callback import Callback, Progress
from paramixer.training.loop import Loop
from paramixer.training.row_sparse import MOMENTS, row_sparse_tables

FORMAT = 1
_TENSORS, _REST = "tensors.safetensors", "state.json"
# As format 1 spells it.
_OPTIMIZER = "optimiser."


class Checkpoints(Callback):
    """Writes a checkpoint at every evaluation, every so many minutes and when training is interrupted.

    Args:
        model: the model itself, not what wraps it for several processes.
        folder: where checkpoints are written.
    """

    def __init__(self, model: nn.Module, folder: Path) -> None:
        self._model, self._folder = model, folder
        self._written_at = time.monotonic()

    def restore(self, loop: Loop) -> None:
        """Go on from the newest checkpoint, if there is one."""
        newest = find_latest(self._folder)
        if newest is not None:
            loop.progress = read_checkpoint(newest, self._model, loop.optimizer, loop.accelerator.process_index)
        if loop.accelerator.is_main_process:
            remove_older(self._folder)
        loop.accelerator.wait_for_everyone()

    def on_start(self, loop: Loop) -> None:
        """Start the clock."""
        self._written_at = time.monotonic()

    def on_step(self, loop: Loop) -> None:
        """Write a checkpoint if it is time."""
        if time.monotonic() - self._written_at > 60 * loop.options.save_every:
            self._write(loop)

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """Write a checkpoint."""
        self._write(loop)

    def on_interrupt(self, loop: Loop) -> None:
        """Write a checkpoint."""
        self._write(loop)

    def _write(self, loop: Loop) -> None:
        loop.restart_clock()
        accelerator = loop.accelerator
        states = {
            device: accelerator.gather(row[None].to(accelerator.device)).cpu()
            for device, row in read_random_state().items()
        }
        if accelerator.is_main_process:
            write_checkpoint(self._folder, loop.progress, self._model, loop.optimizer, states)
        accelerator.wait_for_everyone()
        self._written_at = time.monotonic()


def write_checkpoint(
    folder: Path, progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer, random: dict[str, Tensor]
) -> Path:
    """Write a new checkpoint below the folder and remove the older ones once it is there.

    Args:
        random: what :func:`read_random_state` gives, with a row for every process.
    """
    packed = RowStorage.of(model).pack(model.state_dict())
    tensors = {f"model.{name}": tensor for name, tensor in packed.items()}
    states = {
        f"{number}.{name}": torch.as_tensor(value)
        for number, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    packed = _moments(optimizer).pack(states)
    tensors |= {f"{_OPTIMIZER}{name}": tensor for name, tensor in packed.items()}
    tensors |= {f"random.{device}": rows for device, rows in random.items()}
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}

    # Lines too, since a run may save before and after it evaluates at one step.
    wanted = folder / f"step-{progress.step:09d}-{progress.lines:09d}"
    if wanted.exists():
        return wanted
    started = folder / f".{wanted.name}"
    newest = find_latest(folder)
    with writing(wanted, "there is no checkpoint yet" if newest is None else f"{newest.name} is kept"):
        try:
            started.mkdir(parents=True, exist_ok=True)
            document = {"format": FORMAT, "progress": asdict(progress)}
            for name, content in (
                (_TENSORS, save(plain, {"format": "pt"})),
                (_REST, (json.dumps(document, indent=1) + "\n").encode()),
            ):
                (started / name).unlink(missing_ok=True)
                write_synced(started / name, content)
            sync_folder(started)
            started.rename(wanted)
        except OSError:
            # What was written of it takes the place of what the user may want to write.
            shutil.rmtree(started, ignore_errors=True)
            raise
    sync_folder(folder)
    remove_older(folder)
    return wanted


def remove_older(folder: Path) -> None:
    """Remove all but the newest checkpoint, and what a killed process left."""
    newest = find_latest(folder)
    for other in [*_checkpoints(folder), *folder.glob(".step-*")]:
        if other != newest:
            shutil.rmtree(other)


def find_latest(folder: Path) -> Path | None:
    """Return the newest checkpoint below the folder; None if there is none."""
    return max(_checkpoints(folder), default=None)


def read_random_state() -> dict[str, Tensor]:
    """Return the state of this process's random generators, by device."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def read_checkpoint(checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, process: int = 0) -> Progress:
    """Restore model, optimizer and this process's random generators; return where the run is."""
    document = _document(checkpoint)
    try:
        with safe_open(checkpoint / _TENSORS, framework="pt") as file:
            # Into torch's own memory: the file's is aligned otherwise, and products round differently there.
            tensors: dict[str, Tensor] = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{checkpoint / _TENSORS} is damaged: {error}; remove its folder to go on without") from error
    own = RowStorage.of(model).unpack(_below(tensors, "model."), checkpoint / _TENSORS)
    expected = model.state_dict()
    for name in sorted(own.keys() | expected.keys()):
        found, wanted = _shape(own.get(name)), _shape(expected.get(name))
        if found != wanted:
            raise ValueError(
                f"{checkpoint} is of another architecture: {name} has shape {found or 'none'}, the model's is "
                f"{wanted or 'none'}; resume with the settings the run was started with"
            )
    model.load_state_dict(own)
    states: dict[int, dict[str, Tensor]] = {}
    moments = _moments(optimizer).unpack(_below(tensors, _OPTIMIZER), checkpoint / _TENSORS)
    for name, tensor in moments.items():
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


def _moments(optimizer: torch.optim.Optimizer) -> RowStorage:
    """Return the moments of row-sparse tables, by their names in the optimizer's state."""
    numbers = (number for group in optimizer.state_dict()["param_groups"] for number in group["params"])
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    tables = set(map(id, row_sparse_tables(optimizer)))
    return RowStorage(
        {
            f"{number}.{moment}": tuple(parameter.shape)
            for number, parameter in zip(numbers, parameters, strict=True)
            if id(parameter) in tables
            for moment in MOMENTS
        }
    )


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


def _shape(tensor: Tensor | None) -> str | None:
    return None if tensor is None else str(list(tensor.shape))
