"""A summary of a task's data: sizes, classes, lengths, cut sequences, warnings, and a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paramixer.data.task import Sequences, Task
from paramixer.extras import needed_for

# A class is rare with less than this part of an even share.
_RARE = 0.5
# With fewer test sequences the result is unsure.
_FEW_TESTED = 100


@dataclass(frozen=True)
class SplitSummary:
    """Sizes, lengths and targets of one split."""

    sequences: int
    """Number of sequences."""
    shortest: int
    """Least length before cutting."""
    median: int
    """Median length before cutting."""
    longest: int
    """Greatest length before cutting."""
    cut: int
    """Sequences longer than N."""
    padded: int
    """Sequences shorter than N."""
    classes: dict[str, int]
    """Sequences of each class; empty for values."""
    spread: tuple[float, float, float] | None
    """Least, mean and greatest value; None for classes."""


def summarize(task: Task) -> dict[str, SplitSummary]:
    """Return the summary of every split."""
    return {name: _summarize_split(task, split) for name, split in task.splits.items()}


def find_warnings(task: Task) -> list[str]:
    """Return the task's notes, and what else a user should know before training."""
    warnings = list(task.notes)
    for name, split in summarize(task).items():
        if split.cut:
            warnings.append(
                f"{split.cut} of {split.sequences} {name} sequences are longer than {task.length} and are cut"
            )
        if split.classes:
            rarest = min(split.classes, key=lambda label: split.classes[label])
            share = split.classes[rarest] / split.sequences
            if share < _RARE / len(task.classes):
                remedy = " (--balance lets all classes count alike)" if name == "train" else ""
                count = f"{split.classes[rarest]} of {split.sequences}"
                warnings.append(f"class {rarest!r} is rare in {name}: {count}{remedy}")
        # Only files are cut into splits again; a fold has no request.
        if name == "test" and split.sequences < _FEW_TESTED and task.name == "own" and task.request:
            warnings.append(f"only {split.sequences} sequences are tested (--folds 5 tests all of the data)")
    return warnings


def draw_lengths(task: Task, path: Path) -> None:
    """Draw a histogram of the lengths before cutting, by class, with N marked, into an .svg or .png file."""
    with needed_for("the histogram of lengths"):
        import matplotlib
        from matplotlib.figure import Figure
    lengths = np.concatenate([split.full_lengths for split in task.splits.values()])
    with matplotlib.rc_context({"svg.hashsalt": "paramixer", "svg.fonttype": "path"}):
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.add_subplot()
        bins = _choose_bins(lengths).tolist()
        if task.target == "class" and len(task.classes) <= 10:
            targets = np.concatenate([split.targets for split in task.splits.values()])
            for number, label in enumerate(task.classes):
                axes.hist(lengths[targets == number], bins, alpha=0.6, label=label)
            axes.legend(title="class")
        else:
            axes.hist(lengths, bins)
        axes.axvline(task.length, color="black", linewidth=1, linestyle="--")
        axes.text(task.length, axes.get_ylim()[1], f" N = {task.length}", va="top")
        if bins[-1] > 50 * bins[0]:
            axes.set_xscale("log")
        axes.set_xlabel("length before cutting")
        axes.set_ylabel("sequences")
        axes.set_title(f"{task.display_name}: {len(lengths)} sequences")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _summarize_split(task: Task, split: Sequences) -> SplitSummary:
    lengths, targets = split.full_lengths, split.targets
    classes: dict[str, int] = {}
    spread = None
    if task.target == "class":
        counts = np.bincount(targets, minlength=len(task.classes))
        classes = {label: int(count) for label, count in zip(task.classes, counts, strict=True)}
    elif len(targets):
        spread = float(targets.min()), float(targets.mean()), float(targets.max())
    empty = not len(lengths)
    return SplitSummary(
        sequences=len(lengths),
        shortest=0 if empty else int(lengths.min()),
        median=0 if empty else int(np.median(lengths)),
        longest=0 if empty else int(lengths.max()),
        cut=int((lengths > task.length).sum()),
        padded=int((lengths < task.length).sum()),
        classes=classes,
        spread=spread,
    )


def _choose_bins(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    low, high = max(1, int(lengths.min())), int(lengths.max()) + 1
    if high > 50 * low:
        return np.geomspace(low, high, 60)
    return np.linspace(low, max(high, low + 1), 60)
