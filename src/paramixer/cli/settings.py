"""One document of settings from a YAML file, ``--set KEY=VALUE`` and flags."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from paramixer.cli.data_options import normalize
from paramixer.cli.keys import Key, check_key, plain_types
from paramixer.validation import describe_error

_SECTIONS = ("data", "model", "init", "training")
# YAML 1.1, which PyYAML reads, takes 1e-3 for a text.
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+")


def merge_settings(config: Path | None, assignments: list[str], flags: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as :meth:`RunSettings.from_document` takes them; the command line overrules the file.

    Args:
        config: a YAML file.
        assignments: ``KEY=VALUE``.
        flags: values by key.
    """
    values = {} if config is None else read_config(config)
    assigned: dict[str, Any] = {}
    for assignment in assignments:
        key, value = parse_assignment(assignment)
        if key in flags:
            raise ValueError(f"{key} is given twice, by its flag and by --set; remove one of them")
        assigned[key] = value
    document: dict[str, Any] = {}
    for key, value in {**values, **assigned, **flags}.items():
        section, _, name = key.rpartition(".")
        (document.setdefault(section, {}) if section else document)[name] = value
    if "data" in document:
        document["data"] = normalize(document["data"])
    return document


def read_config(path: Path) -> dict[str, Any]:
    """Return the values of a YAML file by key; an unknown key or a value of another type is refused."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no YAML: {error}") from error
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; give a YAML file") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path} holds no settings; write lines such as task: adding")
    values: dict[str, Any] = {}
    for name, value in document.items():
        if name not in _SECTIONS:
            values[str(name)] = value
        elif isinstance(value, dict):
            values |= {f"{name}.{part}": setting for part, setting in value.items()}
        elif value is not None:
            raise ValueError(f"{path}: {name} is a section; write its settings below it, indented")
    return {name: _check(check_key(name), value) for name, value in values.items()}


def parse_assignment(assignment: str) -> tuple[str, Any]:
    """Return key and value of ``KEY=VALUE``, the value as the key's type."""
    name, equals, text = assignment.partition("=")
    if not equals:
        raise ValueError(f"--set {assignment}: write KEY=VALUE, such as model.hidden=64")
    key = check_key(name.strip().replace("-", "_"))
    return key.name, _check(key, _parse(text, key))


def _parse(text: str, key: Key) -> Any:
    if all(kind in (str, Path) or typing.get_origin(kind) is Literal for kind in plain_types(key.type)):
        return None if text == "null" else text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{key.name}={text}; it is no YAML value: {error}") from error


def _check(key: Key, value: Any) -> Any:
    """Return the value with numbers as numbers; one of another type than the key's is refused."""
    types = plain_types(key.type)
    if Path in types:
        paths = value if key.name == "data.source" and isinstance(value, list) else [value]
        if all(path is None or isinstance(path, str | Path) for path in paths):
            return value
        raise ValueError(f"{key.name}={value}; it must be a path")
    if str not in types:
        value = _read_numbers(value)
    try:
        TypeAdapter(key.type).validate_python(value, strict=True)
    except ValidationError as error:
        description = describe_error(error)
        reason = description.partition("; ")[2] or description
        raise ValueError(f"{key.name}={'null' if value is None else value}; {reason}") from None
    return value


def _read_numbers(value: Any) -> Any:
    """Return the value with texts such as 1e-3 as numbers, also inside of lists and mappings."""
    if isinstance(value, dict):
        return {name: _read_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_read_numbers(part) for part in value]
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
