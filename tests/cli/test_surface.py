"""The surface of the command line: which commands and flags there are, what help costs, and that it fits."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import paramixer as pm
from paramixer.cli import main

CHAIN = "--heads --length --batch --channels --inputs --hidden --protocol --links --factors"
DATA = (
    "--source --length --text --label --labels --target --split --id --weight --encoding --alphabet --image-size "
    "--rate --strict --train --validation --test --difficulty --size --windows --shortest --stride"
)
SURFACE = {
    "train": "TASK FILES --source --text --label --weight --length --model --recipe --epochs --minutes --balance "
    "--baseline --no-baseline --batch --learning-rate --device --folds --out --seed --resume --config --set "
    "--print-config --help-all",
    "evaluate": "RUN --split --batch",
    "predict": "RUN FILE --out --proba --windows --text --id --format --encoding --no-escape --batch",
    "explain": "RUN --index --split --file --input --text --position --target --window --out",
    "report": "RUNS --out --sequences --batch",
    "export": "RUN --format --out --tolerance",
    "models": "--preset --length --match",
    "data list": "",
    "data prepare": f"TASK {DATA} --seed --picture",
    "bench": f"{CHAIN} --only --rounds --threads --device --quick",
    "cost": f"{CHAIN} --checkpoint-every --backend --device --gflops --bandwidth --measure --threads",
}
HEAVY = ("torch", "numpy", "pyarrow", "matplotlib", "sklearn", "scipy", "pydantic", "accelerate", "yaml", "pandas")


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def read_help(words: str, capsys) -> str:
    assert main([*words.split(), "--help"]) == 0
    return capsys.readouterr().out


def read_panels(text: str) -> list[tuple[str, str]]:
    """The first and the second column of the panels of a help page, wrapped lines joined."""
    rows: list[tuple[str, str]] = []
    for line in re.findall(r"^│ (?:\*  )?(.*)│$", text, re.MULTILINE):
        cells = re.split(r"  +", line.rstrip(), maxsplit=1)
        if line[0] != " ":
            rows.append((cells[0], cells[1] if len(cells) > 1 else ""))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
    return rows


def test_the_commands_are_these(capsys):
    commands = [name for name, _ in read_panels(read_help("", capsys)) if not name.startswith("-")]
    assert set(commands) == {words.split()[0] for words in SURFACE}
    assert [name for name, _ in read_panels(read_help("data", capsys))] == ["list", "prepare"]


@pytest.mark.parametrize("words", SURFACE)
def test_the_flags_are_these(words, capsys):
    text = read_help(words, capsys)
    flags = [name for first, _ in read_panels(text) for name in re.findall(r"--[\w-]+|^[A-Z]+", first)]
    assert set(flags) == set(SURFACE[words].split())
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("words", SURFACE)
def test_every_flag_is_documented_and_every_command_has_an_example(words, capsys):
    text = read_help(words, capsys)
    for name, description in read_panels(text):
        assert re.search(r"[a-z]\.?", description.partition("[")[0]), name
    assert f"Example: paramixer {words}" in " ".join(text.split())


@pytest.mark.parametrize("words", ["", "data", *SURFACE])
def test_help_fits_into_80_columns(words, capsys):
    assert max(map(len, read_help(words, capsys).splitlines())) <= 80


def test_train_shows_the_few_flags_that_people_use_in_groups(capsys):
    text = read_help("train", capsys)
    assert len(text.splitlines()) < 60
    for group in ("Data", "Model", "Training", "Run", "All settings"):
        assert f"─ {group} ─" in text
    assert len(SURFACE["train"].split()) <= 27


# What a command's help may import of the package: it imports nothing else.
LIGHT = {"paramixer.errors", "paramixer.extras", "paramixer.bench", "paramixer.bench.shape"}


@pytest.mark.parametrize("words", ["--help", "--version", "data --help", *(f"{words} --help" for words in SURFACE)])
def test_help_imports_nothing_heavy(words):
    program = f"""
import sys
from paramixer.cli import main
assert main({words.split()}) == 0
print("HEAVY", [name for name in {HEAVY} if name in sys.modules])
own = {{name for name in sys.modules if name.startswith("paramixer.") and ".cli" not in name}}
print("OURS", own - {LIGHT})
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "HEAVY []" in ended.stdout
    assert "OURS set()" in ended.stdout


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"paramixer {pm.__version__}\n"


def test_without_words_help_is_printed(capsys):
    assert main([]) == 0
    assert "Usage: paramixer COMMAND" in capsys.readouterr().out


def test_help_all_documents_every_setting(capsys):
    assert main(["train", "--help-all"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    lines = text.splitlines()
    keys = [place for place, line in enumerate(lines) if re.match(r"  \S+  \(", line)]
    assert len(keys) > 60
    for place in keys:
        assert lines[place + 1].startswith("      "), lines[place]
        assert len(lines[place + 1].split()) > 1, lines[place]
    for key in ("data.difficulty", "model.hidden", "model.heads", "init.name", "training.patience", "match_parameters"):
        assert f"  {key}  (" in text
    assert "model.vocabulary" not in text
    assert "`" not in text
