"""How raw input becomes the input of an export, and its answers a prediction, as JSON."""

from __future__ import annotations

from typing import Any

from paramixer.data.task import TaskInfo
from paramixer.export.program import input_document
from paramixer.nn.pretrained import PretrainedModel

FORMAT = 1


def describe(model: PretrainedModel, info: TaskInfo) -> dict[str, Any]:
    """Return the document; ``example.py`` and docs/export.md show how it is read.

    Args:
        model: what is exported.
        info: of the data that it was trained on.
    """
    vocabulary = info.vocabulary
    document: dict[str, Any] = {
        "format": FORMAT,
        "kind": "numbers" if vocabulary is None else "symbols",
        "target": info.target,
        "classes": list(info.classes),
        "length": info.length,
        **input_document(model),
    }
    if vocabulary is None:
        # Mean and scale of the numbers are part of the model.
        return {**document, "features": info.features}
    return {
        **document,
        "symbols": list(vocabulary.symbols),
        "unit": vocabulary.unit,
        "upper_case": vocabulary.fold_case,
        "pad": vocabulary.pad or 0,
        "unknown": vocabulary.unknown,
        "cls": vocabulary.cls,
    }
