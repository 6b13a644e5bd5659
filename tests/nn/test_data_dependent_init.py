"""Data-dependent initialization: what every block hands on is centered and of size one."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.nn.data_dependent_init import scale_by_data


def make_model(**fields: object) -> pm.Paramixer:
    config = pm.ParamixerConfig(
        length=12, vocabulary=6, outputs=4, channels=6, hidden=5, embedding_dropout=0.1, padding="length", **fields
    )
    return pm.Paramixer(config, init="local", generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("pooling", ["flat", "cls"])
@pytest.mark.parametrize("lengths", [None, [12, 3, 9, 7, 12, 1]], ids=["full", "lengths"])
def test_every_block_hands_on_what_is_centered_and_of_size_one(lengths, pooling):
    model = make_model(blocks=2, pooling=pooling).train()
    inputs = torch.randint(6, (6, 12), generator=torch.Generator().manual_seed(1))
    counts = None if lengths is None else torch.tensor(lengths)
    scale_by_data(model, inputs, counts)
    assert model.training
    embedded = model.eval().embed(inputs, counts)
    values = embedded.values
    for number, block in enumerate(model.blocks):
        values = block(values, embedded.values, counts)
        read = torch.arange(12) < (torch.full((6, 1), 12) if counts is None else counts[:, None])
        if pooling == "cls" and number == 1:
            read = read & (torch.arange(12) == 0)
        assert values[read].mean(0).abs().max() < 1e-5
        assert values[read].std().item() == pytest.approx(1, abs=1e-4)


def test_equal_sequences_cannot_scale_a_model():
    with pytest.raises(ValueError, match="block 1 maps the 6 sequences to nearly equal values"):
        scale_by_data(make_model(pooling="cls"), torch.ones(6, 12, dtype=torch.int64))
