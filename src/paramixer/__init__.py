"""Very long sequences made ordinary: mixing matrices as chains of sparse, full-rank factors.

Importing the package imports nothing else: a name loads its module, and torch, when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from paramixer import data
    from paramixer.explain import explain
    from paramixer.links import Cdil, Chord, Links
    from paramixer.nn.block import ParamixerBlock
    from paramixer.nn.config import ParamixerConfig
    from paramixer.nn.model import Paramixer
    from paramixer.ops import backend, backends, link_mix, paramix
    from paramixer.recipes.presets import Recipe, preset, recipe
    from paramixer.sklearn import ParamixerClassifier, ParamixerRegressor
    from paramixer.training.fit import fit
    from paramixer.training.options import TrainingOptions

# Where each public name is defined; None for the module itself.
_PUBLIC = {
    "Cdil": ("links", "Cdil"),
    "Chord": ("links", "Chord"),
    "Links": ("links", "Links"),
    "Paramixer": ("nn.model", "Paramixer"),
    "ParamixerBlock": ("nn.block", "ParamixerBlock"),
    "ParamixerClassifier": ("sklearn", "ParamixerClassifier"),
    "ParamixerConfig": ("nn.config", "ParamixerConfig"),
    "ParamixerRegressor": ("sklearn", "ParamixerRegressor"),
    "Recipe": ("recipes.presets", "Recipe"),
    "TrainingOptions": ("training.options", "TrainingOptions"),
    "backend": ("ops", "backend"),
    "backends": ("ops", "backends"),
    "data": ("data", None),
    "explain": ("explain", "explain"),
    "fit": ("training.fit", "fit"),
    "link_mix": ("ops", "link_mix"),
    "paramix": ("ops", "paramix"),
    "preset": ("recipes.presets", "preset"),
    "recipe": ("recipes.presets", "recipe"),
}

__all__ = [
    "Cdil",
    "Chord",
    "Links",
    "Paramixer",
    "ParamixerBlock",
    "ParamixerClassifier",
    "ParamixerConfig",
    "ParamixerRegressor",
    "Recipe",
    "TrainingOptions",
    "__version__",
    "backend",
    "backends",
    "data",
    "explain",
    "fit",
    "link_mix",
    "paramix",
    "preset",
    "recipe",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'paramixer' has no attribute {name!r}")
    import importlib

    from paramixer.extras import needed_for

    module_name, attribute = _PUBLIC[name]
    with needed_for(f"pm.{name}"):
        module = importlib.import_module(f"paramixer.{module_name}")
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
