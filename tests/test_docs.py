"""The docs run: every Python snippet is executed, every command of the README exists and works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page, "python")], ids=lambda page: page.name)
def test_snippets_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    namespace: dict[str, object] = {}
    for code in snippets(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)


def test_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", "\n".join(page.read_text() for page in PAGES), re.MULTILINE))
    assert named
    assert named <= targets
    assert {"setup", "test", "test-slow", "demo", "lint", "bench", "docs"} <= targets


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_the_house_is_complete():
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "src" / "paramixer").rglob("*.py"):
        name = str(path.relative_to(ROOT / "src" / "paramixer"))
        if not name.endswith("__init__.py"):
            assert f"`{name}`" in text


def test_the_figure_is_what_its_script_draws(tmp_path):
    figure = ROOT / "docs" / "figures" / "links.svg"
    runpy.run_path(str(figure.with_suffix(".py")))["draw"](tmp_path / "links.svg")
    assert (tmp_path / "links.svg").read_text() == figure.read_text()
