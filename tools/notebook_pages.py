"""Notebooks as pages of the site: their texts, code and stored outputs as Markdown, their pictures as files."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

# Colors and other controls of a terminal.
_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def convert(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook's Markdown and its pictures by file name.

    Args:
        path: of the notebook, with outputs.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in document["cells"]:
        source = _join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(_fence(source, "python"))
        parts += [_show(output, path.stem, pictures) for output in cell["outputs"]]
    title, _, rest = "\n\n".join(part for part in parts if part).partition("\n")
    download = f'<a href="{path.name}" download>Download the notebook</a>'
    return f"{title}\n\n{download}\n{rest}\n", pictures


def _show(output: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> str:
    if output["output_type"] == "stream":
        return _fence(_CONTROL.sub("", _join(output["text"])).rstrip("\n"), "text")
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(_join(data["image/png"]))
        return f"![Output of the cell above]({name})"
    return _fence(_join(data["text/plain"]), "text") if "text/plain" in data else ""


def _fence(text: str, language: str) -> str:
    return f"````{language}\n{text}\n````"


def _join(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
