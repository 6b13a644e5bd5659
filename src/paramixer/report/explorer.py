"""Sequences for the page's explorer, which shows the mixing matrix and attributions position by position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from paramixer.attribution import Explanation, explain
from paramixer.data.task import Task, TaskInfo
from paramixer.nn.model import Paramixer
from paramixer.nn.sequence_model import SequenceModel
from paramixer.report.error_analysis import Predictions
from paramixer.report.factor_data import pack_factors
from paramixer.report.sequence import view_sequence
from paramixer.report.wording import format_prediction, format_target

# Bytes of all explorers of a page; the rest of a page is small.
MAX_BYTES = 7_000_000
_MAX_SEQUENCES = 3


def build_explorer(
    model: SequenceModel,
    info: TaskInfo,
    sequence: Tensor,
    title: str,
    max_bytes: int = MAX_BYTES,
    explanation: Explanation | None = None,
) -> dict[str, Any]:
    """Return the JSON document of one sequence.

    Args:
        model: predicts the sequence.
        info: the task of the model.
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        title: of the sequence.
        max_bytes: size limit of the factors.
        explanation: of this sequence, computed if None; the explorer starts at its first position.
    """
    model.eval()
    factors = pack_factors(model, sequence, max_bytes)
    # The explorer does not show the Jacobian, the slowest part.
    explanation = explanation or explain(model, sequence, derivatives=False)
    padding = [0.0] * (factors.length - explanation.length)
    return {
        "title": title,
        "length": factors.length,
        "view": view_sequence(sequence, info, factors.length).document(),
        "blocks": factors.blocks,
        "omitted_blocks": factors.omitted_blocks,
        "windows": isinstance(model, Paramixer) and model.window > 1,
        "evidence": [_round(value) for value in explanation.evidence.tolist()[: factors.length]] + padding,
        "occlusion": [_round(value) for value in explanation.occlusion.tolist()[: factors.length]] + padding,
        "start": explanation.positions[0],
    }


def build_explorers(model: SequenceModel, task: Task, predictions: Predictions, max_bytes: int) -> list[dict[str, Any]]:
    """Return explorers of the sequence with the smallest loss and of the worst mistakes, within a size limit."""
    explorers: list[dict[str, Any]] = []
    for row in dict.fromkeys([int(np.argmin(predictions.losses)), *predictions.rank_mistakes()]):
        if not predictions.outputs[row].isfinite().all():
            continue
        index = int(predictions.indices[row])
        prediction = format_prediction(predictions.outputs[row], task)
        title = title_sequence(f"test {index}", prediction, format_target(predictions.targets[row], task), task)
        explorer = build_explorer(model, task, task.test[index].inputs, title, max_bytes)
        size = sum(len(block["entries"]) for block in explorer["blocks"]) + 12 * explorer["length"]
        if explorers and (size > max_bytes or explorer["omitted_blocks"]):
            break
        max_bytes -= size
        explorers.append(explorer)
        if len(explorers) == _MAX_SEQUENCES:
            break
    return explorers


def title_sequence(name: str, prediction: str, target: str | None, info: TaskInfo) -> str:
    """Return a title with the name of a sequence, its prediction, and its label or target if it has one."""
    noun = "label" if info.target == "class" else "target"
    return f"{name}: prediction {prediction}" + (f", {noun} {target}" if target is not None else "")


def title_explorers(explorers: Sequence[dict[str, Any]]) -> str:
    """Return the heading above the explorers."""
    return "Mixing matrix" if any(explorer["blocks"] for explorer in explorers) else "Attribution"


def describe_explorers(explorers: Sequence[dict[str, Any]]) -> str:
    """Return a help text: how to use the explorers, what they show and what they omit."""
    text = "Select a position with the pointer, a tap, or the arrow keys. "
    if any(explorer["blocks"] for explorer in explorers):
        text += (
            "Bars: row or column of the mixing matrix A at this position, heights on a square-root scale. Strips: "
            "the product after each factor. Table: the links of this position in each factor. Entries are rounded to "
            "8 bits."
        )
    elif any(explorer["omitted_blocks"] for explorer in explorers):
        text += "The factors of this model are too large for a page; paramixer explain draws single rows of A."
    elif any(explorer["windows"] for explorer in explorers):
        text += (
            "Bars show the attribution of the prediction to each position. This model mixes windows of positions; "
            "paramixer explain draws rows of its mixing matrices."
        )
    else:
        text += "This model has no mixing matrix; bars show the attribution of the prediction to each position."
    if any(explorer["blocks"] and explorer["omitted_blocks"] for explorer in explorers):
        text += " Later blocks are omitted: the page would be too large."
    return text


def _round(value: float) -> float:
    return float(f"{value:.3g}") if math.isfinite(value) else 0.0
