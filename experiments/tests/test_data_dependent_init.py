from __future__ import annotations

import pytest
import torch

import paramixer as pm
from experiments.quick.data_dependent_init import scale_by_data
from experiments.quick.initializations import Initialization, initialize


def build(pooling: str, **fields: object) -> pm.Paramixer:
    config = pm.ParamixerConfig(
        layer="paper",
        length=12,
        outputs=2,
        vocabulary=6,
        channels=4,
        hidden=5,
        pooling=pooling,
        padding="length",
        **fields,
    )
    model = pm.Paramixer(config, init=None)
    initialize(model, Initialization(name="local"), torch.Generator().manual_seed(0))
    return model


@pytest.mark.parametrize("link_input", ["first", "block"])
@pytest.mark.parametrize("pooling", ["flat", "cls"])
@pytest.mark.parametrize("lengths", [None, [12, 3, 9, 7, 12, 1]], ids=["full", "lengths"])
def test_every_block_returns_centered_values_of_size_one(lengths, pooling, link_input):
    model = build(pooling, blocks=2, link_input=link_input).train()
    inputs = torch.randint(6, (6, 12), generator=torch.Generator().manual_seed(1))
    counts = None if lengths is None else torch.tensor(lengths)
    scale_by_data(model, inputs, counts)
    assert model.training
    embedded = model.eval().embed(inputs, counts)
    values = embedded.values
    for number, (block, link_inputs) in enumerate(zip(model.blocks, model.link_inputs(embedded), strict=True)):
        values = block(values, link_inputs, counts)
        read = torch.arange(12) < torch.tensor(lengths or [12] * 6)[:, None]
        if pooling == "cls" and number == 1:
            read = read & (torch.arange(12) == 0)
        assert values[read].mean(0).abs().max() < 1e-5
        assert values[read].std().item() == pytest.approx(1, abs=1e-4)


def test_equal_sequences_are_refused():
    with pytest.raises(ValueError, match="block 1 maps the 6 sequences to nearly equal values"):
        scale_by_data(build("cls"), torch.ones(6, 12, dtype=torch.int64))
