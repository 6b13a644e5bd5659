"""Runs by the quick recipes: the paper's network, with initializations and learning rates that the package has not.

A quick recipe is a recipe of the package but for two things, which are taken out of it here: its initialization and its
learning-rate factors. The rest goes the package's way: ``resolve``, a model, ``fit`` with parameter groups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from experiments import callers_run
from experiments.quick.data_dependent_init import SEQUENCES, scale_by_data
from experiments.quick.initializations import Initialization, initialize
from experiments.quick.parameter_groups import group_parameters
from paramixer.data.rng import permutation
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.paper import PaperParamixer
from paramixer.nn.pretrained import PretrainedModel
from paramixer.recipes import read_recipe
from paramixer.training.batches import build_collate, load_batches
from paramixer.training.callback import Callback
from paramixer.training.factory import build_model
from paramixer.training.recipe import Resolved
from paramixer.training.runs.record import Outcome
from paramixer.training.runs.run import RunSettings

QUICK = "quick"
_RECIPES = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class QuickSettings:
    """The complete settings of a quick run."""

    resolved: Resolved
    """What the package knows of; its initialization does not count."""
    init: Initialization
    """How PaperParamixer is initialized."""
    lr_factors: dict[str, float | str]
    """Learning-rate factors by patterns of parameter names."""


def train(settings: RunSettings, folder: Path, *, callbacks: Sequence[Callback] = (), test: bool = True) -> Outcome:
    """Train in a run folder, or go on with the run that is there, to the bit as if it had not been interrupted.

    Args:
        settings: of a run whose recipe is "quick".
        folder: of the run.
        callbacks: called after the loop's own.
        test: whether the model is evaluated on test in the end.
    """
    settings = settings.with_absolute_paths()
    task = settings.load_task()
    quick = resolve_quick(task, settings)
    model = build_quick(task, quick, settings.seed)
    return callers_run.train(
        model,
        task,
        settings,
        quick.resolved,
        folder,
        init=dataclasses.asdict(quick.init),
        parameter_groups=group_parameters(model, quick.lr_factors, task.length),
        callbacks=callbacks,
        test=test,
    )


def resolve_quick(task: Task, settings: RunSettings) -> QuickSettings:
    """Return the complete settings of a run on this data."""
    recipe = read_recipe(str(_RECIPES / f"{task.preset}.yaml"), task.preset)
    init = Initialization(**{**recipe.init, **settings.init})
    training: dict[str, Any] = dict(recipe.training)
    lr_factors = training.pop("lr_factors", {})
    # A baseline draws its token embeddings within the same bound.
    plain = dataclasses.replace(recipe, name=QUICK, init={"embedding_bound": init.embedding_bound}, training=training)
    return QuickSettings(dataclasses.replace(settings, init={}).resolve(task, plain), init, lr_factors)


def build_quick(task: Task, quick: QuickSettings, seed: int) -> PretrainedModel:
    """Return a new, initialized model; a baseline draws its weights as its package does."""
    config = quick.resolved.config
    if not isinstance(config, ParamixerConfig):
        return build_model(task, quick.resolved, seed)
    model = PaperParamixer(config, init=None)
    initialize(model, quick.init, torch.Generator().manual_seed(seed))
    if quick.init.scale_by_data:
        some = permutation(len(task.train), seed)[:SEQUENCES]
        batch = next(load_batches(task.train, [some], build_collate(task, config)))
        scale_by_data(model, batch.inputs, batch.lengths)
    return model
