"""Draws how CHORD and CDIL link 16 positions, as a ring and as the factors' matrices: docs/figures/links.svg.

python docs/figures/links.py
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "links"

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

import paramixer as pm  # noqa: E402

LENGTH = 16
COLOURS = plt.get_cmap("viridis")(np.linspace(0.1, 0.9, 5))


def draw_ring(axes, offsets: list[int], title: str) -> None:
    angles = [math.pi / 2 - 2 * math.pi * i / LENGTH for i in range(LENGTH)]
    places = [(math.cos(angle), math.sin(angle)) for angle in angles]
    for i, (x, y) in enumerate(places):
        for k, offset in enumerate(offsets[1:], 1):
            u, v = places[(i + offset) % LENGTH]
            strength = 0.9 if i == 0 else 0.12
            axes.plot([x, u], [y, v], color=COLOURS[k % 5], alpha=strength, lw=1.8 if i == 0 else 0.8, zorder=1)
        axes.text(1.17 * x, 1.17 * y, str(i), ha="center", va="center", fontsize=7, color="0.3")
    axes.scatter(*zip(*places, strict=True), s=28, color="0.25", zorder=2)
    axes.set_title(title, fontsize=9, pad=10)
    axes.set_aspect("equal")
    axes.axis("off")


def draw_matrix(axes, offsets: list[int], title: str) -> None:
    image = np.ones((LENGTH, LENGTH, 4))
    for k, offset in reversed(list(enumerate(offsets))):
        rows = np.arange(LENGTH)
        image[rows, (rows + offset) % LENGTH] = COLOURS[k % 5]
    axes.imshow(image)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=9)


def draw(path: Path) -> None:
    chord, cdil = pm.Chord().offsets(LENGTH).tolist(), pm.Cdil(links=3).offsets(LENGTH).tolist()
    figure, axes = plt.subplots(1, 5, figsize=(12, 2.7), layout="constrained")
    draw_ring(axes[0], chord[0], "CHORD: links of position 0")
    draw_matrix(axes[1], chord[0], "CHORD: every factor")
    draw_ring(axes[2], cdil[1], "CDIL, K = 3: factor 1")
    draw_matrix(axes[3], cdil[1], "CDIL: factor 1, dilation 2")
    full = np.eye(LENGTH)
    for row in cdil:
        full = sum(np.roll(full, -offset, 0) for offset in row)
    axes[4].imshow(np.log(full), cmap="viridis")
    axes[4].set_xticks([])
    axes[4].set_yticks([])
    axes[4].set_title("their product: A, full", fontsize=9)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
