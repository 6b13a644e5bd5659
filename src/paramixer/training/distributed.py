"""The processes of a run: one alone, or those that torchrun and ``accelerate launch`` start."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import parse_flag_from_env


def build_accelerator() -> Accelerator:
    """Return this process among its peers, on the best device there is.

    Left to itself, accelerate looks for peers on a machine without a GPU only when it is told to use the CPU; the
    processes of torchrun would each train alone there, and write over each other.
    """
    return Accelerator(cpu=not torch.accelerator.is_available() or parse_flag_from_env("ACCELERATE_USE_CPU"))


def any_process(flag: bool, accelerator: Accelerator) -> bool:
    """Return whether the flag is set in any process: all of them must decide alike."""
    if accelerator.num_processes == 1:
        return flag
    votes = torch.tensor(float(flag), device=accelerator.device)
    return float(accelerator.reduce(votes, "sum")) > 0


def autocast(accelerator: Accelerator, precision: str) -> torch.autocast:
    """Return a context of bfloat16 autocast where it is asked for; accelerate's own is one for the whole process."""
    return torch.autocast(accelerator.device.type, torch.bfloat16, enabled=precision == "bf16")
