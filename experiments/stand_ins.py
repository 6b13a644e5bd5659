"""Tiny files in the forms of the real data, to try every experiment anywhere. Nothing can be learned from them."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np

from experiments.cells import Sources

_LETTERS = "abcdefghijklmnopqrstuvwxyz "


def write_stand_ins(folder: Path) -> Sources:
    """Write the files that are missing, the same every time, and return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)
    image = folder / "image.npz"
    if not image.exists():
        pixels = np.random.default_rng(0).integers(0, 256, (80, 32, 32), dtype=np.uint8)
        classes = (np.arange(80) % 10).astype(np.uint8)
        np.savez(image, x_train=pixels[:60], y_train=classes[:60], x_test=pixels[60:], y_test=classes[60:])
    text, documents = folder / "text.csv", folder / "documents.csv"
    for path, column, classes_of in ((text, "label", ("neg", "pos")), (documents, "category", ("a", "b", "c"))):
        if not path.exists():
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["text", column])
                for number in range(60):
                    writer.writerow(["".join(draw.choices(_LETTERS, k=100)), classes_of[number % len(classes_of)]])
    genome = folder / "genome"
    genome.mkdir(exist_ok=True)
    for name in ("one", "two"):
        path = genome / f"{name}.fa"
        if not path.exists():
            path.write_text(f">{name}\n{''.join(draw.choices('ACGT', k=40_000))}\n")
    return Sources(image, text, documents, genome, reviews=text)
