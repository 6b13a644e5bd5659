from __future__ import annotations

import os

import pytest
import torch
from torch import Generator

if "PYTEST_XDIST_WORKER" in os.environ:
    # Test processes share the cores; threads on top of them only wait for each other.
    torch.set_num_threads(1)


@pytest.fixture
def generator() -> Generator:
    """The randomness of a test, the same in every run."""
    return torch.Generator().manual_seed(0)
