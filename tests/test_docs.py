"""The docs run: every Python snippet is executed, every command of the README exists and works."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
import torch

from paramixer import cli

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


def commands(page: Path) -> list[str]:
    """Every command of this project on a page, in blocks and in running text."""
    blocks = "\n".join(snippets(page, "bash"))
    return [
        line.split("#")[0].strip()
        for line in [
            *re.findall(r"^paramixer .+$", blocks, re.MULTILINE),
            *re.findall(r"`(paramixer [a-z]+ [^`]+)`", page.read_text()),
        ]
    ]


def test_every_command_of_the_docs_can_be_given():
    given = {command for page in PAGES for command in commands(page)}
    assert len(given) > 12
    for command in given:
        words = shlex.split(command)[1:]
        if "NAME" not in command and "WHAT" not in command:
            cli.parse(words)


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


@pytest.mark.parametrize("figure", sorted((ROOT / "docs" / "figures").glob("*.[sp][vn]g")), ids=lambda path: path.name)
def test_a_figure_is_what_its_script_draws(figure, tmp_path):
    runpy.run_path(str(figure.with_suffix(".py")))["draw"](tmp_path / figure.name)
    assert (tmp_path / figure.name).read_bytes() == figure.read_bytes()
