"""Whether a model and its first training step fit into the machine's memory, told before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.model import Paramixer
from paramixer.ops.chain import count_checkpoints

_FLOAT = 4
# The weights, their gradients and Adam's two moments.
_COPIES = 4
# Which settings make a parameter large, by the beginning of its name.
_SETTINGS = {
    "head": ("pooling", "length", "channels", "outputs"),
    "embedding": ("vocabulary", "channels"),
    "positions": ("length", "channels"),
    "blocks": ("hidden", "channels"),
}


def check_memory(config: SequenceConfig, batch: int) -> None:
    """Raise a ValueError that names the setting where parameters or the first step need more memory than there is.

    Args:
        config: of the model. Only Paramixer's memory is predicted; a baseline's package may need anything.
        batch: sequences per step.
    """
    if not isinstance(config, ParamixerConfig):
        return
    available = available_memory()
    with torch.device("meta"):
        model = Paramixer(config, init=None)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    parameters = _FLOAT * _COPIES * sum(sizes.values())
    if parameters > available:
        largest = max(sizes, key=lambda name: sizes[name])
        names = _SETTINGS.get(largest.split(".")[0], ("channels", "hidden"))
        raise ValueError(
            f"{', '.join(f'{name}={getattr(config, name)!r}' for name in names)}: {largest} has {sizes[largest]:,} "
            f"numbers, and training all parameters takes {_describe(parameters)} with gradients and Adam's moments; "
            f"this machine has {_describe(available)} free; choose smaller ones"
        )
    step = activation_bytes(config, batch)
    if parameters + step > available:
        raise ValueError(
            f"batch={batch}, length={config.length}: the first step would take {_describe(parameters + step)}; "
            f"this machine has {_describe(available)} free; lower the batch size, or set model.checkpoint_every higher"
        )


def activation_bytes(config: ParamixerConfig, batch: int) -> int:
    """Return the bytes that the values of one training step take, roughly: what is stored for the backward pass."""
    factors = config.link_pattern().offsets(config.length).shape[0]
    stored = count_checkpoints(factors, config.checkpoint_every)
    # Embedding, dropout and gradients; of each block its input, the values after g, the stored factors and its output.
    rows = 4 + config.blocks * (3 + stored)
    return _FLOAT * batch * config.length * config.channels * rows


def available_memory() -> int:
    """Return the bytes that a process could allocate now; what the system cannot tell counts as unlimited."""
    groups = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    texts = (path.read_text().strip() for path in groups if path.is_file())
    return min([_free_memory(), *(int(text) for text in texts if text.isdecimal())])


def _free_memory() -> int:
    path = Path("/proc/meminfo")
    if path.is_file():
        for line in path.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**62


def _describe(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
