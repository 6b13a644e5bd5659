"""From a task to its model: the preset's settings, what the data decides, and what the user says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paramixer.config import ParamixerConfig
from paramixer.presets import preset
from paramixer.tasks.task import Facts

# What only the data can say.
DECIDED = ("length", "outputs", "vocabulary", "features", "target", "pad")


def config_for(task: Facts, said: Mapping[str, Any]) -> ParamixerConfig:
    """The config of a model for this task.

    Args:
        task: what the data is.
        said: fields of :class:`ParamixerConfig` that the user set; the rest is the preset's.
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
    return dataclasses.replace(base, **{**data, **said})
