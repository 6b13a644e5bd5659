"""The low-rank bottleneck: singular values of a trained mixing matrix against those of a trained softmax attention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from experiments.cells import Cell
from experiments.records import StoredRun, find_final, read_json, read_runs, write_json
from paramixer import machine
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.sequence_model import SequenceModel
from paramixer.training.factory import load_model
from paramixer.training.runs.run import open_task

NAME = "figure-rank"
SEQUENCES = 8
# Below this share of the largest, a singular value is noise of float64.
NOISE = 1e-14


def compare_models(cells: Sequence[Cell], results: Path, folders: Path) -> Path | None:
    """Write the singular values of all runs of the figure; None while a record or a trained model is missing."""
    stored = read_runs(results, NAME)
    models: dict[str, Any] = {}
    for cell in cells:
        run = find_final(cell, stored)
        if run is None or not (folders / run.key / "model").is_dir():
            return None
        models[cell.row] = _measure(run, folders / run.key)
    path = results / NAME / "singular-values.json"
    write_json(path, {"format": 1, "scale": cells[0].scale, "models": models, "commit": machine.commit()})
    return path


def _measure(run: StoredRun, folder: Path) -> dict[str, Any]:
    # In double precision: a product of many factors has singular values far below float32's noise.
    model = load_model(folder / "model").double()
    assert isinstance(model, SequenceModel)
    task = open_task(folder)
    inputs = torch.stack([item.inputs for item in task.test.__getitems__(list(range(SEQUENCES)))])
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    with torch.no_grad():
        values = torch.linalg.svdvals(compute_matrix(model, inputs))
        logits = compute_logits(model, inputs)
    scaled = (values / values[:, :1]).mean(0)
    return {
        "singular_values": [float(value) for value in scaled],
        "rank": _count_rank(values),
        # Before the softmax; None for a model without one.
        "rank_of_logits": None if logits is None else _count_rank(torch.linalg.svdvals(logits)),
        "above_a_thousandth": float((values > 1e-3 * values[:, :1]).sum(1).double().mean()),
        "error": run.value,
        "length": int(inputs.shape[1]),
        "channels": model.config.channels,
    }


def _count_rank(values: Tensor) -> float:
    return float((values > NOISE * values[:, :1]).sum(1).double().mean())


def compute_logits(model: SequenceModel, inputs: Tensor) -> Tensor | None:
    """Return Q K^T, ``[batch, length, length]``, of the first layer of a Transformer; None for Paramixer."""
    values = model.embed(inputs).values
    layer: Any = model.blocks[0]
    if isinstance(layer, ParamixerBlock):
        return None
    attention = layer.inner.self_attn
    queries, keys, _ = F.linear(layer.inner.norm1(values), attention.in_proj_weight, attention.in_proj_bias).chunk(
        3, -1
    )
    return queries @ keys.mT


def compute_matrix(model: SequenceModel, inputs: Tensor) -> Tensor:
    """Return the first block's mixing matrix, ``[batch, length, length]``: A, or softmax(Q K^T)."""
    values = model.embed(inputs).values
    (block, *_) = model.blocks
    if isinstance(block, ParamixerBlock):
        return block.mixing_matrix(values)
    layer: Any = block
    inner = layer.inner
    _, weights = inner.self_attn(*[inner.norm1(values)] * 3, need_weights=True, average_attn_weights=True)
    attention: Tensor = weights
    return attention


def read_singular_values(results: Path) -> dict[str, Any] | None:
    """Read what :func:`compare_models` wrote; None if there is nothing."""
    path = results / NAME / "singular-values.json"
    if not path.is_file():
        return None
    document = read_json(path)
    if not document.keys() >= {"scale", "models"}:
        raise ValueError(f"{path} holds no singular values; restore it, or delete it to measure them again")
    return document


def draw(document: dict[str, Any], path: Path) -> None:
    """Draw singular values as shares of the largest, on a logarithmic axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": NAME, "font.size": 9}):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for name, model in document["models"].items():
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
