"""Checks of the operators' arguments; errors name the value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

RESIDUALS = ("factor", "block", "none")
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_tensors(operator: str, shapes: dict[str, tuple[Tensor, str]]) -> None:
    """Check that every argument is a float tensor with its named axes, and that axes, dtypes and devices agree."""
    known: dict[str, tuple[int, str]] = {}
    reference_name, (reference, _) = next(iter(shapes.items()))
    for name, (tensor, axes) in shapes.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{operator}: {name} is a {type(tensor).__name__}, expected a torch.Tensor")
        names = axes.split()
        shape = list(tensor.shape)
        if len(shape) != len(names):
            raise ValueError(f"{operator}: {name} has shape {shape}, expected [{', '.join(names)}]")
        for axis, size in zip(names, shape, strict=True):
            expected, owner = known.setdefault(axis, (size, name))
            if size != expected:
                raise ValueError(
                    f"{operator}: {name} has shape {shape}, [{', '.join(names)}], so {axis} is {size}; "
                    f"but {owner} has {axis} {expected}"
                )
        if tensor.dtype not in FLOATS:
            raise TypeError(f"{operator}: {name} is {tensor.dtype}, expected one of {', '.join(map(str, FLOATS))}")
        if tensor.dtype != reference.dtype:
            raise TypeError(
                f"{operator}: {name} is {tensor.dtype}, but {reference_name} is {reference.dtype}; "
                "convert them to one dtype"
            )
        if tensor.device != reference.device:
            raise ValueError(
                f"{operator}: {name} is on {tensor.device}, but {reference_name} is on {reference.device}; "
                "move them to one device"
            )
    for axis, (size, owner) in known.items():
        if size < 1 and axis not in ("batch", "length"):
            raise ValueError(f"{operator}: {owner} has no {axis}; there must be at least one")


def check_head_widths(operator: str, heads: int, values: Tensor, inputs: Tensor | None = None, width: int = 0) -> None:
    """Check that the channels divide among the heads, and that the inputs have ``width``, or that for each head."""
    channels = values.shape[2]
    if channels % heads:
        raise ValueError(
            f"{operator}: {channels} channels cannot be divided among {heads} heads; "
            f"use {channels // heads * heads or heads} or {(channels // heads + 1) * heads} channels"
        )
    if inputs is not None and inputs.shape[-1] not in (width, heads * width):
        raise ValueError(
            f"{operator}: inputs has shape {list(inputs.shape)}, so its width is {inputs.shape[-1]}; expected {width}, "
            f"read by every head, or {heads} heads x {width} = {heads * width}, each head its own slice"
        )


def as_offsets(
    operator: str, offsets: Tensor | Sequence[object], shape: Sequence[int], axes: str, heads: int | None = None
) -> Tensor:
    """Return the offsets as an int64 tensor on the CPU: of this shape, with heads ``[heads, *shape]``.

    With heads, offsets of this shape are those of every head.
    """
    tensor = as_int64(operator, "offsets", offsets).cpu()
    expected = list(shape)
    if heads is not None:
        if list(tensor.shape) == expected:
            return tensor.expand(heads, *expected)
        if list(tensor.shape) == [heads, *expected]:
            return tensor
        raise ValueError(
            f"{operator}: offsets have shape {list(tensor.shape)}, expected [{axes}] = {expected} for all heads, "
            f"or [heads, {axes}] = {[heads, *expected]}"
        )
    if list(tensor.shape) != expected:
        raise ValueError(f"{operator}: offsets have shape {list(tensor.shape)}, expected [{axes}] = {expected}")
    return tensor


def as_lengths(operator: str, lengths: Tensor | Sequence[int] | None, batch: int) -> Tensor | None:
    """Return the lengths as an int64 tensor ``[batch]``; their values are checked when the operator runs."""
    if lengths is None:
        return None
    tensor = as_int64(operator, "lengths", lengths)
    if list(tensor.shape) != [batch]:
        raise ValueError(f"{operator}: lengths have shape {list(tensor.shape)}, expected [batch] = [{batch}]")
    return tensor.contiguous()


def as_row_ids(operator: str, row_ids: Tensor, values: Tensor) -> Tensor:
    """Return the row ids as int64 ``[batch, length]``; their values are checked when the operator runs."""
    tensor = as_int64(operator, "row_ids", row_ids)
    if tensor.shape != values.shape[:2]:
        raise ValueError(
            f"{operator}: row_ids have shape {list(tensor.shape)}, expected [batch, length] = {list(values.shape[:2])}"
        )
    return tensor.to(values.device)


def past_end(lengths: Tensor, width: int) -> Tensor:
    """Return a mask of the positions past the end of each sequence, bool ``[batch, width]``."""
    return torch.arange(width, device=lengths.device) >= lengths[:, None]


def check_length_values(operator: str, lengths: Tensor | None, length: int) -> None:
    """Check that every length is between 0 and ``length``."""
    if lengths is None or lengths.numel() == 0:
        return
    if _is_checked_on_device((lengths >= 0) & (lengths <= length), f"{operator}: a length is outside 0 to {length}"):
        return
    outside = ((lengths < 0) | (lengths > length)).nonzero().flatten()
    if len(outside):
        b = int(outside[0])
        raise ValueError(
            f"{operator}: lengths[{b}] is {int(lengths[b])}, expected 0 to {length}, the width of the batch"
        )


def check_row_id_values(operator: str, row_ids: Tensor | None, rows: int) -> None:
    """Check that every row id names a row of the table."""
    if row_ids is None or row_ids.numel() == 0:
        return
    if _is_checked_on_device(
        (row_ids >= 0) & (row_ids < rows), f"{operator}: a row id is outside the table, which has {rows} rows"
    ):
        return
    for row_id in row_ids.aminmax():
        if not 0 <= row_id < rows:
            raise ValueError(f"{operator}: row id {int(row_id)} is outside the table, which has {rows} rows")


def check_token_values(tokens: Tensor, vocabulary: int) -> None:
    """Check that every token is below the vocabulary's size."""
    inside = (tokens >= 0) & (tokens < vocabulary)
    if _is_checked_on_device(inside, f"a token is outside the vocabulary, 0 to {vocabulary - 1}"):
        return
    wrong = tokens[~inside]
    if len(wrong):
        raise ValueError(f"token {int(wrong[0])} is outside the vocabulary, 0 to {vocabulary - 1}")


def _is_on_host(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def _is_checked_on_device(holds: Tensor, message: str) -> bool:
    """Return whether the check is left to the device, which then stops with the message and nothing waits for it.

    Numbers on the CPU are checked there, and the error names the value. To read them from a GPU in every step would let
    the GPU wait for the host.
    """
    if _is_on_host(holds):
        return False
    torch._assert_async(holds.all(), message)
    return True


def check_residual(operator: str, residual: str) -> None:
    """Check that the residual is one of the three modes."""
    if residual not in RESIDUALS:
        raise ValueError(f"{operator}: residual={residual!r}; choose from {', '.join(RESIDUALS)}")


def check_ring(operator: str, ring: bool) -> None:
    """Check that ring is a bool."""
    if not isinstance(ring, bool):
        raise TypeError(f"{operator}: ring={ring!r}; it is True or False")


def check_checkpoint_every(operator: str, checkpoint_every: int) -> None:
    """Check that checkpoint_every is a positive whole number."""
    if not isinstance(checkpoint_every, int) or checkpoint_every < 1:
        raise ValueError(
            f"{operator}: checkpoint_every={checkpoint_every}; store the input of every factor with 1, "
            "of every second with 2, ..."
        )


def check_forward_mode(operator: str, *tensors: Tensor) -> None:
    """Raise under forward-mode differentiation: torch's custom ops drop tangents silently."""
    if not torch.compiler.is_compiling() and any(_has_tangent(tensor) for tensor in tensors):
        raise RuntimeError(
            f"{operator} has no forward-mode derivative; use reverse mode (backward, torch.autograd.grad)"
        )


def _has_tangent(tensor: Tensor) -> bool:
    return unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def is_autocasting(tensor: Tensor) -> bool:
    """Return whether autocast is active for the tensor's device."""
    device = tensor.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def as_int64(operator: str, name: str, numbers: object) -> Tensor:
    """Return whole numbers as an int64 tensor."""
    try:
        tensor = torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{operator}: {name} cannot be read as whole numbers: {error}") from error
    if tensor.numel() == 0:
        return tensor.to(torch.int64)
    if tensor.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise TypeError(f"{operator}: {name} are {tensor.dtype}, expected whole numbers")
    return tensor.to(torch.int64)
