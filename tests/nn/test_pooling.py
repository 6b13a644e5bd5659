from __future__ import annotations

import pytest
import torch

from paramixer.nn.pooling import POOLINGS, Head

VALUES = torch.arange(24.0).reshape(2, 3, 4)
LENGTHS = torch.tensor([3, 1])


def masked() -> torch.Tensor:
    values = VALUES.clone()
    values[1, 1:] = 0
    return values


def test_flat_reads_every_number_and_zeros_past_the_end():
    pooled = POOLINGS["flat"](5, 4)(VALUES, None)
    assert torch.equal(pooled[:, :12], VALUES.flatten(1))
    assert torch.equal(pooled[:, 12:], torch.zeros(2, 8))


def test_cls_reads_position_zero():
    assert torch.equal(POOLINGS["cls"](3, 4)(VALUES, None), VALUES[:, 0])


def test_mean_divides_by_the_sequences_own_length():
    mean = POOLINGS["mean"](3, 4)
    assert torch.equal(mean(VALUES, None), VALUES.mean(1))
    assert torch.equal(mean(masked(), LENGTHS), torch.stack([VALUES[0].mean(0), VALUES[1, 0]]))
    assert torch.equal(mean(torch.zeros(1, 3, 4), torch.tensor([0])), torch.zeros(1, 4))


def test_mean_of_a_long_half_precision_sequence_is_finite():
    values = torch.ones(1, 70_000, 2).half()
    assert torch.equal(POOLINGS["mean"](70_000, 2)(values, torch.tensor([70_000])), torch.ones(1, 2).half())


@pytest.mark.parametrize(
    ("pooling", "target", "outputs", "shape"),
    [
        ("flat", "class", 10, (2, 10)),
        ("cls", "class", 1, (2, 1)),
        ("mean", "value", 1, (2,)),
        ("flat", "value", 3, (2, 3)),
        ("token", "class", 5, (2, 3, 5)),
        ("token", "value", 1, (2, 3)),
    ],
)
def test_answers_have_the_shape_of_the_question(pooling, target, outputs, shape):
    assert Head(3, 4, pooling, target, outputs)(VALUES).shape == shape
