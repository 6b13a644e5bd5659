"""Longformer, BigBird and Mamba from transformers."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, MambaConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention
from transformers.models.mamba.modeling_mamba import MambaMixer

from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.layer import check_heads, pad_to_multiple

# ``paramixer models`` says that Mamba is slow without its kernels; one warning is enough.
logging.getLogger("transformers.integrations.hub_kernels").addFilter(
    lambda record: "falling back to its reference" not in record.getMessage()
)


class Longformer(nn.Module):
    """A sliding window; position 0 attends to all positions and all attend to it."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.window = config.window or min(64, 2 * max(2, config.length // 4))
        if self.window % 2:
            raise ValueError(
                f"window={self.window}; Longformer's window has equal halves to the left and right: choose it even"
            )
        settings = LongformerConfig(
            hidden_size=config.channels,
            num_attention_heads=check_heads(config),
            num_hidden_layers=1,
            attention_window=[self.window],
            attention_probs_dropout_prob=0.0,
        )
        self.inner = LongformerSelfAttention(settings, 0)  # type: ignore[no-untyped-call]
        self.to_out = nn.Linear(config.channels, config.channels)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, self.window, 2 * self.window)
        mask = longer.new_zeros(longer.shape[:2])
        if valid is not None:
            mask.masked_fill_(~valid, -10_000)
        mask[:, 0] = 10_000
        mixed = self.inner(longer, mask, mask < 0, mask > 0, True)[0]
        out: Tensor = self.to_out(mixed[:, : inputs.shape[1]])
        return out


class BigBird(nn.Module):
    """A window of three blocks, random blocks, and the first and last block global.

    The blocks depend on the padded length; it is always that of the longest sequence. transformers seeds numpy's global
    generator for its random blocks: its state is restored. In evaluation mode it would attend to block 0 instead of the
    random blocks it was trained with; here it keeps them. It mixes dtypes under autocast, and so computes in float32.
    """

    RANDOM = 3

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        self.block = config.window or min(64, max(1, config.length // 16))
        # With fewer blocks there are no random ones.
        self.length = max(config.length, (6 + 2 * self.RANDOM) * self.block)
        settings = BigBirdConfig(
            hidden_size=config.channels,
            num_attention_heads=check_heads(config),
            num_hidden_layers=1,
            block_size=self.block,
            num_random_blocks=self.RANDOM,
            max_position_embeddings=-(-self.length // self.block) * self.block,
            attention_probs_dropout_prob=0.0,
        )
        self.inner = BigBirdBlockSparseAttention(settings, seed=0)  # type: ignore[no-untyped-call]
        self.to_out = nn.Linear(config.channels, config.channels)

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`."""
        longer, valid = pad_to_multiple(inputs, valid, self.block, self.length)
        mask = torch.ones(longer.shape[:2], device=longer.device) if valid is None else valid.float()
        blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(mask, self.block)
        state = np.random.get_state()  # noqa: NPY002
        try:
            with torch.autocast(inputs.device.type, enabled=False):
                mixed = self.inner(longer.float(), band, rows, columns, blocked, blocked)[0]
        finally:
            np.random.set_state(state)  # noqa: NPY002
        out: Tensor = self.to_out(mixed[:, : inputs.shape[1]].to(inputs.dtype))
        return out

    def train(self, mode: bool = True) -> BigBird:
        """Set the mode of all but the attention, which has no dropout and keeps its random blocks."""
        super().train(mode)
        self.inner.training = True
        return self


class Mamba(nn.Module):
    """The sum of two selective state spaces, one per direction; a loop over the positions without its CUDA kernels."""

    def __init__(self, config: BaselineConfig) -> None:
        super().__init__()
        settings = MambaConfig(
            hidden_size=config.channels, state_size=config.rank or 16, num_hidden_layers=1, vocab_size=1
        )
        settings.intermediate_size = config.hidden
        self.inner = nn.ModuleList(MambaMixer(settings, 0) for _ in range(2))

    def forward(self, inputs: Tensor, valid: Tensor | None) -> Tensor:
        """Return mixed values, see :class:`~.layer.Attention`. Both directions read the padding last."""
        forward, backward = self.inner
        mixed: Tensor = forward(inputs) + _reverse(backward(_reverse(inputs, valid)), valid)
        return mixed


def _reverse(values: Tensor, valid: Tensor | None) -> Tensor:
    """Return every sequence from its end to its beginning; positions past the end stay."""
    if valid is None:
        return values.flip(1)
    places = torch.arange(values.shape[1], device=values.device)
    lengths = valid.sum(1, keepdim=True)
    backwards = torch.where(places < lengths, lengths - 1 - places, places)
    return values.gather(1, backwards[..., None].expand_as(values))
