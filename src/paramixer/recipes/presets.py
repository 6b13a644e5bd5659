"""The models of the paper's configuration table, read from the recipes of the family ``paper``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramixer.links import log2_ceil, whole_number
from paramixer.nn.config import ParamixerConfig, ProtocolName
from paramixer.recipes.reader import check_preset, read_recipe

# What a recipe may say of links that grow with the length.
_LINKS: dict[str, Callable[[int], int]] = {
    "ceil(log2(length))": log2_ceil,
    "ceil(log2(length)) + 1": lambda length: log2_ceil(length) + 1,
}


def preset(name: str, protocol: ProtocolName | None = None, length: int | None = None) -> ParamixerConfig:
    """Return the paper's model for a task.

    Args:
        name: adding, order, listops, image, text, pathfinder, documents-16k, documents-32k, hfdna or mtcdna.
        protocol: "chord" or "cdil"; by default the table's own.
        length: by default the longest in the table; CHORD's links follow it.
    """
    check_preset(name)
    settings = read_recipe("paper", name).model
    if protocol is not None:
        settings["protocol"] = protocol
    if length is not None:
        settings["length"] = whole_number("length", length)
    return ParamixerConfig(**resolve_links(settings))


def resolve_links(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with ``links`` for their protocol and length.

    A recipe may give links by protocol, ``{chord: ceil(log2(length)) + 1, cdil: 3}``; a protocol that is not listed has
    its usual number.
    """
    links = settings.get("links")
    if not isinstance(links, dict):
        return settings
    chosen = links.get(settings.get("protocol"))
    return {**settings, "links": _LINKS[chosen](settings["length"]) if chosen in _LINKS else chosen}
