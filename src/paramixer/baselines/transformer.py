"""Softmax attention over all pairs of positions: torch's encoder layer."""

from __future__ import annotations

from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import check_heads
from paramixer.ops.checks import past_end


class Transformer(nn.Module):
    """One encoder layer, with its norms first; torch computes it by scaled_dot_product_attention."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(
            config.channels,
            check_heads(config),
            config.hidden,
            config.block_dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )

    def forward(self, values: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Layer`."""
        if lengths is None:
            mixed: Tensor = self.inner(values)
            return mixed
        past = past_end(lengths, values.shape[1])
        # An empty sequence keeps one position: softmax over none is NaN.
        ignored = past.clone()
        ignored[:, 0] = False
        mixed = self.inner(values.masked_fill(past[..., None], 0), src_key_padding_mask=ignored)
        return mixed.masked_fill(past[..., None], 0)
