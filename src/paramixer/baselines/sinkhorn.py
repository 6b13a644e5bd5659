"""Sinkhorn attention from sinkhorn_transformer: every bucket of positions attends to one that a sorting net chose."""

from __future__ import annotations

from sinkhorn_transformer.sinkhorn_transformer import SinkhornSelfAttention
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import check_heads, pad_to_multiple


class Sinkhorn(nn.Module):
    """Buckets depend on the padded length; it is always that of the longest sequence."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.bucket = config.window or min(64, max(1, config.length // 4))
        self.length = -(-max(config.length, 2 * self.bucket) // self.bucket) * self.bucket
        heads = check_heads(config)
        self.inner = SinkhornSelfAttention(config.channels, self.bucket, self.length, heads=heads, causal=False)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, self.bucket, self.length)
        mixed: Tensor = self.inner(longer, input_mask=valid)
        return mixed[:, : inputs.shape[1]]
