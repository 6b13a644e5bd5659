"""The processes of a run: one alone, or those that torchrun and ``accelerate launch`` start."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import parse_flag_from_env


def accelerator() -> Accelerator:
    """This process among its peers, on the best device there is.

    Left to itself, accelerate looks for peers on a machine without a GPU only when it is told to use the CPU; the
    processes of torchrun would each train alone there, and write over each other.
    """
    return Accelerator(cpu=not torch.accelerator.is_available() or parse_flag_from_env("ACCELERATE_USE_CPU"))
