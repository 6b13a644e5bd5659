"""Packed factors: those of the model up to rounding, within a size limit."""

from __future__ import annotations

import base64

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.report.factor_data import pack_factors


def unpack(block: dict, length: int) -> np.ndarray:
    links = len(block["offsets"][0])
    entries = np.frombuffer(base64.b64decode(block["entries"]), np.int8).reshape(len(block["offsets"]), length, links)
    return entries * np.array(block["scales"])[:, None]


@pytest.mark.parametrize(("padding", "count"), [("symbol", 20), ("symbol", 13), ("length", 13)])
def test_packed_factors_are_the_model_s_up_to_rounding(padding, count):
    config = pm.ParamixerConfig(
        layer="paper",
        length=20,
        vocabulary=7,
        outputs=3,
        channels=6,
        hidden=5,
        blocks=2,
        pooling="mean",
        padding=padding,
        pad=0,
    )
    model = pm.Paramixer(config, generator=torch.Generator().manual_seed(0)).eval()
    tokens = torch.randint(1, 7, (count,), generator=torch.Generator().manual_seed(1))
    packed = pack_factors(model, tokens, 10**6)
    assert packed.length == (20 if padding == "symbol" else count)
    assert (len(packed.blocks), packed.omitted_blocks) == (2, 0)
    padded = torch.nn.functional.pad(tokens, (0, packed.length - count))
    link_inputs = model.embed(padded[None]).values
    for block, document in zip(model.blocks, packed.blocks, strict=True):
        exact = block.factors(link_inputs)[0].detach().numpy()
        step = np.array(document["scales"])[:, None]
        assert (np.abs(unpack(document, packed.length) - exact) <= 0.501 * step).all()
        assert document["offsets"] == block.offsets.tolist()


def test_blocks_beyond_the_size_limit_are_omitted():
    config = pm.ParamixerConfig(layer="paper", length=16, vocabulary=7, outputs=3, channels=6, hidden=5, blocks=3)
    model = pm.Paramixer(config).eval()
    tokens = torch.ones(16, dtype=torch.int64)
    block_size = pack_factors(model, tokens, 10**6).size // 3
    packed = pack_factors(model, tokens, 2 * block_size + 10)
    assert (len(packed.blocks), packed.omitted_blocks) == (2, 1)
