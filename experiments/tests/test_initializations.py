"""What every initialization sets, and that it draws from the generator alone."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
import torch

import paramixer as pm
from experiments.quick.initializations import (
    INITIALIZATIONS,
    Initialization,
    average_links_,
    gather_marked_,
    initialize,
    keep_neighbors_,
    preserve_scale_,
)

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


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def tokens(generator: torch.Generator) -> torch.Tensor:
    return torch.randint(1, 7, (3, 12), generator=generator)


def build(config: pm.ParamixerConfig, generator: torch.Generator, **options: object) -> pm.Paramixer:
    model = pm.Paramixer(config, init=None)
    initialize(model, Initialization(**options), generator)
    return model


def digest(model: torch.nn.Module) -> str:
    content = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in model.state_dict().items())
    return hashlib.sha256(content).hexdigest()


GOLDEN = [
    ({"name": "local"}, "babebfae1919cc17"),
    ({"name": "local", "embedding_bound": 0.1}, "a9327306a213bcff"),
    ({"name": "even"}, "2515b51730dde053"),
    ({"name": "pairs"}, "10d5baf311b680d5"),
    ({"name": "pairs", "ordered_ids": True}, "dd4791a7e0796e7f"),
]


@pytest.mark.parametrize(("options", "expected"), GOLDEN, ids=str)
def test_an_initialization_draws_the_same_numbers_for_ever(options, expected):
    """Records name a seed; the same seed must give the same model in every version."""
    config = pm.ParamixerConfig(layer="paper", length=33, outputs=3, vocabulary=7, pad=0, blocks=2)
    assert digest(build(config, torch.Generator().manual_seed(3), **options)).startswith(expected)


@pytest.mark.parametrize("name", ["paper", "identity"])
def test_the_packages_initializations_are_the_packages_own(name):
    ours = build(CONFIG, torch.Generator().manual_seed(1), name=name)
    assert digest(ours) == digest(pm.Paramixer(CONFIG, init=name, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_an_initialization_can_be_repeated_and_leaves_the_global_generator_alone(name):
    state = torch.get_rng_state()
    model = build(CONFIG, torch.Generator().manual_seed(1), name=name)
    first = digest(model)
    initialize(model, Initialization(name=name), torch.Generator().manual_seed(2))
    assert digest(model) != first
    initialize(model, Initialization(name=name), torch.Generator().manual_seed(1))
    assert digest(model) == first
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_no_initialization_is_named(generator):
    with pytest.raises(ValueError, match="init='zero'; choose from paper, identity, local, even, pairs"):
        Initialization(name="zero")
    numbers = pm.ParamixerConfig(layer="paper", length=40, outputs=3, features=2)
    with pytest.raises(ValueError, match="ordered_ids=True is for token ids"):
        build(numbers, generator, ordered_ids=True)


def test_g_keeps_the_scale_of_its_input(generator):
    block = pm.ParamixerBlock(256, 16, 16, generator=generator)
    preserve_scale_(block, generator)
    assert 0.5 < block.g(torch.randn(4, 256, 16, generator=generator)).std() < 2


def test_local_links_read_the_neighbors(generator):
    inputs = torch.randn(1, 256, 16, generator=generator)
    block = pm.ParamixerBlock(256, 16, 16, protocol="cdil", generator=generator)
    keep_neighbors_(block)
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
    assert torch.allclose(matrix.sum(1), torch.ones(256), atol=1e-5)


def test_local_answers_zero_at_first_and_averages_for_a_cls_token(generator):
    model = build(dataclasses.replace(CONFIG, pooling="cls"), generator, name="local").eval()
    inputs = tokens(generator)
    assert torch.equal(model(inputs), model.head.linear.bias.expand(3, 2))
    first, last = model.paramixer_blocks()
    assert not first.b2.any()
    torch.nn.init.zeros_(last.w2)
    rows = last.mixing_rows(model.embed(inputs).values, [0])
    assert rows.min() > 0
    assert rows.max() < 0.5
    other = build(dataclasses.replace(CONFIG, pooling="mean"), generator, name="local")
    assert not other.paramixer_blocks()[1].b2.any()


@pytest.mark.parametrize("pooling", ["flat", "mean"])
def test_even_has_equal_weights_at_every_position(pooling, generator):
    config = pm.ParamixerConfig(layer="paper", length=40, outputs=3, features=2, pooling=pooling)
    model = build(config, generator, name="even")
    weights = model.head.linear.weight.reshape(3, -1, config.channels)
    assert torch.equal(weights, weights[:, :1].expand_as(weights))
    answers = weights.flatten(1) @ torch.randn(weights[0].numel(), 2000, generator=generator)
    assert 1 < answers.std() < 4
    assert not model.paramixer_blocks()[0].b2.any()


def test_embeddings_of_ordered_ids_mark_the_largest_and_grow_with_the_id(generator):
    model = build(CONFIG, generator, name="pairs", ordered_ids=True)
    table = model.embedding.weight.detach()
    assert not table[0].any()
    assert table[-1, 0] > 2 * table[-2, 0]
    assert (table[:, 1].diff() > 0).all()
    assert table[:, 2:].abs().max() < 0.2
    assert torch.equal(model(tokens(generator)), model.head.linear.bias.expand(3, -1))


def test_positions_of_pairs_are_smooth_and_leave_the_channels_of_ordered_ids_alone(generator):
    config = pm.ParamixerConfig(layer="paper", length=256, outputs=2, vocabulary=8)
    model = build(config, generator, name="pairs", ordered_ids=True)
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
