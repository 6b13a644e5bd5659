"""What the operators ask of their arguments, and what they say when they do not get it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

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
    for axis in ("links", "factors"):
        if axis in known and known[axis][0] < 1:
            raise ValueError(f"{operator}: {known[axis][1]} has no {axis}; there must be at least one")


def offset_tensor(operator: str, offsets: Tensor | Sequence[object], shape: Sequence[int], axes: str) -> Tensor:
    """Offsets as the operators take them: int64 on the CPU, of this shape."""
    tensor = _whole_numbers(operator, "offsets", offsets).cpu()
    if list(tensor.shape) != list(shape):
        raise ValueError(f"{operator}: offsets have shape {list(tensor.shape)}, expected {axes} = {list(shape)}")
    return tensor


def length_tensor(operator: str, lengths: Tensor | Sequence[int] | None, batch: int) -> Tensor | None:
    """Lengths as the operators take them: int64 ``[batch]``. Their values are checked when the operator runs."""
    if lengths is None:
        return None
    tensor = _whole_numbers(operator, "lengths", lengths)
    if list(tensor.shape) != [batch]:
        raise ValueError(f"{operator}: lengths have shape {list(tensor.shape)}, expected [batch] = [{batch}]")
    return tensor


def check_length_values(operator: str, lengths: Tensor | None, length: int) -> None:
    """Every sequence has between 0 and ``length`` positions."""
    if lengths is None or lengths.numel() == 0:
        return
    outside = ((lengths < 0) | (lengths > length)).nonzero().flatten()
    if len(outside):
        b = int(outside[0])
        raise ValueError(f"{operator}: lengths[{b}] is {int(lengths[b])}, expected 0 to {length}, the length of values")


def check_residual(operator: str, residual: str) -> None:
    """The residual is one of the three modes."""
    if residual not in RESIDUALS:
        raise ValueError(f"{operator}: residual={residual!r}; choose from {', '.join(RESIDUALS)}")


def check_keep(operator: str, keep: int) -> None:
    """At least every so many factors' inputs are kept."""
    if keep < 1:
        raise ValueError(f"{operator}: keep={keep}; keep the input of every factor with 1, of every second with 2, ...")


def _whole_numbers(operator: str, name: str, numbers: object) -> Tensor:
    tensor = torch.as_tensor(numbers)
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool:
        raise TypeError(f"{operator}: {name} are {tensor.dtype}, expected whole numbers")
    return tensor.to(torch.int64)
