"""From resolved settings to a model, and from a folder to the model that a run left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from paramixer.baselines import registry
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.init import initialize
from paramixer.nn.model import Paramixer
from paramixer.nn.pretrained import PretrainedModel, read
from paramixer.training.batches import Collate, build_collate, load_batches
from paramixer.training.recipe import PARAMIXER, Resolved, resolve

# Batch size for reading through the training data.
_BATCH = 256


def build_model(
    task: Task, resolved: Resolved | None = None, seed: int = 0, *, recipe: str | None = None
) -> PretrainedModel:
    """Return a new, initialized model for a task.

    >>> import paramixer as pm
    >>> task = pm.data.load("order", length=32, train=64, validation=8, test=8)
    >>> model = pm.build_model(task)

    Args:
        task: the data.
        resolved: from :func:`resolve`; by default by the recipe "default".
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
    initialize(model, init.name, generator, embedding_bound=init.embedding_bound)
    targets = torch.as_tensor(np.asarray(task.train.targets)) if resolved.config.target == "value" else None
    model.observe(_training_inputs(task, resolved.config), targets)
    return model


def _training_inputs(task: Task, config: SequenceConfig) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield the inputs and lengths of all training sequences, each once."""
    # Those of similar length together, so that little is padding.
    order = np.argsort(np.asarray(task.train.lengths), kind="stable")
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    for batch in load_batches(task.train, batches, Collate(build_collate(task, config).pad, with_lengths=True)):
        yield batch.inputs, batch.lengths


def load_model(folder: str | Path) -> PretrainedModel:
    """Return the model that a run left, whichever system it is."""
    saved = read(folder)
    load = Paramixer.from_pretrained if saved.model_type == PARAMIXER else registry.load_pretrained
    return load(saved.folder)


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers a model learns."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
