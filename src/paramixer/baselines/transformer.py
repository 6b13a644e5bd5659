"""Softmax attention over all pairs of positions, by torch's own encoder layer."""

from __future__ import annotations

from torch import Tensor, nn

from paramixer.baselines.layer import whole_heads
from paramixer.nn.config import ParamixerConfig
from paramixer.ops.checks import past_end


class Transformer(nn.Module):
    """One encoder layer, with its norms first; torch computes it by scaled_dot_product_attention."""

    def __init__(self, config: ParamixerConfig) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(
            config.channels,
            whole_heads(config),
            config.hidden,
            config.block_dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )

    def forward(self, values: Tensor, inputs: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:
        """See :class:`~.layer.Layer`."""
        if lengths is None:
            mixed: Tensor = self.inner(values)
            return mixed
        past = past_end(lengths, values.shape[1])
        # A sequence of nothing keeps one position: softmax over none is NaN.
        hidden = past.clone()
        hidden[:, 0] = False
        mixed = self.inner(values.masked_fill(past[..., None], 0), src_key_padding_mask=hidden)
        return mixed.masked_fill(past[..., None], 0)
