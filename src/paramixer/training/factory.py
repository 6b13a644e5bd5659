"""From a task to its model: the preset's settings, what the data decides, and what the user says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from paramixer.baselines import ngrams, registry, sizing
from paramixer.data.task import TaskInfo
from paramixer.nn import pretrained
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.recipes.presets import preset

# What only the data can say.
DECIDED = ("length", "outputs", "vocabulary", "features", "target", "pad")

Model = Paramixer | ngrams.Ngrams


def config_for(task: TaskInfo, said: Mapping[str, Any], match: bool = False) -> ParamixerConfig:
    """The config of a model for this task.

    Args:
        task: what the data is.
        said: fields of :class:`ParamixerConfig` that the user set; the rest is the preset's. For a rival it is what the
            paper's authors ran: one layer, one head, unless they say otherwise.
        match: whether a rival gets as many parameters as Paramixer has on this task.
    """
    protocol = said.get("protocol")
    base = preset(task.preset, protocol if protocol in ("chord", "cdil") else None, task.length)
    data: dict[str, Any] = {
        "outputs": task.outputs,
        "vocabulary": None if task.vocabulary is None else len(task.vocabulary),
        "features": task.features,
        "target": task.target,
        "pad": None if task.vocabulary is None else task.vocabulary.pad,
    }
    if task.name == "own":
        # Sequences of all lengths: each on a ring of its own, and nothing is spent on padding.
        data["padding"] = "length"
    if protocol == "links":
        data["links"] = None
    wide = dataclasses.replace(base, channels=said.get("channels", base.channels))
    data |= baseline_settings(said.get("mixer", registry.OWN), wide, task.preset)
    config = dataclasses.replace(base, **{**data, **said})
    shared = {key: value for key, value in said.items() if key in ("channels", "pooling", "positions")}
    return matched(config, config_for(task, shared)) if match else config


def baseline_settings(name: str, base: ParamixerConfig, preset_name: str) -> dict[str, Any]:
    """What the paper's authors ran a rival with, in place of Paramixer's own settings."""
    if name == registry.OWN:
        return {}
    chosen = registry.baseline(name)
    return {"blocks": 1, "hidden": chosen.hidden * base.channels, **chosen.authors.get(preset_name, {})}


def matched(config: ParamixerConfig, own: ParamixerConfig) -> ParamixerConfig:
    """A rival with as many parameters as the own config has, as nearly as it can."""
    if config.mixer == registry.OWN:
        return config
    if registry.baseline(config.mixer).linear:
        raise ValueError(f"{config.mixer} has as many parameters as columns; it cannot be matched")
    return sizing.matched(config, parameters(own), parameters)


def parameters(config: ParamixerConfig) -> int:
    """How many numbers the model of a config learns."""
    return count_parameters(model_for(config, torch.Generator()))


def count_parameters(model: nn.Module) -> int:
    """How many numbers a model learns."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def model_for(config: ParamixerConfig, generator: Generator | None = None) -> Model:
    """A new model."""
    return ngrams.Ngrams(config) if config.mixer == ngrams.NAME else Paramixer(config, generator=generator)


def load_model(folder: str | Path) -> Model:
    """The model that a run left, whichever it is."""
    path = pretrained.find(folder)
    config = pretrained.load_config(path)
    if config.mixer != ngrams.NAME:
        return Paramixer.from_pretrained(path)
    model = ngrams.Ngrams(config)
    pretrained.load_weights(model, config, path)
    return model.eval()
