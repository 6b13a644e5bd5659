"""Very long sequences made ordinary: mixing matrices as chains of sparse, full-rank factors.

Importing the package imports nothing else: a name loads its module, and torch, when it is first used.
"""

from __future__ import annotations

# As typing's, which is not imported: the command handles Ctrl-C only once this module is there.
TYPE_CHECKING = False
__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from paramixer import data
    from paramixer.attribution import explain
    from paramixer.links import Cdil, Chord, Links
    from paramixer.nn.block import ParamixerBlock
    from paramixer.nn.config import ParamixerConfig
    from paramixer.nn.layer import ParamixerLayer
    from paramixer.nn.model import Paramixer
    from paramixer.ops import backend, backends, link_mix, paramix, release_memory
    from paramixer.recipes.presets import preset
    from paramixer.sklearn import ParamixerClassifier, ParamixerEmbedder, ParamixerRegressor
    from paramixer.training.factory import build_model
    from paramixer.training.fit import fit
    from paramixer.training.optimizer import build_optimizer
    from paramixer.training.options import TrainingOptions
    from paramixer.training.prediction.trained_model import load
    from paramixer.training.recipe import resolve
    from paramixer.training.row_sparse import clip_gradients

    # At run time __getattr__ leaves out the names whose packages are missing.
    __all__ = [
        "Cdil",
        "Chord",
        "Links",
        "Paramixer",
        "ParamixerBlock",
        "ParamixerClassifier",
        "ParamixerConfig",
        "ParamixerEmbedder",
        "ParamixerLayer",
        "ParamixerRegressor",
        "TrainingOptions",
        "__version__",
        "backend",
        "backends",
        "build_model",
        "build_optimizer",
        "clip_gradients",
        "data",
        "explain",
        "fit",
        "link_mix",
        "load",
        "paramix",
        "preset",
        "release_memory",
        "resolve",
    ]

# Where each public name is defined; None for the module itself.
_PUBLIC = {
    "Cdil": ("links", "Cdil"),
    "Chord": ("links", "Chord"),
    "Links": ("links", "Links"),
    "Paramixer": ("nn.model", "Paramixer"),
    "ParamixerBlock": ("nn.block", "ParamixerBlock"),
    "ParamixerLayer": ("nn.layer", "ParamixerLayer"),
    "ParamixerClassifier": ("sklearn", "ParamixerClassifier"),
    "ParamixerConfig": ("nn.config", "ParamixerConfig"),
    "ParamixerEmbedder": ("sklearn", "ParamixerEmbedder"),
    "ParamixerRegressor": ("sklearn", "ParamixerRegressor"),
    "TrainingOptions": ("training.options", "TrainingOptions"),
    "backend": ("ops", "backend"),
    "backends": ("ops", "backends"),
    "build_model": ("training.factory", "build_model"),
    "build_optimizer": ("training.optimizer", "build_optimizer"),
    "clip_gradients": ("training.row_sparse", "clip_gradients"),
    "data": ("data", None),
    "explain": ("attribution", "explain"),
    "fit": ("training.fit", "fit"),
    "link_mix": ("ops", "link_mix"),
    "load": ("training.prediction.trained_model", "load"),
    "paramix": ("ops", "paramix"),
    "preset": ("recipes.presets", "preset"),
    "release_memory": ("ops", "release_memory"),
    "resolve": ("training.recipe", "resolve"),
}

# Packages of extras without which a public name cannot be loaded.
_PACKAGES = {
    "ParamixerClassifier": ("accelerate", "rich", "scipy", "sklearn"),
    "ParamixerEmbedder": ("accelerate", "rich", "scipy", "sklearn"),
    "ParamixerRegressor": ("accelerate", "rich", "scipy", "sklearn"),
    "fit": ("accelerate", "rich"),
    "load": ("accelerate", "pyarrow"),
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _list_public()
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
    return sorted({*globals(), *_list_public()})


def _list_public() -> list[str]:
    """Return the public names that this installation can load, so that help() and a star import work without extras."""
    from importlib.util import find_spec

    loadable = (name for name in _PUBLIC if all(find_spec(package) for package in _PACKAGES.get(name, ())))
    return ["__version__", *loadable]
