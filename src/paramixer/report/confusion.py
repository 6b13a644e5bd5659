"""Confusion matrices that fit a panel of any width, with any number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

# A table of numbers up to this many classes; a picture beyond.
_MAX_TABLE = 12
# Classes listed by name, and confusions listed where there are more classes.
_MAX_LISTED = 40
# Letters of all names that fit above the columns of a phone.
_HEADER_LETTERS = 24


@dataclass(frozen=True)
class ClassRow:
    """How a class fared."""

    name: str
    right: str
    confused_with: str


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix as the page shows it; either a table or a picture."""

    labels: tuple[str, ...] = ()
    """Heads of rows and columns of the table: names, or numbers of the list of classes."""
    table: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()
    """Rows of the table: head, and count and share of the row in each column."""
    picture: Markup | None = None
    """An SVG element in place of a table."""
    classes: tuple[ClassRow, ...] = ()
    """Every class, where names are no heads; of many classes none."""
    frequent: tuple[tuple[str, str, int], ...] = ()
    """Label, prediction and count of the most frequent confusions of many classes."""


def show_confusion(names: Sequence[str], counts: NDArray[np.int64]) -> Confusion:
    """Return what the page shows of a confusion matrix.

    Args:
        names: name of each class.
        counts: confusion matrix ``[label, prediction]``.
    """
    named = sum(map(len, names)) + max(map(len, names)) <= _HEADER_LETTERS
    heads = tuple(names) if named else tuple(str(number) for number in range(1, len(names) + 1))
    listed = () if named else tuple(_list_classes(names, counts))
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    if len(names) > _MAX_TABLE:
        many = len(names) > _MAX_LISTED
        frequent = tuple(list_frequent_confusions(names, counts)) if many else ()
        return Confusion(picture=_draw(counts, shares), classes=() if many else listed, frequent=frequent)
    rows = tuple(
        (head, tuple((int(count), f"{share:.3f}") for count, share in zip(row, line, strict=True)))
        for head, row, line in zip(heads, counts, shares, strict=True)
    )
    return Confusion(labels=heads, table=rows, classes=listed)


def list_frequent_confusions(names: Sequence[str], counts: NDArray[np.int64]) -> list[tuple[str, str, int]]:
    """Return label, prediction and count of the most frequent confusions.

    Args:
        names: name of each class.
        counts: confusion matrix ``[label, prediction]``.
    """
    wrong = counts * (1 - np.eye(len(counts), dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_LISTED]
    cells = [(int(cell) // len(counts), int(cell) % len(counts)) for cell in order]
    return [(names[label], names[other], int(wrong[label, other])) for label, other in cells if wrong[label, other]]


def _list_classes(names: Sequence[str], counts: NDArray[np.int64]) -> list[ClassRow]:
    rows = []
    for number, (name, row) in enumerate(zip(names, counts, strict=True)):
        others = np.delete(row, number)
        other = int(np.argmax(others)) if others.size and others.any() else None
        confused = ""
        if other is not None:
            other += other >= number
            confused = f"{other + 1} ({row[other]} of {row.sum()})"
        rows.append(ClassRow(name, f"{row[number]} of {row.sum()}", confused))
    return rows


def _draw(counts: NDArray[np.int64], shares: NDArray[np.float64]) -> Markup:
    """Return an SVG of one square per cell, in the page's colors: the stronger, the larger the share of the row."""
    size = len(counts)
    margin = 0.09 * size
    text = f'font-size="{0.035 * size:.3g}" fill="var(--soft)"'
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if size / step <= 12 or step == 1000)
    marks = [0, *range(step - 1, size, step)] if step > 1 else list(range(size))
    parts = [f'<rect width="{size}" height="{size}" fill="none" stroke="var(--line)" stroke-width="{size / 300:.3g}"/>']
    for label, prediction in np.argwhere(counts):
        color, strength = "accent" if label == prediction else "warm", 0.15 + 0.85 * shares[label, prediction]
        parts.append(
            f'<rect x="{prediction}" y="{label}" width="1" height="1" fill="var(--{color})" '
            f'fill-opacity="{strength:.2f}"><title>label {label + 1}, prediction {prediction + 1}: '
            f"{counts[label, prediction]}</title></rect>"
        )
    gap, drop = 0.02 * size, 0.012 * size
    for mark in marks:
        middle = mark + 0.5
        parts.append(f'<text x="{middle}" y="{-gap:.3g}" text-anchor="middle" {text}>{mark + 1}</text>')
        parts.append(f'<text x="{-gap:.3g}" y="{middle + drop:.3f}" text-anchor="end" {text}>{mark + 1}</text>')
    right = int(np.trace(counts))
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" viewBox="{-margin:.3g} {-margin:.3g} '
        f'{size + 1.05 * margin:.4g} {size + 1.05 * margin:.4g}" role="img" aria-label="Confusion matrix of {size} '
        f'classes: {right} of {counts.sum()} predictions on the diagonal">{"".join(parts)}</svg>'
    )
