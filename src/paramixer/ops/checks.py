"""What the operators ask of their arguments, and what they say when they do not get it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

RESIDUALS = ("factor", "block", "none")
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_tensors(operator: str, shapes: dict[str, tuple[Tensor, str]]) -> None:
    """Each argument is a float tensor of its named axes; equal axes are equally long; all share dtype and device."""
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


def offset_tensor(operator: str, offsets: Tensor | Sequence[object], shape: Sequence[int], axes: str) -> Tensor:
    """Offsets as the operators take them: int64 on the CPU, of this shape."""
    tensor = whole_numbers(operator, "offsets", offsets).cpu()
    if list(tensor.shape) != list(shape):
        raise ValueError(f"{operator}: offsets have shape {list(tensor.shape)}, expected {axes} = {list(shape)}")
    return tensor


def length_tensor(operator: str, lengths: Tensor | Sequence[int] | None, batch: int) -> Tensor | None:
    """Lengths as the operators take them: int64 ``[batch]``. Their values are checked when the operator runs."""
    if lengths is None:
        return None
    tensor = whole_numbers(operator, "lengths", lengths)
    if list(tensor.shape) != [batch]:
        raise ValueError(f"{operator}: lengths have shape {list(tensor.shape)}, expected [batch] = [{batch}]")
    return tensor.contiguous()


def symbol_tensor(operator: str, symbols: Tensor, values: Tensor) -> Tensor:
    """Rows of a table as the operators take them: int64 ``[batch, length]``. Their values are checked when it runs."""
    tensor = whole_numbers(operator, "symbols", symbols)
    if tensor.shape != values.shape[:2]:
        raise ValueError(
            f"{operator}: symbols have shape {list(tensor.shape)}, expected [batch, length] = {list(values.shape[:2])}"
        )
    return tensor.to(values.device)


def past_end(lengths: Tensor, width: int) -> Tensor:
    """Which positions lie past the end of each sequence, bool ``[batch, width]``."""
    return torch.arange(width, device=lengths.device) >= lengths[:, None]


def check_length_values(operator: str, lengths: Tensor | None, length: int) -> None:
    """Every sequence has between 0 and ``length`` positions."""
    if lengths is None or lengths.numel() == 0:
        return
    outside = ((lengths < 0) | (lengths > length)).nonzero().flatten()
    if len(outside):
        b = int(outside[0])
        raise ValueError(
            f"{operator}: lengths[{b}] is {int(lengths[b])}, expected 0 to {length}, the width of the batch"
        )


def check_symbol_values(operator: str, symbols: Tensor | None, rows: int) -> None:
    """Every symbol has a row of the table."""
    if symbols is None or symbols.numel() == 0:
        return
    for symbol in symbols.aminmax():
        if not 0 <= symbol < rows:
            raise ValueError(f"{operator}: symbol {int(symbol)} has no row in a table of {rows}")


def check_residual(operator: str, residual: str) -> None:
    """The residual is one of the three modes."""
    if residual not in RESIDUALS:
        raise ValueError(f"{operator}: residual={residual!r}; choose from {', '.join(RESIDUALS)}")


def check_ring(operator: str, ring: bool) -> None:
    """A ring or none; anything else would be one by accident."""
    if not isinstance(ring, bool):
        raise TypeError(f"{operator}: ring={ring!r}; it is True or False")


def check_keep(operator: str, keep: int) -> None:
    """At least every so many factors' inputs are kept."""
    if not isinstance(keep, int) or keep < 1:
        raise ValueError(f"{operator}: keep={keep}; keep the input of every factor with 1, of every second with 2, ...")


def check_forward_mode(operator: str, *tensors: Tensor) -> None:
    """Torch's custom ops drop tangents without a word; say so instead."""
    if not torch.compiler.is_compiling() and any(_has_tangent(tensor) for tensor in tensors):
        raise RuntimeError(
            f"{operator} has no forward-mode derivative; use reverse mode (backward, torch.autograd.grad)"
        )


def _has_tangent(tensor: Tensor) -> bool:
    return unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def autocasting(tensor: Tensor) -> bool:
    """Whether an autocast is active for the tensor's device."""
    device = tensor.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def whole_numbers(operator: str, name: str, numbers: object) -> Tensor:
    """Whole numbers as an int64 tensor."""
    try:
        tensor = torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{operator}: {name} cannot be read as whole numbers: {error}") from error
    if tensor.numel() == 0:
        return tensor.to(torch.int64)
    if tensor.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise TypeError(f"{operator}: {name} are {tensor.dtype}, expected whole numbers")
    return tensor.to(torch.int64)
