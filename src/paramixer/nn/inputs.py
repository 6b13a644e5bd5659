"""Checks of a model's input, and padding up to the length that the model computes with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer.nn.config import SequenceConfig
from paramixer.ops.checks import as_lengths, check_length_values, is_autocasting, past_end


def check_inputs(config: SequenceConfig, inputs: Tensor, dtype: torch.dtype) -> None:
    """Raise an error that names the problem unless inputs have the config's kind, shape and dtype.

    Args:
        config: of the model.
        inputs: token ids ``[batch, length]`` or numbers ``[batch, length, features]``.
        dtype: of the model's parameters.
    """
    if not isinstance(inputs, Tensor):
        raise TypeError(f"inputs are a {type(inputs).__name__}, expected a torch.Tensor")
    if config.vocabulary is not None:
        if inputs.dim() != 2:
            raise ValueError(f"token ids have shape {list(inputs.shape)}, expected [batch, length]")
        if inputs.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"token ids are {inputs.dtype}, expected torch.int64")
    else:
        if inputs.dim() != 3 or inputs.shape[2] != config.features:
            raise ValueError(f"inputs have shape {list(inputs.shape)}, expected [batch, length, {config.features}]")
        if not inputs.is_floating_point():
            raise TypeError(f"inputs are {inputs.dtype}, expected real numbers such as torch.float32")
        if inputs.dtype != dtype and not is_autocasting(inputs):
            raise TypeError(f"inputs are {inputs.dtype}, the model's parameters are {dtype}; convert one of them")
    width = inputs.shape[1]
    if width < 1:
        raise ValueError("the sequences are empty; give at least one position")
    if width > config.length:
        raise ValueError(
            f"length {width} exceeds the model's {config.length}; make the model with length={width} or cut the input"
        )


def pad_inputs(
    config: SequenceConfig, inputs: Tensor, lengths: Tensor | Sequence[int] | None
) -> tuple[Tensor, Tensor | None]:
    """Return inputs whose padding is harmless, and the lengths that the blocks use (None: all positions count)."""
    batch, width = inputs.shape[:2]
    counts = as_lengths("Paramixer", lengths, batch)
    or_pad = "" if config.vocabulary is None else ", or a pad id"
    if counts is not None:
        counts = counts.to(inputs.device)
        if not torch.compiler.is_compiling():
            check_length_values("Paramixer", counts, width)
    elif config.padding == "length" and config.pad is not None:
        places = torch.arange(1, width + 1, device=inputs.device)
        counts = torch.where(inputs != config.pad, places, 0).amax(1)
    if counts is not None:
        if config.padding == "symbol" and config.pad is None:
            raise ValueError(f"lengths need padding='length'{or_pad}")
        # Whatever is past the end, NaN included, must not enter a product.
        past = past_end(counts, width)
        inputs = inputs.masked_fill(past if inputs.dim() == 2 else past[..., None], config.pad or 0)
    if config.padding == "length":
        _check_ids(config, inputs)
        return inputs, counts
    if config.pad is not None:
        inputs = F.pad(inputs, (0, config.length - width), value=config.pad)
    elif width < config.length:
        raise ValueError(
            f"length {width} is shorter than the model's {config.length}; give full sequences, "
            f"use padding='length'{or_pad}"
        )
    _check_ids(config, inputs)
    return inputs, None


def _check_ids(config: SequenceConfig, inputs: Tensor) -> None:
    """Raise an error that names a token id outside the vocabulary; torch's own message does not."""
    if config.vocabulary is None or torch.compiler.is_compiling() or inputs.device.type != "cpu" or not inputs.numel():
        return
    for bound in inputs.aminmax():
        if not 0 <= int(bound) < config.vocabulary:
            raise ValueError(f"token id {int(bound)} is outside the vocabulary, 0 to {config.vocabulary - 1}")
