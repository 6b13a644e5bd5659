"""The docs run: every Python snippet and every command of README.md and docs/ is executed, commands in small."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import docs_files
from paramixer.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# These pages write the files that their commands read, so that a reader can follow them from top to bottom.
FOLLOWED = [page for page in PAGES if page.parent.name in ("guides", "explanation", "reference")]
FOLLOWED += [ROOT / "docs" / name for name in ("index.md", "tutorial.md")]
SEPARATE = [page for page in PAGES if page not in FOLLOWED and page.name != "contributing.md"]
# Placeholders, and what takes several processes or hours; they are tested elsewhere.
PLACEHOLDERS = re.compile(r"\b(NAME|WHAT|RUN|FILE|COMMAND|KEY=VALUE)\b|\.\.\.")
GENERATED = ("adding", "order", "listops", "pathfinder")


def read_snippets(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def read_commands(page: Path, program: str) -> list[list[str]]:
    """Return every command of a program on a page, in blocks and in running text, in order and without placeholders."""
    blocks = re.findall(rf"^{program} .+$", "\n".join(read_snippets(page, "bash")), re.MULTILINE)
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    inline = [" ".join(found.split()) for found in re.findall(rf"`({program} [^`]+)`", text)]
    return split_commands([*blocks, *inline])


def split_commands(lines: list[str]) -> list[list[str]]:
    """Return the words of each line without its comment, each line once; those with placeholders are left out."""
    lines = [line.split(" #")[0].strip() for line in lines]
    return [shlex.split(line) for line in dict.fromkeys(lines) if not PLACEHOLDERS.search(line)]


def shrink(words: list[str]) -> list[str]:
    """Return the command with sizes that take a moment."""
    match words:
        case (
            ["train", "--help-all" | "--help"]
            | ["data", "list"]
            | ["models" | "evaluate" | "predict" | "explain" | "export", *_]
        ):
            return words
        case ["train", "--resume", *_]:
            return [*words, "--set", "training.steps=4"]
        case ["train", task, *_]:
            small = [
                "--batch",
                "4",
                "--set",
                "training.steps=2",
                "--set",
                "model.channels=4",
                "--set",
                "model.hidden=4",
            ]
            sizes = [f"data.{split}={count}" for split, count in (("train", 40), ("validation", 8), ("test", 8))]
            generated = [word for size in sizes for word in ("--set", size)] if task in GENERATED else []
            return [
                *words,
                *(["--length", "64"] if task in GENERATED and "--length" not in words else []),
                *small,
                *generated,
            ]
        case ["data", "prepare", task, *_] if task in GENERATED:
            return [*words, "--train", "40", "--validation", "8", "--test", "8"]
        case ["data", "prepare", "image", *_]:
            return [*words, "--validation", "8"]
        case ["report", *_]:
            return [*words, "--sequences", "8"]
        case ["bench", *_]:
            return [*words, "--quick", "--length", "64", "--only", "rolls"]
    return words


def mark_slow(pages: list[Path]) -> list[object]:
    """Pages as parameters; tracing the networks of the page of exports takes a minute."""
    return [pytest.param(page, marks=[pytest.mark.slow] * (page.name == "export.md"), id=page.name) for page in pages]


@pytest.mark.parametrize("page", mark_slow([page for page in SEPARATE if read_snippets(page, "python")]))
def test_snippets_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    namespace: dict[str, object] = {}
    for code in read_snippets(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", mark_slow([page for page in SEPARATE if read_commands(page, "paramixer")]))
def test_every_command_of_a_page_works(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    docs_files.write_all(tmp_path)
    reviews = ["train", "reviews.csv", "--text", "review", "--label", "stars"]
    for number in (1, 2):
        assert main([*shrink(reviews), "--out", f"runs/reviews-{number}"]) == 0
    assert main([*shrink(["train", "adding"]), "--out", "runs/demo-1"]) == 0
    for _, *words in read_commands(page, "paramixer"):
        assert main(shrink(words)) == 0, (words, capsys.readouterr().err)


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_a_page_works_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """Snippets and commands in the order of the page, then the commands in running text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    docs_files.write_all(tmp_path)
    torch.manual_seed(0)
    namespace: dict[str, object] = {}
    done = []
    for language, code in re.findall(r"```(python|bash)\n(.*?)```", page.read_text(), re.DOTALL):
        if language == "python":
            exec(compile(code, str(page), "exec"), namespace)
            continue
        for _, *words in split_commands(re.findall(r"^paramixer .+$", code, re.MULTILINE)):
            done.append(words)
            if "<" in words:
                words, (_, source) = words[:-2], words[-2:]
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes()), "utf-8"))
            assert main(shrink(words)) == 0, (words, capsys.readouterr().err)
    for _, *words in read_commands(page, "paramixer"):
        assert words in done or main(shrink(words)) == 0, (words, capsys.readouterr().err)


# Runs in a process of its own: modules beside those of the package would stay for the tests after it.
_AS_PART_OF_THE_PACKAGE = """
import importlib, sys
from pathlib import Path
for folder in Path("src/paramixer").rglob("*"):
    if folder.is_dir() and folder.name != "__pycache__":
        package = ".".join(folder.relative_to("src").parts)
        importlib.import_module(package).__path__.append(str(folder))
exec(compile(Path("page.py").read_text(), "contributing.md", "exec"))
"""


def test_the_worked_examples_for_contributors_work(tmp_path):
    """A block with a title is a file of the package; the others run with these files in their places."""
    page = (ROOT / "docs" / "contributing.md").read_text()
    files = re.findall(r'```python title="([\w/.]+)"\n(.*?)```', page, re.DOTALL)
    assert len(files) >= 3
    for name, code in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(code)
    (tmp_path / "page.py").write_text("\n".join(read_snippets(ROOT / "docs" / "contributing.md", "python")))
    done = subprocess.run(
        [sys.executable, "-c", _AS_PART_OF_THE_PACKAGE], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("package", ["benchmarks", "experiments"])
def test_commands_beside_the_package_work(package, tmp_path):
    """Benchmarks in their quick size; experiments at the smallest scale, whatever scale a page names."""
    commands = {tuple(words) for page in PAGES for words in read_commands(page, f"python -m {package}")}
    assert commands
    for _, _, _, *words in sorted(commands):
        if package == "benchmarks" and words and words[0] != "show":
            words = [*words, "--quick", "--out", str(tmp_path / "results")]
        elif package == "experiments":
            places = {"cpu": "smoke", "docs": str(tmp_path / "docs")}
            words = [places.get(word, word) for word in words] + ["--runs", str(tmp_path / "runs")]
            words += [] if "page" in words else ["--results", str(tmp_path / "results")]
        done = subprocess.run(
            [sys.executable, "-m", package, *words],
            cwd=ROOT,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, (words, done.stderr)


def test_named_targets_are_in_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", "\n".join(page.read_text() for page in PAGES), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets
    assert {"setup", "test", "test-slow", "check-results", "demo", "lint", "bench", "reproduce", "docs"} <= targets


def test_results_on_files_are_those_of_the_records():
    """Tables outside of the generated pages repeat what the walkthroughs reached; a row has the title of its run."""
    runs = [
        run
        for path in sorted((ROOT / "results" / "walkthroughs").glob("*.json"))
        for run in json.loads(path.read_text())["runs"]
    ]
    assert len(runs) == 7
    readme = (ROOT / "README.md").read_text()
    for run in runs:
        # Of the longer windows both know everything.
        row = f"| {run['title']} | {run['test']:.3f} | {run['baseline']['test']:.3f} |"
        assert (row in readme) == ("4 096" not in run["title"]), row
    (reviews,) = (run for run in runs if run["title"] == "IMDB reviews")
    assert reviews["verdict"] in readme
    texts = (ROOT / "docs" / "guides" / "texts.md").read_text()
    for run in runs:
        if run["title"] in ("movie reviews", "IMDB reviews", "arXiv documents"):
            low, high = run["interval"]
            row = f"| {run['test']:.3f} ({low:.3f} to {high:.3f}) | {run['baseline']['test']:.3f} |"
            assert row in texts, row


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_anchors_of_the_readme_are_headings():
    """Those between pages of the site are checked where the site is built."""
    links = re.findall(r"\]\(([\w./-]+\.md)#([^)]+)\)", (ROOT / "README.md").read_text())
    assert links
    for target, anchor in links:
        headings = re.findall(r"^#+ (.+)$", (ROOT / target).read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
        assert anchor in slugs, f"README.md links to {target}#{anchor}"


def test_the_house_in_the_docs_is_the_house():
    """Every room of the package stands in the picture, and the layers are those of the import contract."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    for room in sorted((ROOT / "src" / "paramixer").iterdir()):
        if room.name.startswith(("_", ".")) or room.suffix in (".typed", ".so"):
            continue
        assert re.search(rf"\b{re.escape(room.stem)}\b", page), room.name


def test_modules_that_the_docs_name_exist():
    named = set(
        re.findall(
            r"`((?:ops|nn|data|training|recipes|baselines|report|bench|cli)/[\w/]+\.(?:py|yaml|h|cpp))`",
            "".join(page.read_text() for page in PAGES),
        )
    )
    for name in named:
        assert (ROOT / "src" / "paramixer" / name).exists(), name
