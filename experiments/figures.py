"""The paper's pictures: the two protocols, the network, example inputs with their maps, the lengths of the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from experiments.records import write_json
from experiments.travel import draw_travel
from paramixer.attribution import explain
from paramixer.data import registry
from paramixer.data.summary import draw_lengths, summarize
from paramixer.data.task import Task
from paramixer.links import Cdil, Chord
from paramixer.nn.model import Paramixer
from paramixer.report.explanation_figure import draw_map_over_image
from paramixer.report.sequence import view_sequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.cells import Sources

LENGTH = 16


def draw_protocols(path: Path) -> None:
    """Draw how CHORD and CDIL link 16 positions, as a ring and as the factors' matrices."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "links"}):
        colors = mpl.colormaps["viridis"](np.linspace(0.1, 0.9, 5))
        chord, cdil = Chord().offsets(LENGTH).tolist(), Cdil(links=3).offsets(LENGTH).tolist()
        figure = Figure(figsize=(12, 2.9), layout="constrained")
        axes = figure.subplots(1, 5)
        _ring(axes[0], chord[0], "CHORD: position 0", colors)
        _matrix(axes[1], chord[0], "CHORD: every factor", colors)
        _ring(axes[2], cdil[1], "CDIL, factor 2: position 0", colors)
        _matrix(axes[3], cdil[1], "CDIL, factor 2: all", colors)
        full = torch.eye(LENGTH)
        for row in cdil:
            full = torch.stack([full.roll(-offset, 0) for offset in row]).sum(0)
        axes[4].imshow(full.log().numpy(), cmap="viridis")
        axes[4].set_title("CDIL: the product", fontsize=11)
        for panel in axes[[1, 3, 4]]:
            panel.set_xticks([])
            panel.set_yticks([])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def draw_network(path: Path) -> None:
    """Draw the whole model: what an MLP writes from every token, and how the chain uses it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "network", "font.size": 9}):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_xlim(0, 10)
        axes.set_ylim(0, 3.6)
        axes.axis("off")
        for x, wide, label, color in (
            (0.1, 1.2, "sequence\nN tokens", "white"),
            (1.7, 1.5, "embedding\n+ positions", "#dcebf2"),
            (8.0, 0.9, "head", "#dcebf2"),
            (9.2, 0.75, "class\nor value", "white"),
        ):
            _box(axes, x, 0.5, wide, 0.8, label, color)
        axes.add_patch(mpl.patches.FancyBboxPatch((3.65, 0.2), 4.0, 3.2, "round,pad=0.06", fc="#f6f6f2", ec="0.6"))
        axes.text(7.6, 3.25, "block, B times", ha="right", va="top", color="0.35")
        _box(axes, 3.85, 0.5, 0.6, 0.8, "g", "#dcebf2")
        for place, name in enumerate(("1", "2", "M")):
            x = 4.75 + 1.0 * place
            _box(axes, x, 0.5, 0.75, 0.8, f"$W^{{({name})}}$", "#f3dccf")
            _box(axes, x, 1.9, 0.75, 0.6, f"MLP {name}", "#dcebf2")
            _arrow(axes, (x + 0.37, 1.9), (x + 0.37, 1.3))
            _arrow(axes, (x + 0.37, 2.9), (x + 0.37, 2.5))
            # Every factor adds its own input.
            arc = {"arrowstyle": "->", "color": "0.5", "connectionstyle": "arc3,rad=0.55", "linewidth": 0.8}
            axes.annotate("", (x + 0.8, 0.48), (x - 0.08, 0.48), arrowprops=arc)
        axes.text(6.62, 0.9, "…", ha="center", va="center")
        axes.plot([2.45, 2.45, 7.12], [1.3, 2.9, 2.9], color="0.25", linewidth=1)
        axes.text(3.85, 3.0, r"$X_0$: each token writes its own links", ha="left", va="bottom", color="0.25")
        for start, stop in ((1.3, 1.7), (3.2, 3.85), (4.45, 4.75), (5.5, 5.75), (7.5, 8.0), (8.9, 9.2)):
            _arrow(axes, (start, 0.9), (stop, 0.9))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def draw_pathfinder(path: Path) -> None:
    """Draw eight Pathfinder images with a path and eight without."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from paramixer.data.tasks.pathfinder.pathfinder import CLASSES, Job, draw_images

    images = draw_images(Job("train", 0, 16, 0, 32, "hard"))
    with mpl.rc_context():
        figure = Figure(figsize=(11, 3.2), dpi=100, layout="constrained")
        for has_path, row in zip((True, False), figure.subplots(2, 8), strict=True):
            for axes, pixels in zip(row, images.pixels[images.paths == has_path], strict=True):
                axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
                axes.set_title(CLASSES[has_path], fontsize=9)
                axes.axis("off")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None})


DRAWINGS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "figure-travel": ("travel.svg", draw_travel),
    "figure-protocols": ("links.svg", draw_protocols),
    "figure-network": ("network.svg", draw_network),
    "figure-pathfinder": ("pathfinder.png", draw_pathfinder),
}
"""Pictures that need no data: by experiment the file in docs/figures, and what draws it."""


def draw_examples(examples: Sequence[tuple[str, Paramixer, Task]], path: Path, count: int = 2) -> None:
    """Draw test images with a row and a column of A for their strongest position, and the evidence for the answer.

    Args:
        examples: names, models and tasks of images.
        path: of the picture.
        count: test sequences of each.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    titles = ("the input", "row of A", "column of A", "evidence")
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(1.9 * len(titles), 2.1 * count * len(examples)), layout="constrained")
        panels = figure.subplots(count * len(examples), len(titles), squeeze=False)
        for row, line in enumerate(panels):
            name, model, task = examples[row // count]
            item = task.test[row % count]
            explanation = explain(model, item.inputs)
            view = view_sequence(item.inputs, task)
            if view.numbers is None or view.kind != "image" or explanation.rows is None or explanation.columns is None:
                raise ValueError(f"{name} has no images, or its model no links")
            side = len(view.numbers)
            maps = (None, explanation.rows[0, 0], explanation.columns[0, 0], explanation.evidence)
            answer = task.classes[int(explanation.answer.argmax())]
            target = task.classes[int(item.target)]
            for axes, title, values in zip(line, titles, maps, strict=True):
                axes.imshow(view.numbers, cmap="gray", vmin=0, vmax=255)
                if values is not None:
                    draw_map_over_image(axes, values.double().reshape(side, side).numpy())
                axes.set_title(f"{name}: {target},\nanswer {answer}" if values is None else title)
                axes.axis("off")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, metadata={"Software": None})


def measure_lengths(sources: Sources, results: Path, figures: Path, longest: int | None = None) -> list[Path]:
    """Measure how long the sequences of every task with files are; writes a record and a picture each.

    Args:
        sources: where the files are.
        results: folder of the records.
        figures: folder of the pictures.
        longest: N, in place of each task's own.
    """
    paths = []
    for name, source in vars(sources).items():
        # Images are all of one length, and the reviews are drawn from the texts.
        if source is None or name in ("image", "reviews"):
            continue
        settings: dict[str, Any] = {"windows": True} if name == "genome" else {}
        task = registry.load(name, source=source, length=longest, **settings)
        splits = {split: dataclasses.asdict(summary) for split, summary in summarize(task).items()}
        path = results / "figure-lengths" / f"{name}.json"
        document = {"format": 1, "task": name, "fingerprint": task.fingerprint, "length": task.length, "splits": splits}
        write_json(path, document)
        figures.mkdir(parents=True, exist_ok=True)
        draw_lengths(task, figures / f"lengths-{name}.svg")
        paths.append(path)
    return paths


def _box(axes: Axes, x: float, y: float, wide: float, tall: float, label: str, color: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(FancyBboxPatch((x, y), wide, tall, "round,pad=0,rounding_size=0.08", fc=color, ec="0.25"))
    axes.text(x + wide / 2, y + tall / 2, label, ha="center", va="center")


def _arrow(axes: Axes, start: tuple[float, float], stop: tuple[float, float]) -> None:
    axes.annotate("", stop, start, arrowprops={"arrowstyle": "->", "color": "0.25", "linewidth": 1, "shrinkA": 0})


def _ring(axes: Axes, offsets: list[int], title: str, colors: np.ndarray) -> None:
    angles = [math.pi / 2 - 2 * math.pi * i / LENGTH for i in range(LENGTH)]
    places = [(math.cos(angle), math.sin(angle)) for angle in angles]
    for i, (x, y) in enumerate(places):
        for k, offset in enumerate(offsets[1:], 1):
            u, v = places[(i + offset) % LENGTH]
            strength = 0.9 if i == 0 else 0.12
            axes.plot([x, u], [y, v], color=colors[k % 5], alpha=strength, lw=1.8 if i == 0 else 0.8, zorder=1)
        axes.text(1.17 * x, 1.17 * y, str(i), ha="center", va="center", fontsize=7, color="0.3")
    axes.scatter([x for x, _ in places], [y for _, y in places], s=28, color="0.25", zorder=2)
    axes.set_title(title, fontsize=11)
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.axis("off")


def _matrix(axes: Axes, offsets: list[int], title: str, colors: np.ndarray) -> None:
    image = np.ones((LENGTH, LENGTH, 4))
    for k, offset in reversed(list(enumerate(offsets))):
        rows = np.arange(LENGTH)
        image[rows, (rows + offset) % LENGTH] = colors[k % 5]
    axes.imshow(image)
    axes.set_title(title, fontsize=11)
