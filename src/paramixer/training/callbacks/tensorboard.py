"""Metrics for TensorBoard, which is an extra: ``pip install 'paramixer[tensorboard]'``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Keys of a line that are no scalars to draw.
_NOT_DRAWN = ("kind", "step", "epoch", "best")


class TensorBoard:
    """Writes lines of metrics as scalars below a folder."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError(
                "tensorboard=True needs the package tensorboard; pip install 'paramixer[tensorboard]'"
            ) from error
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def write(self, line: dict[str, Any]) -> None:
        """Write one line."""
        for name, value in line.items():
            if name not in _NOT_DRAWN:
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])
        self._writer.flush()
