"""The default network with one thing changed or left out, to see what each part of it is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from experiments import callers_run
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.layer import ParamixerLayer
from paramixer.nn.model import Paramixer, make_layer
from paramixer.training.callback import Callback
from paramixer.training.factory import build_model
from paramixer.training.recipe import DEFAULT_RECIPE, Resolved
from paramixer.training.runs.record import Outcome
from paramixer.training.runs.run import RunSettings


class WithoutMixing(ParamixerLayer):
    """Every position keeps its own values: a network of stem, gates, feed-forward parts and poolings."""

    def _mix(self, inputs: Tensor, values: Tensor, counts: Tensor | None) -> Tensor:
        return values


class WithoutNorm(ParamixerLayer):
    """What a chain gives goes on as it is."""

    def _normalize(self, mixed: Tensor) -> Tensor:
        return mixed


class WithoutGate(ParamixerLayer):
    """Everything that is mixed goes on."""

    def _open(self, mixed: Tensor, gate: Tensor) -> Tensor:
        return mixed


class WithoutFeedForward(ParamixerLayer):
    """A chain, and nothing else."""

    def _feed_forward(self, x: Tensor, counts: Tensor | None) -> Tensor:
        return x


class StaticLinks(ParamixerLayer):
    """The entries of a factor are the same at every position and for every sequence: learned, not written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for weights in (self.w1, self.b1, self.w2):
            weights.requires_grad_(False)

    def _link_parameters(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.w1, self.b1, self.w2.new_zeros(self.w2.shape), self.b2, self.offsets


@dataclass(frozen=True)
class Ablation:
    """One change of the default network."""

    title: str
    """The row's name."""
    change: Callable[[ParamixerConfig], dict[str, Any]] = lambda config: {}
    """Returns the fields of the config that differ."""
    layer: type[ParamixerLayer] = ParamixerLayer
    """What its layers are."""
    symbols_only: bool = False
    """Whether it changes nothing for inputs that are no symbols."""


def _count_factors(config: ParamixerConfig) -> int:
    return len(config.link_pattern().offsets(config.mixed_length))


_PREFIX = "ablation: "
ABLATIONS = {
    f"{_PREFIX}{ablation.title}": ablation
    for ablation in (
        Ablation("no mixing at all", layer=WithoutMixing),
        Ablation("static links", lambda config: {"link_width": 1, "hidden": 1}, StaticLinks),
        Ablation("half the factors", lambda config: {"factors": max(1, _count_factors(config) // 2)}),
        Ablation("twice the factors", lambda config: {"factors": 2 * _count_factors(config)}),
        Ablation("one head", lambda config: {"heads": 1}),
        Ablation("no gate", layer=WithoutGate),
        Ablation("no feed-forward part", layer=WithoutFeedForward),
        Ablation("no norm after the chain", layer=WithoutNorm),
        Ablation("no n-grams", lambda config: {"ngrams": 0, "words": 0, "letters": None}, symbols_only=True),
        Ablation("mean pooling", lambda config: {"pooling": "mean"}),
        Ablation("on a ring", lambda config: {"ring": True}),
        Ablation("CHORD", lambda config: {"protocol": "chord"}),
        Ablation("CDIL, base 2", lambda config: {"base": 2}),
        Ablation("CDIL, base 5", lambda config: {"base": 5}),
    )
}
"""By the recipe's name in the settings of a run."""


def train(settings: RunSettings, folder: Path, *, callbacks: Sequence[Callback] = (), test: bool = True) -> Outcome:
    """Train in a run folder, or go on with the run that is there.

    Args:
        settings: of a run whose recipe is one of ABLATIONS.
        folder: of the run.
        callbacks: called after the loop's own.
        test: whether the model is evaluated on test in the end.
    """
    settings = settings.with_absolute_paths()
    assert settings.recipe is not None
    task = settings.load_task()
    resolved = resolve_ablation(task, settings)
    model = build_ablation(task, resolved, settings.seed)
    return callers_run.train(model, task, settings, resolved, folder, callbacks=callbacks, test=test)


def resolve_ablation(task: Task, settings: RunSettings) -> Resolved:
    """Return the settings of the default recipe on this data, with the one change."""
    assert settings.recipe is not None
    resolved = dataclasses.replace(settings, recipe=DEFAULT_RECIPE).resolve(task)
    assert isinstance(resolved.config, ParamixerConfig)
    config = dataclasses.replace(resolved.config, **ABLATIONS[settings.recipe].change(resolved.config))
    return dataclasses.replace(resolved, config=config, recipe=settings.recipe)


def build_ablation(task: Task, resolved: Resolved, seed: int) -> Paramixer:
    """Return a new, initialized model."""
    model = build_model(task, resolved, seed)
    assert isinstance(model, Paramixer)
    kind = ABLATIONS[resolved.recipe].layer
    if kind is not ParamixerLayer:
        for number, layer in enumerate(model.blocks):
            changed = make_layer(model.config, kind)
            changed.load_state_dict(layer.state_dict())
            model.blocks[number] = changed
    return model
