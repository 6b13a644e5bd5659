"""Attention from packages, adapted to inputs of any length and to masks.

Nothing is copied from the packages. Each class documents the package's problems and how they are avoided.
"""

from __future__ import annotations

from typing import Any

import torch
from linformer.linformer import LinformerSelfAttention
from long_short_transformer.long_short_transformer import LongShortAttention
from nystrom_attention import NystromAttention
from performer_pytorch.performer_pytorch import SelfAttention
from reformer_pytorch.reformer_pytorch import LSHSelfAttention
from torch import Tensor, nn

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import check_heads, pad_to_multiple


class Linformer(nn.Module):
    """Projects keys and values along the sequence; the projections have no bias, so that zeros add nothing."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        rank = min(config.rank or 256, config.length)
        heads = check_heads(config)
        self.inner = LinformerSelfAttention(config.channels, config.length, k=rank, heads=heads, one_kv_head=True)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        mixed: Tensor = self.inner(inputs)
        return mixed


class Performer(nn.Module):
    """Random positive features.

    The package leaves masked positions out of the numerator only; here they leave the denominator too: one more column
    of values gives the share of the weight on positions that count, by which the result is divided. The features are
    redrawn every 1000 training steps, as in the package's own model.
    """

    REDRAW_EVERY = 1000

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        heads = check_heads(config)
        each = config.channels // heads
        features = config.rank or max(each, int(each * torch.tensor(float(each)).log()))
        self.inner = SelfAttention(config.channels, heads=heads, dim_head=each, nb_features=features, causal=False)
        self.inner.fast_attention = _MaskedAttention(self.inner.fast_attention)
        self.register_buffer("steps", torch.zeros(()))
        self.steps: Tensor

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        attention: _MaskedAttention = self.inner.fast_attention
        if self.training and torch.is_grad_enabled():
            self.steps += 1
            if self.steps % self.REDRAW_EVERY == 0:
                attention.inner.redraw_projection_matrix(inputs.device)
        attention.valid = valid
        mixed: Tensor = self.inner(inputs)
        attention.valid = None
        return mixed


class _MaskedAttention(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner: Any = inner
        self.valid: Tensor | None = None

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.valid is None:
            plain: Tensor = self.inner(query, key, value)
            return plain
        counts = self.valid[:, None, :, None].to(value.dtype).expand(-1, value.shape[1], -1, 1)
        mixed: Tensor = self.inner(query, key, torch.cat([value, counts], -1))
        return mixed[..., :-1] / mixed[..., -1:].clamp(min=1e-6)


class Reformer(nn.Module):
    """Locality-sensitive hashing, in both directions, without the reversible residual (it saves memory with depth).

    Buckets depend on the padded length; it is always that of the longest sequence, so that a sequence's answer does
    not depend on the others in its batch. Hashes are drawn in every pass: answers vary from pass to pass.
    """

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.length = config.length
        self.bucket = config.window or min(64, max(1, config.length // 2))
        heads = check_heads(config)
        self.inner = LSHSelfAttention(config.channels, heads=heads, bucket_size=self.bucket, n_hashes=4, causal=False)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, 2 * self.bucket, self.length)
        mixed: Tensor = self.inner(longer, input_mask=valid)
        # The package stores the buckets for a reversible backward pass, which is not used here.
        self.inner.lsh_attn._cache = {}
        return mixed[:, : inputs.shape[1]]


class Nystromformer(nn.Module):
    """Landmarks are means of segments, which depend on the padded length; it is always that of the longest sequence.

    The package pads on the left, and without a mask its padding takes part; it always gets a mask if it pads.
    """

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.length = config.length
        self.landmarks = min(config.rank or 256, config.length)
        heads = check_heads(config)
        self.inner = NystromAttention(
            config.channels,
            dim_head=config.channels // heads,
            heads=heads,
            num_landmarks=self.landmarks,
            pinv_iterations=6,
        )

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, self.landmarks, self.length)
        mixed: Tensor = self.inner(longer, mask=valid)
        return mixed[:, : inputs.shape[1]]


class TransformerLS(nn.Module):
    """Long-short attention: a window and a dynamic projection.

    With a mask the package works with one head only (the shape of its mask has no heads), so that several heads are
    several of its attentions, each with a share of the channels. Its mask does not fit bfloat16: it computes in
    float32. It needs rotary-embedding-torch 0.3.0; newer versions break it.
    """

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        heads = check_heads(config)
        each = config.channels // heads
        if each < 2:
            raise ValueError(
                f"channels={config.channels} and heads={heads}; "
                "rotary positions need two channels per head: use fewer heads"
            )
        self.window = config.window or 1
        rank = min(config.rank or 256, config.length)
        self.inner = nn.ModuleList(
            LongShortAttention(
                dim=config.channels, heads=1, dim_head=each, causal=False, window_size=self.window, r=rank
            )
            for _ in range(heads)
        )

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, self.window)
        with torch.autocast(inputs.device.type, enabled=False):
            mixed = torch.stack([head(longer.float(), mask=valid) for head in self.inner]).sum(0)
        return mixed[:, : inputs.shape[1]].to(inputs.dtype)
