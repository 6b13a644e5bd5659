"""The baselines implemented here, against the plain form of their equations."""

from __future__ import annotations

import math

import pytest
import torch

from paramixer.baselines import sparse
from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.kernels import LinearTransformer, RandomFeatureAttention, gated_sums
from paramixer.baselines.rings import CdilCnn, ChordMixer, roll_within
from paramixer.baselines.s4d import S4D


def config(length: int, **fields: object) -> BaselineConfig:
    settings = {"length": length, "vocabulary": 9, "outputs": 3, "channels": 8, "model": "transformer"}
    return BaselineConfig(**settings | fields)


def masked_softmax(attention: sparse._Blocked, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same by a dense softmax over all pairs and a mask."""
    query, key, value = attention.split(inputs)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return attention.merge(scores.masked_fill(~mask, -torch.inf).softmax(-1) @ value)


PATTERNS = {
    sparse.Near: lambda i, j, s: (i - j).abs() < s,
    sparse.Strided: lambda i, j, s: (i - j) % s == 0,
    sparse.Inside: lambda i, j, s: i // s == j // s,
    sparse.Summaries: lambda i, j, s: j % s < min(sparse.SUMMARIES, s) + 0 * i,
}


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize(("length", "stride"), [(2, 1), (16, 4), (17, 4), (45, 7), (100, 10), (5, 9)])
def test_sparse_attention_is_its_dense_twin(kind, length, stride):
    torch.manual_seed(0)
    attention = kind(config(length, heads=2, window=stride)).double()
    inputs = torch.randn(2, length, 8, dtype=torch.float64, requires_grad=True)
    i, j = torch.arange(length)[:, None], torch.arange(length)[None]
    mask = PATTERNS[kind](i, j, stride)
    blocked, expected = attention(inputs, None), masked_softmax(attention, inputs, mask)
    torch.testing.assert_close(blocked, expected)
    upstream = torch.randn_like(blocked)
    for one, other in zip(*(torch.autograd.grad(out, inputs, upstream) for out in (blocked, expected)), strict=True):
        torch.testing.assert_close(one, other)
    valid = torch.arange(length) < torch.tensor([[length], [max(1, length // 2)]])
    cut = masked_softmax(attention, inputs, mask & valid[:, None, None]).nan_to_num()
    torch.testing.assert_close(attention(inputs, valid)[valid], cut[valid])


@pytest.mark.parametrize("pattern", [sparse.strided, sparse.fixed])
def test_after_both_steps_every_position_has_reached_every_other(pattern):
    torch.manual_seed(0)
    layer = pattern(config(45, window=7))
    values = torch.randn(1, 45, 8, requires_grad=True)
    reached = [torch.autograd.grad(layer(values)[0, row].sum(), values)[0][0].abs().sum(-1) > 0 for row in range(45)]
    assert torch.stack(reached).all()


def test_linear_attention_is_a_normalized_product_of_features():
    torch.manual_seed(0)
    attention = LinearTransformer(config(20, heads=2)).double()
    inputs = torch.randn(2, 20, 8, dtype=torch.float64)
    query, key, value = attention.split(inputs)
    weights = (torch.nn.functional.elu(query) + 1) @ (torch.nn.functional.elu(key) + 1).transpose(-1, -2)
    expected = attention.merge(weights / weights.sum(-1, keepdim=True) @ value)
    torch.testing.assert_close(attention(inputs, None), expected)


@pytest.mark.parametrize("length", [1, 5, 64, 65, 150])
def test_gated_sums_are_the_recurrence(length):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, length, width, dtype=torch.float64) for width in (6, 6, 4))
    gate = torch.rand(2, length, dtype=torch.float64)
    state, expected = torch.zeros(2, 6, 4, dtype=torch.float64), []
    for place in range(length):
        state = gate[:, place, None, None] * state + key[:, place, :, None] * value[:, place, None]
        expected.append(torch.einsum("bf,bfe->be", query[:, place], state))
    torch.testing.assert_close(gated_sums(query, key, value, gate.log()), torch.stack(expected, 1))


def test_strong_forgetting_gives_no_nan():
    forget = torch.full((1, 200), -80.0, requires_grad=True)
    query, key, value = (torch.randn(1, 200, 4) for _ in range(3))
    out = gated_sums(query, key, value, forget)
    (gradient,) = torch.autograd.grad(out.sum(), forget)
    assert out.isfinite().all()
    assert gradient.isfinite().all()


def test_random_features_approximate_the_gaussian_kernel():
    torch.manual_seed(0)
    attention = RandomFeatureAttention(config(10, rank=20_000))
    one, other = (torch.nn.functional.normalize(torch.randn(1, 1, 5, 8), dim=-1) for _ in range(2))
    products = attention.compute_features(one) @ attention.compute_features(other).transpose(-1, -2)
    expected = torch.exp(-torch.cdist(one, other).square() / 2)
    torch.testing.assert_close(products, expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("shift", [0, 1, -1, 5, 30, -30])
def test_every_sequence_rolls_on_its_own_ring(shift):
    values, lengths = torch.randn(3, 7, 2), torch.tensor([7, 4, 0])
    rolled = roll_within(values, shift, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(rolled[row, :length], values[row, :length].roll(-shift, 0))
    torch.testing.assert_close(roll_within(values, shift, None), values.roll(-shift, 1))


@pytest.mark.parametrize("kind", [ChordMixer, CdilCnn])
@pytest.mark.parametrize(("length", "channels"), [(2, 4), (3, 5), (33, 12), (64, 3), (50, 2)])
def test_a_ring_reaches_every_position(kind, length, channels):
    torch.manual_seed(0)
    block = kind(config(length, channels=channels, hidden=64))
    for name, parameter in block.named_parameters():
        if name.startswith("convolutions") and name.endswith("bias"):
            # No ReLU is zero.
            torch.nn.init.constant_(parameter, 10.0)
    values = torch.randn(1, length, channels, requires_grad=True)
    gradient = torch.autograd.grad(block(values)[0, 0].sum(), values)[0]
    if channels > 2 or kind is CdilCnn:
        assert (gradient[0].abs().sum(-1) > 0).all()
    else:
        # With one rotated track, a layer offers one distance; their sums still reach most positions.
        assert (gradient[0].abs().sum(-1) > 0).float().mean() > 0.5


def test_chordmixer_rotates_its_tracks():
    block = ChordMixer(config(16, channels=10))
    assert block.sizes == [2] * 5
    assert block.shifts == [[0, 1, 2, 4, 8]] * 4
    for layer in block.layers:
        torch.nn.init.zeros_(layer[0].weight)
        torch.nn.init.zeros_(layer[2].weight)
        torch.nn.init.zeros_(layer[2].bias)
    values = torch.randn(2, 16, 10)
    assert torch.equal(block(values), values)


def test_s4d_is_the_recurrence_in_both_directions():
    torch.manual_seed(0)
    space = S4D(config(30, rank=4))
    values = torch.randn(1, 30, 8)
    step = space.log_step.double().exp()[:, None]
    rate = torch.complex(-space.log_decay.double().exp(), space.frequency.double())
    readout = torch.view_as_complex(space.readout.double())
    factor, drive = (rate * step).exp(), ((rate * step).exp() - 1) / rate

    def scan(inputs: torch.Tensor, direction: int) -> torch.Tensor:
        state, out = torch.zeros(8, 4, dtype=torch.complex128), []
        for place in inputs[0].double():
            state = factor * state + drive * place[:, None]
            out.append(2 * (readout[direction] * state).sum(-1).real)
        return torch.stack(out)

    left = scan(values, 0)
    # Backward it reads from the next position on.
    right = torch.cat([scan(values.flip(1), 1).flip(0)[1:], torch.zeros(1, 8, dtype=torch.float64)])
    mixed = left + right + space.direct.double() * values[0].double()
    expected = torch.nn.functional.glu(space.to_out(torch.nn.functional.gelu(mixed.float())))
    torch.testing.assert_close(space(values, None)[0], expected, rtol=1e-4, atol=1e-5)
