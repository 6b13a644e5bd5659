"""What every initialization sets, and that it draws from the generator alone."""

from __future__ import annotations

import hashlib

import pytest
import torch

import paramixer as pm
from paramixer.nn.init import INITIALIZATIONS, initialize, shrink_links_

CONFIG = pm.ParamixerConfig(
    layer="paper",
    length=12,
    outputs=2,
    vocabulary=7,
    channels=4,
    hidden=5,
    pad=0,
    positions=False,
    blocks=2,
    padding="length",
)


def digest(model: torch.nn.Module) -> str:
    content = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in model.state_dict().items())
    return hashlib.sha256(content).hexdigest()


GOLDEN = [
    ({"length": 33, "outputs": 3, "vocabulary": 7, "pad": 0, "blocks": 2}, None, "fc5c0a4883090641"),
    ({"length": 33, "outputs": 3, "vocabulary": 7, "pad": 0, "blocks": 2}, 0.1, "38ae52cc118bfb5e"),
    (
        {"length": 32, "outputs": 1, "features": 2, "target": "value", "positions": False, "pooling": "mean"}
        | {"protocol": "cdil"},
        None,
        "2df37e473b8f5dbe",
    ),
]


@pytest.mark.parametrize(("fields", "bound", "expected"), GOLDEN, ids=["tokens", "bound", "numbers"])
def test_the_papers_initialization_draws_the_same_numbers_for_ever(fields, bound, expected):
    """Records name a seed; the same seed must give the same model in every version."""
    model = pm.Paramixer(pm.ParamixerConfig(layer="paper", **fields), init=None)
    initialize(model, "paper", torch.Generator().manual_seed(3), embedding_bound=bound)
    assert digest(model).startswith(expected)


@pytest.mark.parametrize("name", INITIALIZATIONS["paper"])
def test_an_initialization_can_be_repeated_and_leaves_the_global_generator_alone(name):
    state = torch.get_rng_state()
    model = pm.Paramixer(CONFIG, init=name, generator=torch.Generator().manual_seed(1))
    first = digest(model)
    initialize(model, name, torch.Generator().manual_seed(2))
    assert digest(model) != first
    initialize(model, name, torch.Generator().manual_seed(1))
    assert digest(model) == first
    assert torch.equal(torch.get_rng_state(), state)


def test_a_model_without_initialization_draws_nothing():
    state = torch.get_rng_state()
    pm.Paramixer(CONFIG, init=None)
    assert torch.equal(torch.get_rng_state(), state)


def test_an_unknown_initialization_is_named():
    with pytest.raises(ValueError, match="init='zero'; choose from paper, identity"):
        pm.Paramixer(CONFIG, init="zero")


def test_embedding_bound_makes_it_uniform(generator):
    model = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=12, outputs=2, vocabulary=500, pad=0))
    initialize(model, "paper", generator, embedding_bound=0.1)
    assert 0.09 < model.embedding.weight.abs().max().item() <= 0.1


def test_shrunken_links_keep_the_chain_near_the_identity(generator):
    inputs = torch.randn(1, 256, 16, generator=generator)
    block = pm.ParamixerBlock(256, 16, 16, generator=generator)

    def distance_to_identity() -> float:
        return ((block.mixing_matrix(inputs)[0] - torch.eye(256)).norm() / 16).item()

    assert distance_to_identity() > 1
    shrink_links_(block)
    assert distance_to_identity() < 1
