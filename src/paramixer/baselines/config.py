"""Settings of a baseline: those of every sequence model, and its own."""

from __future__ import annotations

from paramixer.nn.config import SequenceConfig
from paramixer.validation import Count, settings


@settings
class BaselineConfig(SequenceConfig):
    """Everything a baseline is built from."""

    model: str
    """Name of the baseline, see :data:`paramixer.baselines.registry.BASELINES`."""
    hidden: Count = 32
    """Width of its feed-forward layers."""
    blocks: Count = 1
    """How many layers are stacked."""
    heads: Count = 1
    """Heads of its attention."""
    rank: Count | None = None
    """Linformer's k, landmarks, random features, states or hashed columns; None for its usual number."""
    window: Count | None = None
    """Width of local attention, bucket, block, stride or n-gram; None for its usual number."""
