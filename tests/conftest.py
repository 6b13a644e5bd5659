from __future__ import annotations

import pytest
import torch
from torch import Generator


@pytest.fixture
def generator() -> Generator:
    """The randomness of a test, the same in every run."""
    return torch.Generator().manual_seed(0)
