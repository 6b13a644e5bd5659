"""From resolved settings to a model, and from a folder to the model that a run left."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
from torch import nn

from paramixer.baselines import registry
from paramixer.data.rng import permutation
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.data_dependent_init import scale_by_data
from paramixer.nn.init import initialize
from paramixer.nn.model import Paramixer
from paramixer.nn.pretrained import PretrainedModel, read
from paramixer.training.batches import build_collate, load_batches
from paramixer.training.recipe import PARAMIXER, Resolved, resolve

# Sequences by which the data-dependent initialization scales.
_SEQUENCES = 32


def build_model(
    task: Task, resolved: Resolved | None = None, seed: int = 0, *, recipe: str | None = None
) -> PretrainedModel:
    """Return a new, initialized model for a task.

    >>> import paramixer as pm
    >>> task = pm.data.load("order", length=32, train=64, validation=8, test=8)
    >>> model = pm.build_model(task)

    Args:
        task: the data, some of which may scale the initial weights.
        resolved: from :func:`resolve`; by default the task's own recipe.
        seed: of the initial weights.
        recipe: a recipe's name or file, where nothing is resolved yet.
    """
    resolved = resolved or resolve(task, recipe=recipe)
    generator = torch.Generator().manual_seed(seed)
    init = resolved.init
    if resolved.system != PARAMIXER:
        return registry.build(resolved.config, generator, embedding_bound=init.embedding_bound)
    assert isinstance(resolved.config, ParamixerConfig)
    model = Paramixer(resolved.config, init=None)
    options = {field.name: getattr(init, field.name) for field in dataclasses.fields(init)}
    scale = options.pop("scale_by_data")
    initialize(model, options.pop("name"), generator, **options)
    if scale:
        some = permutation(len(task.train), seed)[:_SEQUENCES]
        batch = next(load_batches(task.train, [some], build_collate(task, resolved.config)))
        scale_by_data(model, batch.inputs, batch.lengths)
    return model


def load_model(folder: str | Path) -> PretrainedModel:
    """Return the model that a run left, whichever system it is."""
    saved = read(folder)
    load = Paramixer.from_pretrained if saved.model_type == PARAMIXER else registry.load_pretrained
    return load(saved.folder)


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers a model learns."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
