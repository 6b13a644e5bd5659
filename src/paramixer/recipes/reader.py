"""Recipes are YAML files: model, initialization and training of one row of the paper's table, or of any data.

A recipe is a file of its own (``default.yaml``, or a path) or a family with a file for each preset
(``paper/``). ``base: NAME`` starts from another recipe and changes what the file says.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

SECTIONS = ("model", "init", "training")
PRESETS = (
    "adding",
    "order",
    "listops",
    "image",
    "text",
    "pathfinder",
    "documents-16k",
    "documents-32k",
    "hfdna",
    "mtcdna",
)
"""The rows of the paper's table."""


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number, which YAML 1.1 takes for a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


@dataclass(frozen=True)
class Recipe:
    """The settings of a recipe, before a task and the user's own settings complete them."""

    name: str
    """The recipe's name or path."""
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of :class:`paramixer.ParamixerConfig`; ``links`` may depend on the protocol."""
    init: dict[str, Any] = field(default_factory=dict)
    """Name and options of the initialization."""
    training: dict[str, Any] = field(default_factory=dict)
    """Fields of :class:`paramixer.TrainingOptions`."""


def read_recipe(name: str, preset: str) -> Recipe:
    """Read the recipe of this name for a preset, its bases included.

    Args:
        name: "paper", "default", or the path of a YAML file.
        preset: the row of the paper's table that a family of recipes is read for.
    """
    return _read(name, preset, ())


def _read(name: str, preset: str, above: tuple[str, ...]) -> Recipe:
    if name in above:
        raise ValueError(f"recipe {name} is its own base: {' -> '.join((*above, name))}")
    file = _find(name, preset)
    document = _load(file, name)
    base = document.pop("base", None)
    sections = {section: document.get(section) or {} for section in SECTIONS}
    if base is None:
        return Recipe(name, **sections)
    if not isinstance(base, str):
        raise ValueError(f"recipe {name}: base is {base!r}; it must be the name or file of a recipe")
    if _is_yaml(base) and isinstance(file, Path):
        # Beside the file that names it.
        base = str(file.parent / base)
    inherited = _read(base, preset, (*above, name))
    return Recipe(name, **{part: {**getattr(inherited, part), **sections[part]} for part in SECTIONS})


def check_preset(name: str) -> None:
    """Raise a ValueError that names the nearest preset unless there is one of this name."""
    if name not in PRESETS:
        matches = difflib.get_close_matches(str(name), PRESETS, 1)
        hint = f", did you mean {matches[0]!r}?" if matches else ""
        raise ValueError(f"there is no preset {name!r}{hint}; choose from {', '.join(PRESETS)}")


def recipe_names() -> list[str]:
    """Return the names of the recipes in the package."""
    entries = resources.files("paramixer.recipes").iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.is_dir() or _is_yaml(entry.name))


def _find(name: str, preset: str) -> Path | Traversable:
    if _is_yaml(name):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"recipe {name}: there is no such file")
        return path
    folder = resources.files("paramixer.recipes")
    if (folder / f"{name}.yaml").is_file():
        return folder / f"{name}.yaml"
    if name.isidentifier() and (folder / name).is_dir():
        check_preset(preset)
        return folder / name / f"{preset}.yaml"
    matches = difflib.get_close_matches(name, recipe_names(), 1)
    hint = f"did you mean {matches[0]!r}?" if matches else f"choose from {', '.join(recipe_names())}."
    raise ValueError(f"there is no recipe {name!r}; {hint} A file of your own ends in .yaml")


def _load(file: Path | Traversable, name: str) -> dict[str, Any]:
    try:
        document = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"recipe {name} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise ValueError(f"recipe {name} holds no settings; it needs {', '.join(SECTIONS)}")
    known = (*SECTIONS, "base", "metric")
    for key, value in document.items():
        if key not in known:
            raise ValueError(f"recipe {name} has an unknown section {key!r}; choose from {', '.join(known)}")
        if key in SECTIONS and not (isinstance(value, dict) and all(isinstance(field, str) for field in value)):
            raise ValueError(f"recipe {name}: {key} is {value!r}; it must be a mapping of names to values")
    # The paper's own rows have them, for presets without data.
    decided = document.get("model", {}).keys() & {"length", "outputs", "vocabulary", "features", "target", "pad"}
    if decided and isinstance(file, Path) and file.parent.parent.name != "recipes":
        raise ValueError(f"recipe {name}: the data decides model.{min(decided)}; leave it out")
    return document


def _is_yaml(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))
