"""Runs of every kind, as small as they can be, for pages to be made of."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from paramixer.cli import main

HOSTILE = (
    '<script>window.harmed = true</script>"><img src=x onerror="window.harmed=true">',
    "</script><script>window.harmed=true</script>",
    "'; alert(1); // `${window.harmed = true}` {{ 7 * 7 }} {% raw %}",
    "שלום \u202eright to left\u202c مرحبا",
    "𝄞 𐍈 🧬 four bytes each 𠜎",
)
_SHORT = ["--steps", "6", "--batch", "8", "--evaluate_every", "3", "--log_every", "1", "--seed", "1"]
_SMALL = ["--model.channels", "8", "--model.hidden", "8", "--model.init", "identity"]


def hostile_table(folder: Path) -> Path:
    """A csv of texts that would like to be more than text, in two classes."""
    path = folder / "hostile.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for number in range(80):
            rows.writerow([f"{HOSTILE[number % len(HOSTILE)]} {number}", "<b>good" if number % 3 else "bad & worse"])
    return path


def genome(folder: Path) -> Path:
    """Two classes of random bases."""
    source = folder / "genome"
    source.mkdir()
    draw = np.random.default_rng(0)
    for name in ("one", "two"):
        lines = [f">{name}{i}\n{''.join(draw.choice(list('ACGT'), 60))}\n" for i in range(30)]
        (source / f"{name}.fa").write_text("".join(lines))
    return source


def train(folder: Path, name: str) -> Path:
    """Make the run of this name; returns its folder."""
    out = folder / name
    source = str(genome(folder)) if name == "genome" else ""
    hostile = [str(hostile_table(folder)), "--text", "text", "--label", "label", "--length", "48"]
    sized = ["--train", "40", "--validation", "16", "--test", "24"]
    words = {
        "order": ["order", "--length", "24", *sized, *_SMALL, *_SHORT],
        "two-blocks": ["order", "--length", "24", *sized, *_SMALL, "--model.blocks", "2", *_SHORT],
        "adding": ["adding", "--length", "20", *sized, *_SMALL, *_SHORT],
        "transformer": ["order", "--length", "24", *sized, "--model", "transformer", *_SHORT],
        "hostile": [*hostile, *_SMALL, *_SHORT],
        "ngrams": [*hostile, "--model", "ngrams"],
        "pathfinder": ["pathfinder", "--difficulty", "easy", *sized, *_SMALL, *_SHORT],
        "listops": ["listops", "--length", "80", *sized, *_SMALL, *_SHORT],
        "genome": ["genome", "--source", source, "--length", "64", "--shortest", "1", *_SMALL, *_SHORT],
    }[name]
    assert main(["train", *words, "--out", str(out)]) == 0
    return out
