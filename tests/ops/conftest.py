from __future__ import annotations

import pytest
import torch

from paramixer.ops import cpu


@pytest.fixture(autouse=True)
def _restore_settings():
    """Threads and instruction set are the process's; a failing test must not leave its own behind."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    if cpu._engine is not None:
        cpu._engine.use_instruction_set("auto")


@pytest.fixture
def nan_memory(monkeypatch):
    """New memory holds NaN: every element that a kernel forgets to write shows."""
    monkeypatch.setattr(cpu, "_empty", lambda *shape: torch.full(shape, torch.nan))
