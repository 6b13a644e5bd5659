from __future__ import annotations

import os
from pathlib import Path

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


@pytest.fixture
def shared_data() -> Path:
    """Real data sets beside the project, for tests that need them."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs real data in ../shared/data")
    return folder
