"""Metrics for TensorBoard, which is an extra: ``pip install paramixer[tensorboard]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Lines of metrics.jsonl carry these beside the numbers to be drawn.
_BESIDE = ("kind", "step", "epoch", "best")


class Board:
    """Writes every line of metrics.jsonl as scalars."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError("--tensorboard needs the package tensorboard; pip install tensorboard") from error
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def add(self, line: dict[str, Any]) -> None:
        """One line."""
        for name, value in line.items():
            if name not in _BESIDE:
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])
        self._writer.flush()
