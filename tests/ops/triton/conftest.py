"""The kernels run in Triton's interpreter, in a process of their own (make test-triton), or on a GPU."""

from __future__ import annotations

import os

import pytest
import torch

# Triton reads it when a kernel is defined, so it must stand before the first import.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = [] if INTERPRETED or torch.cuda.is_available() else ["test_*.py"]


@pytest.fixture
def nan_memory():
    """New memory holds NaN: every element that a kernel forgets to write shows."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
