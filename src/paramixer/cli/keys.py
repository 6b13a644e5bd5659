"""Every setting of a run as a key such as ``model.hidden``: its type, its default and its documentation."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

if TYPE_CHECKING:
    from paramixer.cli.console import CommandConsole


@dataclass(frozen=True)
class Key:
    """One setting."""

    name: str
    """With its section, such as ``model.hidden``."""
    type: Any
    """Of its value."""
    default: Any
    """None where the recipe, the data or the task decides."""
    documentation: str
    """What it does."""

    @property
    def section(self) -> str:
        """The part before the dot; empty for the settings of the run itself."""
        return self.name.rpartition(".")[0]


@cache
def known_keys() -> dict[str, Key]:
    """Return every key by its name, in the order of their sections."""
    from paramixer.baselines.registry import BaselineConfig
    from paramixer.cli.data_options import DataOptions
    from paramixer.nn.config import ParamixerConfig
    from paramixer.nn.init import InitOptions
    from paramixer.training.options import TrainingOptions
    from paramixer.training.recipe import DATA_FIELDS

    run = (
        Key("task", str, None, "A task's name, or a file of your own."),
        Key("recipe", str | None, None, "Where settings that are not given come from: a recipe's name or YAML file."),
        Key("system", str, "paramixer", "The model to train, as paramixer models lists it (--model)."),
        Key("seed", int, 0, "Seed of the data, of the initialization and of the order of the batches."),
        Key("baseline", bool | None, None, "Fit a simple model beside the run. By default for files of your own."),
        Key("match_parameters", bool, False, "Size a baseline to as many parameters as Paramixer has on the task."),
    )
    documented = [
        *run,
        *_read_fields("data", DataOptions),
        *_read_fields("model", ParamixerConfig, skip=DATA_FIELDS),
        *_read_fields("model", BaselineConfig, skip=("model", *DATA_FIELDS, *_field_names(ParamixerConfig))),
        *_read_fields("init", InitOptions),
        *_read_fields("training", TrainingOptions),
    ]
    return {key.name: key for key in documented}


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Return the key that a misspelled or bare name may have meant."""
    names = list(known)
    by_last_part: dict[str, str] = {}
    for key in names:
        by_last_part.setdefault(key.rpartition(".")[2], key)
    last_part = name.rpartition(".")[2]
    if last_part in by_last_part:
        # Bare, or in another section.
        return by_last_part[last_part]
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return close[0]
    close = difflib.get_close_matches(last_part, by_last_part, 1)
    return by_last_part[close[0]] if close else None


def check_key(name: str) -> Key:
    """Return the key of this name; an unknown one is refused with the nearest."""
    from paramixer.training.recipe import DATA_FIELDS

    known = known_keys()
    if name in known:
        return known[name]
    section, _, field = name.rpartition(".")
    if section == "model" and field in DATA_FIELDS:
        remedy = f", or give data.{field}" if f"data.{field}" in known else ""
        raise ValueError(f"{name}: the data decides it; leave it out{remedy}")
    suggestion = suggest(name, known)
    hint = f"did you mean {suggestion}?" if suggestion else "paramixer train --help-all lists them"
    raise ValueError(f"there is no setting {name!r}; {hint}")


def list_keys(console: CommandConsole) -> None:
    """Print every key with its type, its default and its documentation."""
    from rich.padding import Padding
    from rich.text import Text

    section = None
    for key in known_keys().values():
        if key.section != section:
            section = key.section
            console.print_line(f"\n{_SECTIONS[section]}", style="bold")
        default = "" if key.default is None else f", default {_format_default(key.default)}"
        console.print_line(f"  {key.name}  ({_format_type(key.type)}{default})")
        console.print(Padding(Text(_strip_markup(key.documentation)), (0, 0, 0, 6)))
    console.print_line("\nGive them with --set KEY=VALUE or in a YAML file with --config FILE.")


_SECTIONS = {
    "": "The run",
    "data": "Data: a task refuses options that it does not have",
    "model": "Model: the recipe sets what is not given",
    "init": "Initialization: the recipe sets what is not given",
    "training": "Training: the recipe sets what is not given",
}


# A role such as :func:`draw` or :class:`~package.Name`, and ``code``.
_MARKUP = re.compile(r"(?::[\w:]+:`(?:~[\w.]*\.)?([^`]+)`|``([^`]+)``)")


def _strip_markup(documentation: str) -> str:
    """Return the documentation in one line of plain words."""
    return " ".join(_MARKUP.sub(lambda match: match[1] or match[2], documentation).split())


def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def _read_fields(section: str, cls: type, skip: tuple[str, ...] = ()) -> list[Key]:
    """Return the fields of a documented dataclass as keys; those of its base classes come first."""
    from docstring_parser import parse_from_object

    documentation: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base):
            parsed = parse_from_object(base).params
            documentation |= {parameter.arg_name: parameter.description or "" for parameter in parsed}
    hints = typing.get_type_hints(cls, include_extras=True)
    return [
        Key(f"{section}.{field.name}", hints[field.name], _default_of(field), documentation.get(field.name, ""))
        for field in dataclasses.fields(cls)
        if field.name not in skip
    ]


def _default_of(field: dataclasses.Field[Any]) -> Any:
    return None if field.default is dataclasses.MISSING else field.default


_TYPE_NAMES: Mapping[Any, str] = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    Path: "path",
    dict: "mapping",
    tuple: "list",
}


def plain_types(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have; a Literal counts as itself, and None is left out."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return plain_types(typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType):
        parts = (plain_types(part) for part in typing.get_args(hint) if part is not type(None))
        return tuple(dict.fromkeys(chain.from_iterable(parts)))
    return (hint,) if origin is None or origin is Literal else (origin,)


def _format_type(hint: Any) -> str:
    names = (
        ", ".join(map(str, typing.get_args(kind))) if typing.get_origin(kind) is Literal else _TYPE_NAMES[kind]
        for kind in plain_types(hint)
    )
    return " or ".join(names)


def _format_default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
