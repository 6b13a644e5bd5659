"""The low-rank bottleneck: singular values of a trained mixing matrix against those of a trained softmax attention."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paramixer import machine
from paramixer.data import registry
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.model import Paramixer
from paramixer.files import replace_file
from experiments.cells import Cell, key
from experiments.records import path_of, read_json

NAME = "figure-rank"
SEQUENCES = 8
# Below this share of the largest, a singular value is noise of float64.
NOISE = 1e-14


def compare(cells: Sequence[Cell], results: Path, runs: Path) -> Path | None:
    """Singular values from all runs of the figure; None while one of them is missing."""
    found: dict[str, Any] = {}
    for cell in cells:
        folder = runs / key(cell.final(cell.grid[0]), cell.scale) / "model"
        if not (folder.is_dir() and path_of(results, cell, cell.final(cell.grid[0])).is_file()):
            return None
        # In double precision: a product of many factors has singular values far below float32's noise.
        model = Paramixer.from_pretrained(folder).double()
        options = cell.options
        task = registry.load(str(options.task), **options.given())
        inputs = torch.stack([item.inputs for item in task.test.__getitems__(list(range(SEQUENCES)))])
        inputs = inputs.double() if inputs.is_floating_point() else inputs
        with torch.no_grad():
            values = torch.linalg.svdvals(matrix(model, inputs))
            low = logits(model, inputs)
        scaled = (values / values[:, :1]).mean(0)
        found[cell.row] = {
            "singular_values": [float(value) for value in scaled],
            "rank": _rank(values),
            # Before the softmax; None for what has none.
            "rank_of_logits": None if low is None else _rank(torch.linalg.svdvals(low)),
            "above_a_thousandth": float((values > 1e-3 * values[:, :1]).sum(1).double().mean()),
            "error": _error(results, cell),
            "length": int(inputs.shape[1]),
            "channels": model.config.channels,
        }
    document = {"format": 1, "scale": cells[0].scale, "models": found, "commit": machine.commit()}
    path = results / NAME / "singular-values.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(document, indent=1) + "\n").encode())
    return path


def _rank(values: Tensor) -> float:
    return float((values > NOISE * values[:, :1]).sum(1).double().mean())


def _error(results: Path, cell: Cell) -> float:
    kept = read_json(path_of(results, cell, cell.final(cell.grid[0])))
    return float(kept["record"]["test"]["error"])


def logits(model: Paramixer, inputs: Tensor) -> Tensor | None:
    """Q K^T of the first layer of a Transformer with one head, ``[batch, length, length]``; None for Paramixer."""
    values = model._embed(inputs)
    layer: Any = model.blocks[0]
    if isinstance(layer, ParamixerBlock):
        return None
    attention = layer.inner.self_attn
    queries, keys, _ = F.linear(layer.inner.norm1(values), attention.in_proj_weight, attention.in_proj_bias).chunk(
        3, -1
    )
    return queries @ keys.mT


def matrix(model: Paramixer, inputs: Tensor) -> Tensor:
    """The first block's mixing matrix, ``[batch, length, length]``: A, or softmax(Q K^T)."""
    values = model._embed(inputs)
    (block, *_) = model.blocks
    if isinstance(block, ParamixerBlock):
        return block.mixing_matrix(values)
    layer: Any = block
    inner = layer.inner
    _, weights = inner.self_attn(*[inner.norm1(values)] * 3, need_weights=True, average_attn_weights=True)
    attention: Tensor = weights
    return attention


def read(results: Path) -> dict[str, Any] | None:
    """What :func:`compare` wrote."""
    path = results / NAME / "singular-values.json"
    if not path.is_file():
        return None
    found = read_json(path)
    if not found.keys() >= {"scale", "models"}:
        raise ValueError(f"{path} holds no singular values; restore it, or delete it to measure them again")
    return found


def draw(found: dict[str, Any], path: Path) -> None:
    """Singular values as shares of the largest, on a logarithmic axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": NAME, "font.size": 9}):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for name, model in found["models"].items():
            values = np.maximum(model["singular_values"], 1e-16)
            axes.semilogy(
                np.arange(1, len(values) + 1), values, label=f"{name}, rank {model['rank']:.0f} of {len(values)}"
            )
        axes.axhline(NOISE, color="0.6", lw=0.8, ls=":")
        axes.set_xlabel("singular value")
        axes.set_ylabel("share of the largest")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
