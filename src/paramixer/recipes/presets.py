"""The paper's table of hyperparameters: for each task the model and how it was trained."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from paramixer.links import log2_ceil, whole_number
from paramixer.nn.config import ParamixerConfig, ProtocolName


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the paper trained on a task: Adam without a schedule."""

    learning_rate: float
    """Step size of Adam."""
    batch: int
    """Sequences a step."""
    epochs: int
    """Passes over the training data in the authors' code."""
    clip: float | None
    """Largest norm of the gradient, or None for no clipping."""
    metric: str
    """What the paper reports: error, accuracy or roc_auc."""


_SYNTHETIC = {"learning_rate": 1e-3, "batch": 40, "clip": 1.0, "metric": "error"}
_LRA = {"learning_rate": 1e-3, "clip": None, "metric": "accuracy"}
_DOCUMENTS = {"learning_rate": 1e-4, "batch": 16, "epochs": 50, "clip": 1.0, "metric": "accuracy"}
_GENOME = {"learning_rate": 1e-4, "batch": 16, "epochs": 200, "clip": 1.0, "metric": "roc_auc"}
_RECIPES: dict[str, dict[str, Any]] = {
    "adding": {**_SYNTHETIC, "epochs": 50},
    "order": {**_SYNTHETIC, "epochs": 30},
    "listops": {**_LRA, "batch": 48, "epochs": 150},
    "image": {**_LRA, "batch": 64, "epochs": 150},
    "text": {**_LRA, "learning_rate": 1e-4, "batch": 32, "epochs": 200},
    "pathfinder": {**_LRA, "batch": 64, "epochs": 100},
    "documents-16k": _DOCUMENTS,
    "documents-32k": _DOCUMENTS,
    "hfdna": _GENOME,
    "mtcdna": _GENOME,
}

# What learns in minutes; docs/architecture.md says why. Text and documents: links that follow from the symbol alone.
_BY_SYMBOL = {"init": "local", "embedding_bound": None, "embedding_dropout": 0.0}
_QUICK_DOCUMENTS: tuple[dict[str, Any], dict[str, Any]] = (
    {"learning_rate": 1e-4, "link_rate": 0.1, "head_rate": 10.0, "settle": True},
    _BY_SYMBOL,
)
_QUICK_GENOME: tuple[dict[str, Any], dict[str, Any]] = (
    {"learning_rate": 1e-3, "link_rate": 0.3, "settle": True},
    # In a fraction of the paper's steps nothing is overfitted, and dropout of 0.8 would only slow it down.
    {"init": "local", "embedding_dropout": 0.0, "block_dropout": 0.0},
)
_QUICK: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "adding": ({"learning_rate": 2e-3, "settle": True}, {"init": "even"}),
    "order": ({"learning_rate": 2e-3}, {"init": "local"}),
    "listops": ({"learning_rate": 3e-3}, {"init": "identity"}),
    "pathfinder": (
        {"learning_rate": 1e-3, "link_rate": 0.3, "head_rate": 0.01, "batch": 16, "clip": 1.0, "settle": True},
        {"init": "pairs", "amounts": True},
    ),
    "text": ({"learning_rate": 1e-3, "link_rate": 0.03, "clip": 1.0}, _BY_SYMBOL),
    # Small embeddings: what is learned of the order of the shades soon outweighs what was drawn.
    "image": (
        {"learning_rate": 2e-3, "head_rate": 0.3, "clip": 1.0},
        {"init": "local", "embedding_bound": 0.1, "block_dropout": 0.5},
    ),
    "documents-16k": _QUICK_DOCUMENTS,
    "documents-32k": _QUICK_DOCUMENTS,
    "hfdna": _QUICK_GENOME,
    "mtcdna": _QUICK_GENOME,
}

_CHARACTERS = {"hidden": 128, "positions": False, "pooling": "cls", "pad": 0, "embedding_bound": 0.1}
_PAPERS = {**_CHARACTERS, "vocabulary": 4290, "outputs": 4, "channels": 100, "embedding_dropout": 0.2}
_HEAVY_DROPOUT = {"embedding_dropout": 0.2, "block_dropout": 0.8}
_BASES = {**_HEAVY_DROPOUT, "length": 16384, "vocabulary": 5, "outputs": 2, "hidden": 128, "pad": 0}
_MODELS: dict[str, dict[str, Any]] = {
    "adding": {"length": 32768, "features": 2, "outputs": 1, "target": "value"},
    "order": {"length": 16384, "vocabulary": 6, "outputs": 4},
    "listops": {"length": 2000, "vocabulary": 16, "outputs": 10, "pad": 0},
    "image": {**_HEAVY_DROPOUT, "length": 1024, "protocol": "cdil", "vocabulary": 256, "outputs": 10},
    "text": {**_CHARACTERS, "length": 4096, "protocol": "cdil", "vocabulary": 97, "outputs": 2, "blocks": 3}
    | {"embedding_dropout": 0.4},
    "pathfinder": {"length": 1024, "vocabulary": 256, "outputs": 2},
    "documents-16k": {**_PAPERS, "length": 16384},
    "documents-32k": {**_PAPERS, "length": 32768},
    "hfdna": _BASES,
    "mtcdna": {**_BASES, "blocks": 2},
}


def preset(name: str, protocol: ProtocolName | None = None, length: int | None = None) -> ParamixerConfig:
    """The paper's model for a task.

    Args:
        name: adding, order, listops, image, text, pathfinder, documents-16k, documents-32k, hfdna or mtcdna.
        protocol: "chord" or "cdil"; by default the table's own.
        length: by default the longest in the table; CHORD's links follow it.
    """
    _check(name)
    settings = {"protocol": "chord", **_MODELS[name]}
    if protocol is not None:
        settings["protocol"] = protocol
    if length is not None:
        settings["length"] = whole_number("length", length)
    return ParamixerConfig(**settings, links=_links(name, settings["protocol"], settings["length"]))


def recipe(name: str) -> Recipe:
    """How the paper trained the preset of this name."""
    _check(name)
    return Recipe(**_RECIPES[name])


@dataclass(frozen=True)
class Quick:
    """What to change of the paper's recipe and model so that a task is learned in minutes."""

    training: dict[str, Any]
    """Fields of ``TrainingOptions``."""
    model: dict[str, Any]
    """Fields of :class:`ParamixerConfig`."""


def quick(name: str, length: int) -> Quick:
    """Another start and step sizes of their own for the parts of a model, by the task's preset and N."""
    _check(name)
    training, model = _QUICK[name]
    if name in ("adding", "order") and length > 300:
        # A flat head has a weight for every position: the more there are, the more rarely it sees each of them matter.
        training = training | {"head_rate": float(f"{300 / length:.1g}")}
    if _QUICK[name] is _QUICK_GENOME:
        # Here every position tells the same, and a step of the head is N times as large.
        training = training | {"head_rate": float(f"{min(1.0, 10 / length):.1g}")}
    return Quick(training, model)


def _links(name: str, protocol: str, length: int) -> int:
    if protocol == "cdil":
        return 3 if name == "image" else 9
    # The table's CHORD has log2 N links on the synthetic tasks, which leaves 1/N of A empty, and one more elsewhere.
    return log2_ceil(length) + (name not in ("adding", "order"))


def _check(name: str) -> None:
    if name not in _MODELS:
        close = difflib.get_close_matches(str(name), _MODELS, 1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no preset {name!r}{hint}; choose from {', '.join(_MODELS)}")
