"""The device that a process trains on: the one asked for, or else the best one there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paramixer.machine import check_device

# Devices asked for by name, the newest last.
_devices: list[str] = []


@contextmanager
def use_device(name: str | None) -> Iterator[None]:
    """Train on "cpu" or "cuda" within the block; None chooses the best device there is."""
    if name is None:
        yield
        return
    check_device(name)
    _devices.append(name)
    try:
        yield
    finally:
        _devices.pop()


def training_device() -> str:
    """Return the type of the device that this process trains on, such as "cpu" or "cuda"."""
    wanted = _devices[-1] if _devices else None
    # accelerate's own variable, read as accelerate reads it.
    refused = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("y", "yes", "t", "true", "on", "1")
    best = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if wanted == "cpu" or refused or best is None else best.type
