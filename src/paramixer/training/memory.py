"""Whether a model and its first training step fit into the machine's memory, told before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.model import Paramixer
from paramixer.ops.chain import count_checkpoints
from paramixer.training.device import training_device

_FLOAT = 4
# The weights, their gradients and Adam's two moments.
_COPIES = 4
# Which settings make a parameter large, by the beginning of its name.
_SETTINGS = {
    "head": ("pooling", "length", "channels", "outputs"),
    "readout": ("pooling", "length", "channels", "outputs"),
    "stem": ("ngrams", "words", "ngram_rows", "vocabulary", "window", "channels"),
    "embedding": ("vocabulary", "channels"),
    "positions": ("length", "channels"),
    "blocks": ("hidden", "channels"),
}


def check_parameters(config: SequenceConfig) -> None:
    """Raise a ValueError that names the settings where training the parameters needs more memory than there is."""
    available, sizes = available_memory(), _count_numbers(config)
    needed = _FLOAT * _COPIES * sum(sizes.values())
    if needed > available:
        largest = max(sizes, key=lambda name: sizes[name])
        names = [name for name in _SETTINGS.get(largest.split(".")[0], ("channels", "hidden")) if hasattr(config, name)]
        raise ValueError(
            f"{', '.join(f'{name}={getattr(config, name)!r}' for name in names)}: {largest} has {sizes[largest]:,} "
            f"numbers, and training all parameters takes {_describe(needed)} with gradients and Adam's moments; "
            f"this machine has {_describe(available)} free; choose smaller ones"
        )


def check_step(config: SequenceConfig, batch: int) -> None:
    """Raise a ValueError that names the settings where the first training step needs more memory than there is.

    Args:
        config: of the model. Of a baseline's activations nothing is known.
        batch: sequences in the largest step.
    """
    if not isinstance(config, ParamixerConfig):
        return
    on_gpu = training_device() == "cuda"
    available = torch.cuda.mem_get_info()[0] if on_gpu else available_memory()
    step = activation_bytes(config, batch)
    if step > available:
        raise ValueError(
            f"batch={batch}, length={config.length}: the first step would take {_describe(step)}; "
            f"{'the GPU' if on_gpu else 'this machine'} has {_describe(available)} free; lower the batch size, or set "
            "model.checkpoint_every higher"
        )


def _count_numbers(config: SequenceConfig) -> dict[str, int]:
    """Return the sizes of a model's parameters by name; for a baseline what its layers have at least."""
    if isinstance(config, ParamixerConfig):
        with torch.device("meta"):
            model = Paramixer(config, init=None)
        return {name: parameter.numel() for name, parameter in model.named_parameters()}
    width = config.channels * (config.length if config.pooling == "flat" else 1)
    return {
        "embedding": config.channels * (config.vocabulary or config.features or 1),
        "positions": config.channels * config.length if config.positions else 0,
        "blocks": config.channels**2,
        "head": width * config.outputs,
    }


def activation_bytes(config: ParamixerConfig, batch: int) -> int:
    """Return the bytes that the values of one training step take, roughly: what is stored for the backward pass."""
    factors = config.link_pattern().offsets(config.mixed_length).shape[0]
    stored = count_checkpoints(factors, config.checkpoint_every)
    if config.layer == "paper":
        # Embedding, dropout and gradients; of each block its input, the values after g, the stored factors, its output.
        rows = 4 + config.blocks * (3 + stored)
        return _FLOAT * batch * config.length * config.channels * rows
    # Of the stem, which is half as wide inside a window, three tensors and a gradient; of each layer gate, values, link
    # inputs and what the norms, the chains and the residuals keep.
    stem = 4 * config.length * config.channels // (2 if config.window > 1 else 1)
    layers = config.blocks * (12 + stored) * config.mixed_length * config.channels
    return _FLOAT * batch * (stem + layers)


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
