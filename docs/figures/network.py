"""Draws the network: docs/figures/network.svg.

python docs/figures/network.py
"""

from __future__ import annotations

from pathlib import Path

from experiments.figures import network


def draw(path: Path) -> None:
    network(path)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
