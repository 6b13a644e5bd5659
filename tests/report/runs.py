"""Tiny runs of every kind, for pages about them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from paramixer.training.runs.run import RunSettings, start_run

HOSTILE = (
    '<script>window.harmed = true</script>"><img src=x onerror="window.harmed=true">',
    "</script><script>window.harmed=true</script>",
    "'; alert(1); // `${window.harmed = true}` {{ 7 * 7 }} {% raw %}",
    "שלום \u202eright to left\u202c مرحبا",
    "𝄞 𐍈 🧬 four bytes each 𠜎",
)
KINDS = ("order", "two-blocks", "adding", "transformer", "hostile", "ngrams", "pathfinder", "listops", "genome")
_SHORT = {"steps": 6, "batch": 8, "evaluate_every": 3, "log_every": 1}
_SIZES = {"train": 40, "validation": 16, "test": 24}
_HOSTILE_DATA = {"text": "text", "label": "label", "length": 48}
_SMALL = {"channels": 8, "hidden": 8}


def write_hostile_table(folder: Path) -> Path:
    """A csv file of two classes whose texts and class names contain HTML, JavaScript and template code."""
    path = folder / "hostile.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for number in range(80):
            rows.writerow([f"{HOSTILE[number % len(HOSTILE)]} {number}", "<b>good" if number % 3 else "bad & worse"])
    return path


def write_genome(folder: Path) -> Path:
    """A folder of two FASTA files of random bases, one per class."""
    source = folder / "genome"
    source.mkdir()
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        lines = [f">{name}{i}\n{''.join(rng.choice(list('ACGT'), 60))}\n" for i in range(30)]
        (source / f"{name}.fa").write_text("".join(lines))
    return source


def write_species(folder: Path) -> Path:
    """A csv file of twenty classes whose names are far longer than a column."""
    path = folder / "species.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for number in range(200):
            label = (
                f"Streptococcus pneumoniae subspecies {number % 20} (an isolate from the lake beside the laboratory)"
            )
            rows.writerow(["ACGT"[number % 4] * 3 + "ACGT"[number % 3] * (9 + number), label])
    return path


def train_run(folder: Path, kind: str) -> Path:
    """Train a run of this kind; return its folder."""
    data: dict[str, Any]
    model: dict[str, Any]
    task, data, system, model = kind, _SIZES, "paramixer", _SMALL
    match kind:
        case "order":
            data = {"length": 24, **_SIZES}
        case "two-blocks":
            task, data, model = "order", {"length": 24, **_SIZES}, {**_SMALL, "blocks": 2}
        case "transformer":
            task, data, system, model = "order", {"length": 24, **_SIZES}, "transformer", {}
        case "adding":
            data = {"length": 20, **_SIZES}
        case "pathfinder":
            data = {"difficulty": "easy", **_SIZES}
        case "listops":
            data = {"length": 80, **_SIZES}
        case "genome":
            data = {"source": write_genome(folder), "length": 64, "shortest": 1}
        case "species":
            task, data = str(write_species(folder)), {"text": "text", "label": "label", "length": 48}
        case "hostile":
            task, data = str(write_hostile_table(folder)), _HOSTILE_DATA
        case "ngrams":
            task, data, system, model = str(write_hostile_table(folder)), _HOSTILE_DATA, "ngrams", {}
    out = folder / kind
    # The paper's network for its tasks, the default one for a user's file.
    paper = system == "paramixer" and kind not in ("hostile", "species")
    start_run(
        RunSettings(
            task=task,
            data=data,
            recipe="paper" if paper else None,
            system=system,
            model=model,
            init={"name": "identity"} if paper else {},
            training=_SHORT,
            seed=1,
        ),
        out,
    )
    return out
