"""Adding and Temporal Order: their definitions, the paper's worked examples, and sequences that can be drawn alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.data.generated import draw_two_positions
from paramixer.data.rng import draw_bits
from paramixer.data.tasks import adding, order


def test_the_papers_worked_example_has_target_0_825():
    """It marks three positions, against its own definition of two; the target is that of all three."""
    sequence = torch.tensor([[(0.5, 1), (-0.2, 0), (0.2, 1), (-0.8, 0), (0.6, 1)]])
    assert adding.compute_targets(sequence).item() == pytest.approx(0.825)


@pytest.mark.parametrize("length", [2, 3, 50])
def test_adding_sequences_have_two_marks_and_numbers_from_minus_one_to_one(length):
    task = pm.data.load("adding", length=length, train=400)
    items = [task.train[index] for index in range(400)]
    numbers, marks = torch.stack([item.inputs for item in items]).unbind(-1)
    assert (marks.sum(1) == 2).all()
    assert ((marks == 0) | (marks == 1)).all()
    assert marks.sum(0).min() > 0
    assert numbers.abs().max() < 1
    assert numbers.min() < -0.95
    assert numbers.max() > 0.95
    assert abs(float(numbers.mean())) < 0.1
    found = torch.stack([item.target for item in items])
    torch.testing.assert_close(found, adding.compute_targets(torch.stack([numbers, marks], -1)))
    np.testing.assert_allclose(task.train.targets, found.numpy(), rtol=1e-6)


def test_the_papers_worked_example_of_temporal_order_is_class_3():
    assert order.compute_targets(order.encode("adYcbaYcd")[None]).item() == 3


@pytest.mark.parametrize(("symbols", "target"), [("XaX", 0), ("abXcY", 1), ("YXdd", 2), ("YY", 3)])
def test_classes_are_the_ordered_pairs(symbols, target):
    assert order.compute_targets(order.encode(symbols)[None]).tolist() == [target]


@pytest.mark.parametrize("length", [2, 31, 33])
def test_order_sequences_have_two_signals_and_every_class(length):
    task = pm.data.load("order", length=length, train=400)
    items = [task.train[index] for index in range(400)]
    tokens = torch.stack([item.inputs for item in items])
    assert tokens.dtype == torch.int64
    assert tokens.shape == (400, length)
    assert ((tokens >= 4).sum(1) == 2).all()
    assert tokens.max() == 5
    if length > 2:
        noise = torch.bincount(tokens[tokens < 4], minlength=4)
        assert noise.min() > 0.9 * noise.float().mean()
    targets = torch.stack([item.target for item in items])
    assert torch.equal(order.compute_targets(tokens), targets)
    assert task.train.targets.tolist() == targets.tolist()
    assert torch.bincount(targets).min() > 60


@pytest.mark.parametrize("name", ["adding", "order"])
def test_a_sequence_follows_from_seed_split_and_index_alone(name):
    task, again = (pm.data.load(name, length=40, seed=5) for _ in range(2))
    other = pm.data.load(name, length=40, seed=6)
    assert [len(split) for split in task.splits.values()] == [100_000, 5_000, 5_000]
    for index in (0, 1, 99_999):
        assert torch.equal(task.train[index].inputs, again.train[index].inputs)
        assert not torch.equal(task.train[index].inputs, other.train[index].inputs)
    assert torch.equal(task.train[-1].inputs, task.train[99_999].inputs)
    firsts = [split[0].inputs for split in task.splits.values()]
    assert not any(torch.equal(firsts[i], firsts[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert task.fingerprint == again.fingerprint
    assert len({task.fingerprint, other.fingerprint, pm.data.load(name, length=41, seed=5).fingerprint}) == 3
    with pytest.raises(IndexError):
        task.train[100_000]


@pytest.mark.parametrize("name", ["adding", "order"])
def test_a_split_can_be_given_to_another_process(name):
    train = pm.data.load(name, length=40).train
    again = pickle.loads(pickle.dumps(train))
    assert torch.equal(again[17].inputs, train[17].inputs)
    assert again[17].target == train[17].target


def test_draws_are_the_same_on_every_machine():
    """Golden values: a change of these would change every generated data set."""
    assert draw_bits(2, 0, "train", 0).tolist() == [213000021201967259, 4455796210202625458]
    assert pm.data.load("order", length=24, seed=1).test[2].inputs.tolist() == [
        2,
        0,
        3,
        3,
        0,
        2,
        1,
        0,
        4,
        2,
        0,
        1,
        0,
        3,
        1,
        2,
        0,
        3,
        4,
        2,
        1,
        1,
        2,
        1,
    ]


def test_two_places_are_distinct_and_even():
    counts = np.zeros((5, 5), int)
    for index in range(5000):
        counts[draw_two_positions(draw_bits(1, 0, "test", index)[0], 5)] += 1
    assert (np.diag(counts) == 0).all()
    assert counts[~np.eye(5, dtype=bool)].min() > 180
