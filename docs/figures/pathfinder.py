"""Draws eight Pathfinder pictures with a path and eight without: docs/figures/pathfinder.png.

python docs/figures/pathfinder.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt

from paramixer.data.tasks.pathfinder.pathfinder import CLASSES, Job, draw_images


def draw(path: Path) -> None:
    images = draw_images(Job("train", 0, 16, 0, 32, "hard"))
    figure, axes = plt.subplots(2, 8, figsize=(11, 3.2), dpi=100, layout="constrained")
    for has_path, row in zip((True, False), axes, strict=True):
        for axis, pixels in zip(row, images.pixels[images.paths == has_path], strict=True):
            axis.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axis.set_title(CLASSES[has_path], fontsize=9)
            axis.axis("off")
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
