"""The device that everything of one measurement runs on: tensors are made there, and times wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paramixer.machine import check_device

_chosen = [torch.device("cpu")]


def measured_device() -> torch.device:
    """Return the device that is measured."""
    return _chosen[-1]


@contextmanager
def use_device(name: str) -> Iterator[None]:
    """Measure this device within the block: "cpu" or "cuda"; refuses a GPU that is not there."""
    check_device(name)
    _chosen.append(torch.device(name))
    try:
        yield
    finally:
        _chosen.pop()


def synchronize() -> None:
    """Wait until the measured device has done everything that was asked of it."""
    if measured_device().type == "cuda":
        torch.cuda.synchronize()
