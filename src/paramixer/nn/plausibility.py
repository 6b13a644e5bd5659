"""Saved models that come from anyone: a config must fit the size of its weights file before anything is built."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Positions and rows are counted in 32 bits in places; no model comes near.
_MOST = 2**31 - 1
# Each of these is an axis of some tensor that the file holds whole, or a factor of one.
_AXES = ("outputs", "channels", "features")
_PAPER_AXES = ("vocabulary", "hidden", "links", "factors")
_PRENORM_AXES = ("hidden", "links", "factors", "heads", "link_width")
# Tables that every model of the type has; baselines are built in memory before their weights are read.
_PRODUCTS = {
    "paramixer": [("factors", "links")],
    "baseline": [("vocabulary", "channels"), ("features", "channels"), ("channels", "hidden")],
}


def check_size(folder: Path, model_type: str, settings: Mapping[str, Any]) -> None:
    """Raise a ValueError if a config asks for more than its weights file holds, or for absurd numbers.

    Only the header of the file is read, and nothing is built: a config of a few bytes may ask for any amount of memory
    and time.

    Args:
        folder: of the model.
        model_type: "paramixer" or "baseline".
        settings: fields of the config as they were read.
    """
    config, weights = folder / CONFIG, folder / WEIGHTS
    for name, value in settings.items():
        if isinstance(value, int) and not -1 <= value <= _MOST:
            bound = f"at most {_MOST:,}" if value > 0 else "positive"
            raise ValueError(f"{config}: {name}={value}; no model has that, it must be {bound}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{config}: {name}={value}; it must be a finite number")
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing; {folder} has a config but no weights")
    tensors, numbers = _measure(weights)
    limits = {"blocks": (tensors, "tensors")} | dict.fromkeys(_axes(model_type, settings), (numbers, "numbers"))
    for name, (limit, what) in limits.items():
        value = settings.get(name)
        if isinstance(value, int) and value > limit:
            raise ValueError(f"{config}: {name}={value} does not fit {weights.name}, which holds {limit:,} {what}")
    for names in _PRODUCTS[model_type]:
        sizes = [settings.get(name) for name in names]
        product = math.prod(size for size in sizes if isinstance(size, int))
        if None not in sizes and product > numbers and settings.get("model") != "ngrams":
            asked = " and ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
            raise ValueError(f"{config}: {asked} do not fit {weights.name}, which holds {numbers:,} numbers")


def check_finite(path: Path, weights: Mapping[str, Tensor], masks: Collection[str] = ()) -> None:
    """Raise a ValueError that names a tensor with NaN or infinite numbers.

    Args:
        path: of the file, for the message.
        weights: tensors by name.
        masks: tensors that may hold infinities, as masks of packages do.
    """
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            continue
        wrong = tensor.isnan() if name in masks else ~tensor.isfinite()
        if bool(wrong.any()):
            raise ValueError(
                f"{path}: {name} has {int(wrong.sum()):,} numbers that are NaN or infinite; restore the file, "
                "or train again"
            )


def _axes(model_type: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    if model_type == "baseline":
        if settings.get("model") == "ngrams":
            return ("outputs", "rank")
        return (*_AXES, "hidden", "heads", "rank", *(("length",) if settings.get("positions", True) else ()))
    if settings.get("layer") == "paper":
        return (*_AXES, *_PAPER_AXES)
    return (*_AXES, *_PRENORM_AXES)


def _measure(path: Path) -> tuple[int, int]:
    """Return how many tensors, and how many numbers in them, a file's header lists."""
    try:
        with safe_open(path, framework="pt") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
    return len(shapes), sum(math.prod(shape) for shape in shapes)
