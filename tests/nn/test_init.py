"""What every initialization sets, and that it draws from the generator alone."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
import torch

import paramixer as pm
from ops import cases
from paramixer.nn.init import (
    INITIALIZATIONS,
    average_links_,
    gather_marked_,
    initialize,
    preserve_scale_,
    shrink_links_,
)

CONFIG = pm.ParamixerConfig(
    length=12, outputs=2, vocabulary=7, channels=4, hidden=5, pad=0, positions=False, blocks=2, padding="length"
)
NUMBERS = pm.ParamixerConfig(length=40, outputs=3, features=2)


def tokens(generator: torch.Generator) -> torch.Tensor:
    return torch.randint(1, 7, (3, 12), generator=generator)


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
    model = pm.Paramixer(pm.ParamixerConfig(**fields), init=None)
    initialize(model, "paper", torch.Generator().manual_seed(3), embedding_bound=bound)
    assert digest(model).startswith(expected)


@pytest.mark.parametrize("name", INITIALIZATIONS)
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
    with pytest.raises(ValueError, match="ordered_ids=True is for token ids"):
        initialize(pm.Paramixer(NUMBERS), ordered_ids=True)


def test_embedding_bound_makes_it_uniform(generator):
    model = pm.Paramixer(pm.ParamixerConfig(length=12, outputs=2, vocabulary=500, pad=0))
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


def test_g_keeps_the_scale_of_its_input(generator):
    block = pm.ParamixerBlock(256, 16, 16, generator=generator)
    preserve_scale_(block, generator)
    assert 0.5 < block.g(torch.randn(4, 256, 16, generator=generator)).std() < 2


def test_local_links_read_the_neighbors(generator):
    inputs = torch.randn(1, 256, 16, generator=generator)
    block = pm.ParamixerBlock(256, 16, 16, protocol="cdil", generator=generator)
    shrink_links_(block, local=True)
    matrix = block.mixing_matrix(inputs)[0]
    distance = (torch.arange(256)[:, None] - torch.arange(256)).abs()
    distance = torch.minimum(distance, 256 - distance)
    neighbors, others = (distance > 0) & (distance <= 4), distance > 8
    assert matrix[neighbors].pow(2).mean() > 30 * matrix[others].pow(2).mean()
    assert matrix.diagonal().mean().item() == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("residual", ["factor", "none"])
def test_averaging_links_read_everything(residual, generator):
    block = pm.ParamixerBlock(256, 16, 16, protocol="cdil", residual=residual, generator=generator)
    average_links_(block)
    with torch.no_grad():
        block.w2.zero_()
    matrix = block.mixing_matrix(torch.randn(1, 256, 16, generator=generator))[0]
    assert matrix.min() > 0
    cases.assert_close(matrix.sum(1), torch.ones(256), 1e-5)


def test_local_answers_zero_at_first_and_averages_for_a_cls_token(generator):
    model = pm.Paramixer(dataclasses.replace(CONFIG, pooling="cls"), init="local", generator=generator).eval()
    inputs = tokens(generator)
    assert torch.equal(model(inputs), model.head.linear.bias.expand(3, 2))
    first, last = model.paramixer_blocks()
    assert not first.b2.any()
    torch.nn.init.zeros_(last.w2)
    rows = last.mixing_rows(model.embed(inputs).values, [0])
    assert rows.min() > 0
    assert rows.max() < 0.5
    other = pm.Paramixer(dataclasses.replace(CONFIG, pooling="mean"), init="local")
    assert not other.paramixer_blocks()[1].b2.any()


@pytest.mark.parametrize("pooling", ["flat", "mean"])
def test_even_has_equal_weights_at_every_position(pooling, generator):
    config = pm.ParamixerConfig(length=40, outputs=3, features=2, pooling=pooling)
    model = pm.Paramixer(config, init="even", generator=generator)
    weights = model.head.linear.weight.reshape(3, -1, config.channels)
    assert torch.equal(weights, weights[:, :1].expand_as(weights))
    answers = weights.flatten(1) @ torch.randn(weights[0].numel(), 2000, generator=generator)
    assert 1 < answers.std() < 4
    assert not model.paramixer_blocks()[0].b2.any()


def test_embeddings_of_ordered_ids_mark_the_largest_and_grow_with_the_id(generator):
    model = pm.Paramixer(CONFIG, init=None)
    initialize(model, "pairs", generator, ordered_ids=True)
    table = model.embedding.weight.detach()
    assert not table[0].any()
    assert table[-1, 0] > 2 * table[-2, 0]
    assert (table[:, 1].diff() > 0).all()
    assert table[:, 2:].abs().max() < 0.2
    assert torch.equal(model(tokens(generator)), model.head.linear.bias.expand(3, -1))


def test_positions_of_pairs_are_smooth_and_leave_the_channels_of_ordered_ids_alone(generator):
    model = pm.Paramixer(pm.ParamixerConfig(length=256, outputs=2, vocabulary=8), init=None)
    initialize(model, "pairs", generator, ordered_ids=True)
    table = model.positions.weight.detach()
    assert not table[:, :2].any()
    waves = table[:, 2:]
    # Neighbors, also across the ends, are nearer than any other position.
    distances = torch.cdist(waves, waves).fill_diagonal_(torch.inf)
    nearest = (distances.argmin(1) - torch.arange(256)).remainder(256)
    assert torch.isin(nearest, torch.tensor([1, 255])).all()
    assert 0.4 < waves.std() < 1.2


@pytest.mark.parametrize("residual", ["factor", "none"])
@pytest.mark.parametrize(
    ("protocol", "around"),
    [("chord", [16 * row + column for row in (0, 1, 2, 4) for column in (0, 1, 2, 4)]), ("cdil", range(-4, 5))],
)
def test_pairs_hand_the_surroundings_of_either_mark_to_both(protocol, around, residual, generator):
    block = pm.ParamixerBlock(256, 16, 16, protocol=protocol, residual=residual, generator=generator)
    preserve_scale_(block, generator)
    gather_marked_(block)
    # In a picture of 16 x 16, an even number of rows apart, either way around the ring.
    marks = torch.tensor([16 * 4 + 6, 16 * 10 + 6])
    inputs = torch.zeros(1, 256, 16)
    inputs[0, marks, 0] = torch.tensor([2.0, 3.0])
    mixed = block.mixing_matrix(inputs)[0]
    unmarked = torch.ones(256, dtype=torch.bool)
    unmarked[marks] = False
    assert mixed[marks].pow(2).mean() > 1000 * mixed[unmarked].pow(2).mean()
    with torch.no_grad():
        # Without the drawn part of the factors that are not gated.
        block.w2[block.w1[:, 0].amax(1) < 3] = 0
    mixed = block.mixing_matrix(inputs)[0]
    gathered = torch.zeros(256, dtype=torch.bool)
    gathered[(marks[:, None] + torch.tensor(list(around))).flatten()] = True
    for row in mixed[marks]:
        assert row[gathered].min() > 0.5
        assert row[~gathered].abs().max() < 0.01 * row[gathered].min()
    # The more, the larger the mark.
    assert (mixed[marks[1], gathered] > 1.5 * mixed[marks[0], gathered]).all()
