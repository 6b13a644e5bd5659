"""The page: one self-contained file of HTML. Text is escaped by the template engine; only our own script may run."""

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
from paramixer.report.charts import Chart

Pairs = list[tuple[str, str]]


@dataclass
class RunPart:
    """What the page shows of one run; what is empty is left out."""

    name: str
    missing: tuple[str, ...] = ()
    headline: Pairs = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    explorers: list[dict[str, Any]] = field(default_factory=list)
    explorer_title: str = "What mixes with what"
    explorer_words: str = ""
    pictures: list[dict[str, str]] = field(default_factory=list)
    asked: str = ""
    confusion: dict[str, Any] | None = None
    confused: list[tuple[str, str, int]] = field(default_factory=list)
    answers: list[Chart] = field(default_factory=list)
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, Any] | None = None
    speed: Pairs = field(default_factory=list)
    settings: list[tuple[str, Pairs]] = field(default_factory=list)


def render(
    title: str,
    lead: str,
    runs: Sequence[RunPart],
    comparison: Sequence[tuple[str, Sequence[str]]] = (),
    compared_charts: Sequence[Chart] = (),
) -> str:
    """The whole file.

    Args:
        title: over everything.
        lead: a sentence below it.
        runs: one after another.
        comparison: a row's name and a value for every run.
        compared_charts: curves of all runs.
    """
    files = resources.files("paramixer.report")
    script = "".join((files / name).read_text(encoding="utf-8") for name in ("factors.js", "explorer.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("paramixer.report", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        runs=runs,
        comparison=comparison,
        compared_charts=compared_charts,
        style=Markup((files / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        data=_data({"runs": [{"explorers": run.explorers} for run in runs]}),
        version=__version__,
    )


def _data(document: Any) -> Markup:
    """JSON inside a script element: no < may stand in it, or a text could end the element."""
    # What JavaScript takes for the end of a line is escaped with all else beyond ASCII.
    return Markup(json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))
