"""Very long sequences made ordinary: mixing matrices as chains of sparse, full-rank factors."""

import importlib
from types import ModuleType

from paramixer.block import ParamixerBlock
from paramixer.config import ParamixerConfig
from paramixer.links import Cdil, Chord, Links
from paramixer.network import Paramixer
from paramixer.ops import backend, backends, link_mix, paramix
from paramixer.presets import Recipe, preset, recipe

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
    "link_mix",
    "paramix",
    "preset",
    "recipe",
]

_ON_FIRST_TOUCH = ("tasks",)


def __getattr__(name: str) -> ModuleType:
    """Parts that are heavier than torch, or not always wanted, load when they are first touched."""
    if name in _ON_FIRST_TOUCH:
        return importlib.import_module(f"paramixer.{name}")
    raise AttributeError(f"module 'paramixer' has no attribute {name!r}")
