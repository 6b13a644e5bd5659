"""Sinkhorn attention from sinkhorn_transformer: every bucket of positions with another that a sorting net chose."""

from __future__ import annotations

from sinkhorn_transformer.sinkhorn_transformer import SinkhornSelfAttention
from torch import Tensor, nn

from paramixer.baselines.layer import padded_to, whole_heads
from paramixer.nn.config import ParamixerConfig


class Sinkhorn(nn.Module):
    """Buckets depend on the padded length; it is always that of the longest sequence."""

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        self.bucket = config.window or min(64, max(1, config.length // 4))
        self.length = -(-max(config.length, 2 * self.bucket) // self.bucket) * self.bucket
        heads = whole_heads(config)
        self.inner = SinkhornSelfAttention(config.channels, self.bucket, self.length, heads=heads, causal=False)

    def forward(self, inputs: Tensor, there: Tensor | None) -> Tensor:
        """See :class:`~.layer.Attention`."""
        longer, there = padded_to(inputs, there, self.bucket, self.length)
        mixed: Tensor = self.inner(longer, input_mask=there)
        return mixed[:, : inputs.shape[1]]
