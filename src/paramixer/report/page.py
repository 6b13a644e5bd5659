"""The page: one self-contained HTML file. The template escapes all text; the page runs only its own script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from paramixer import __version__
from paramixer.report.confusion import Confusion
from paramixer.report.glance import Glance
from paramixer.report.svg import Chart

# In the order of their use.
_SCRIPTS = ("factors.js", "drawing.js", "explorer.js")

Pairs = list[tuple[str, str]]
"""Names and values of a table."""


@dataclass
class RunSection:
    """What the page shows of one run; empty fields are left out."""

    name: str
    notes: tuple[str, ...] = ()
    glance: Glance = field(default_factory=Glance)
    curves: list[Chart] = field(default_factory=list)
    explorers: list[dict[str, Any]] = field(default_factory=list)
    explorer_title: str = "Mixing matrix"
    explorer_help: str = ""
    figures: list[dict[str, str]] = field(default_factory=list)
    predictions_summary: str = ""
    confusion: Confusion | None = None
    prediction_charts: list[Chart] = field(default_factory=list)
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, Any] | None = None
    speed: Pairs = field(default_factory=list)
    settings: list[tuple[str, Pairs]] = field(default_factory=list)


def render_page(
    title: str,
    lead: str,
    sections: Sequence[RunSection],
    comparison: Sequence[tuple[str, Sequence[str]]] = (),
    comparison_charts: Sequence[Chart] = (),
) -> str:
    """Return the HTML file.

    Args:
        title: of the page.
        lead: a sentence below the title.
        sections: one per run.
        comparison: rows of the comparison table: name, and one value per run.
        comparison_charts: curves of all runs.
    """
    assets = resources.files("paramixer.report") / "assets"
    script = "".join((assets / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("paramixer.report", "assets"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        runs=sections,
        comparison=comparison,
        comparison_charts=comparison_charts,
        style=Markup((assets / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        data=_encode_json({"runs": [{"explorers": section.explorers} for section in sections]}),
        version=__version__,
    )


def _encode_json(document: Any) -> Markup:
    """Return JSON for a script element. It contains no "<", so that no string can close the element."""
    # json.dumps escapes all characters beyond ASCII, among them U+2028, which ends a line in JavaScript.
    return Markup(json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))
