"""The CPU in place of a GPU: everything that asks for "cuda" gets it, so that the paths for a GPU run without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode


class _Redirect(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        return func(*map(_on_cpu, args), **kwargs)


def _on_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


@pytest.fixture
def pretended_gpu(monkeypatch):
    """One entry for each time that the device was waited for."""
    waited: list[None] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "pretended GPU")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(None))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 10)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 30)
    with _Redirect():
        yield waited
