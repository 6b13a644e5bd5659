"""Very long sequences made ordinary: mixing matrices as chains of sparse, full-rank factors."""

import importlib
from typing import Any

from paramixer.explain import explain
from paramixer.links import Cdil, Chord, Links
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.ops import backend, backends, link_mix, paramix
from paramixer.recipes.presets import Recipe, preset, recipe

__version__ = "0.1.0"

__all__ = [
    "Cdil",
    "Chord",
    "Links",
    "Paramixer",
    "ParamixerBlock",
    "ParamixerConfig",
    "Recipe",
    "backend",
    "backends",
    "explain",
    "link_mix",
    "paramix",
    "preset",
    "recipe",
]

# Where to find what is heavier than torch, or not always wanted; it loads when it is first touched.
_ON_FIRST_TOUCH = {
    "data": ("paramixer.data", None),
    "fit": ("paramixer.training.fit", "fit"),
    "TrainingOptions": ("paramixer.training.options", "TrainingOptions"),
    "ParamixerClassifier": ("paramixer.sklearn", "ParamixerClassifier"),
    "ParamixerRegressor": ("paramixer.sklearn", "ParamixerRegressor"),
}


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_TOUCH:
        raise AttributeError(f"module 'paramixer' has no attribute {name!r}")
    module, attribute = _ON_FIRST_TOUCH[name]
    found = importlib.import_module(module)
    return found if attribute is None else getattr(found, attribute)
