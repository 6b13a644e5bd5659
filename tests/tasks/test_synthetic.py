"""The definitions of the synthetic tasks, and the worked examples of the paper."""

from __future__ import annotations

import pytest
import torch

from paramixer.tasks import adding, order


def test_the_papers_worked_example_has_target_0_825():
    """It marks three positions, against its own definition of two; the target is that of all three."""
    sequence = torch.tensor([[(0.5, 1), (-0.2, 0), (0.2, 1), (-0.8, 0), (0.6, 1)]])
    assert adding.targets(sequence).item() == pytest.approx(0.825)


def test_adding_sequences_have_two_marks_and_numbers_from_minus_one_to_one(generator):
    numbers, marks = adding.draw(200, 50, generator).unbind(-1)
    assert (marks.sum(1) == 2).all()
    assert ((marks == 0) | (marks == 1)).all()
    assert numbers.abs().max() < 1
    assert numbers.min() < -0.98
    assert numbers.max() > 0.98
    assert marks.sum(0).min() > 0


def test_the_papers_worked_example_of_temporal_order_is_class_3():
    assert order.targets(order.encode("adYcbaYcd")[None]).item() == 3


@pytest.mark.parametrize(("symbols", "target"), [("XaX", 0), ("abXcY", 1), ("YXdd", 2), ("YY", 3)])
def test_classes_are_the_ordered_pairs(symbols, target):
    assert order.targets(order.encode(symbols)[None]).tolist() == [target]


def test_order_sequences_have_two_signals_and_every_class(generator):
    tokens = order.draw(400, 30, generator)
    assert ((tokens >= 4).sum(1) == 2).all()
    assert tokens.min() == 0
    assert tokens.max() == 5
    counts = torch.bincount(order.targets(tokens), minlength=4)
    assert len(counts) == 4
    assert counts.min() > 60
