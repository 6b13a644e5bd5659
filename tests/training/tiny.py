"""A run small enough to be repeated many times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

import paramixer as pm
from paramixer.training.fit import fit
from paramixer.training.optimizer import ParameterGroup
from paramixer.training.options import TrainingOptions
from paramixer.training.runs.record import Outcome

OPTIONS = TrainingOptions(steps=12, batch=4, evaluate_every=4, log_every=3, learning_rate=0.01)


def task(**sizes: int) -> pm.data.Task:
    """Temporal Order at a length that takes no time."""
    return pm.data.load("order", length=12, **{"train": 30, "validation": 9, "test": 7, **sizes})


def model(seed: int = 0, **fields: object) -> pm.Paramixer:
    """With dropout, so that random numbers count."""
    dropout = {"embedding_dropout": 0.1, "block_dropout": 0.1}
    config = pm.ParamixerConfig(
        layer="paper", length=12, vocabulary=6, outputs=4, channels=6, hidden=5, **dropout | fields
    )
    return pm.Paramixer(config, generator=torch.Generator().manual_seed(seed))


def run(
    folder: Path,
    options: TrainingOptions = OPTIONS,
    resume: bool = False,
    groups: Callable[[pm.Paramixer], list[ParameterGroup]] | None = None,
) -> tuple[pm.Paramixer, Outcome]:
    """One run from a fresh model, in groups of its parameters if a function makes them."""
    fresh = model()
    made = None if groups is None else groups(fresh)
    return fresh, fit(fresh, task(), options, folder=folder, seed=5, resume=resume, parameter_groups=made)
