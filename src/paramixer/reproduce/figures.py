"""The figures that need no training: the two protocols, and how long the data's sequences are."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from paramixer.links import Cdil, Chord
from paramixer.pretrained import replace_file
from paramixer.tasks import registry
from paramixer.tasks.summary import draw_lengths, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paramixer.reproduce.cells import Sources

LENGTH = 16


def protocols(path: Path) -> None:
    """How CHORD and CDIL link 16 positions, as a ring and as the factors' matrices."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "links"}):
        colours = mpl.colormaps["viridis"](np.linspace(0.1, 0.9, 5))
        chord, cdil = Chord().offsets(LENGTH).tolist(), Cdil(links=3).offsets(LENGTH).tolist()
        figure = Figure(figsize=(12, 2.7), layout="constrained")
        axes = figure.subplots(1, 5)
        _ring(axes[0], chord[0], "CHORD: links of position 0", colours)
        _matrix(axes[1], chord[0], "CHORD: every factor", colours)
        _ring(axes[2], cdil[1], "CDIL, K = 3: factor 1", colours)
        _matrix(axes[3], cdil[1], "CDIL: factor 1, dilation 2", colours)
        full = torch.eye(LENGTH)
        for row in cdil:
            full = torch.stack([full.roll(-offset, 0) for offset in row]).sum(0)
        axes[4].imshow(full.log().numpy(), cmap="viridis")
        axes[4].set_title("their product: A, full", fontsize=9)
        for panel in axes[[1, 3, 4]]:
            panel.set_xticks([])
            panel.set_yticks([])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def lengths(sources: Sources, results: Path, figures: Path, longest: int | None = None) -> list[Path]:
    """How long the sequences of every task with files are; a record and a picture each.

    Args:
        sources: where the files are.
        results: where records are kept.
        figures: where pictures go.
        longest: N, in place of each task's own.
    """
    made = []
    for name, source in vars(sources).items():
        if source is None or name == "image":
            continue
        settings: dict[str, Any] = {"windows": True} if name == "genome" else {}
        task = registry.load(name, source=source, length=longest, **settings)
        found = {split: dataclasses.asdict(summary) for split, summary in summarise(task).items()}
        path = results / "figure-lengths" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"format": 1, "task": name, "fingerprint": task.fingerprint, "length": task.length, "splits": found}
        replace_file(path, (json.dumps(document, indent=1) + "\n").encode())
        figures.mkdir(parents=True, exist_ok=True)
        draw_lengths(task, figures / f"lengths-{name}.svg")
        made.append(path)
    return made


def _ring(axes: Axes, offsets: list[int], title: str, colours: np.ndarray) -> None:
    angles = [math.pi / 2 - 2 * math.pi * i / LENGTH for i in range(LENGTH)]
    places = [(math.cos(angle), math.sin(angle)) for angle in angles]
    for i, (x, y) in enumerate(places):
        for k, offset in enumerate(offsets[1:], 1):
            u, v = places[(i + offset) % LENGTH]
            strength = 0.9 if i == 0 else 0.12
            axes.plot([x, u], [y, v], color=colours[k % 5], alpha=strength, lw=1.8 if i == 0 else 0.8, zorder=1)
        axes.text(1.17 * x, 1.17 * y, str(i), ha="center", va="center", fontsize=7, color="0.3")
    axes.scatter([x for x, _ in places], [y for _, y in places], s=28, color="0.25", zorder=2)
    axes.set_title(title, fontsize=9, pad=10)
    axes.set_aspect("equal")
    axes.axis("off")


def _matrix(axes: Axes, offsets: list[int], title: str, colours: np.ndarray) -> None:
    image = np.ones((LENGTH, LENGTH, 4))
    for k, offset in reversed(list(enumerate(offsets))):
        rows = np.arange(LENGTH)
        image[rows, (rows + offset) % LENGTH] = colours[k % 5]
    axes.imshow(image)
    axes.set_title(title, fontsize=9)
