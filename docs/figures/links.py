"""Draws how CHORD and CDIL link 16 positions, as a ring and as the factors' matrices: docs/figures/links.svg.

python docs/figures/links.py
"""

from __future__ import annotations

from pathlib import Path

from experiments.figures import protocols


def draw(path: Path) -> None:
    protocols(path)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
