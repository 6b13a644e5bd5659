"""Operators with heads: dense products, every gradient, shared and own inputs, and how torch sees them."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.library import opcheck

import dense
import paramixer as pm
from ops import cases
from ops.instruction_sets import each_set
from paramixer.nn.mixing import MixingMatrix
from paramixer.ops import torch_ops

OFFSETS = torch.stack([pm.Chord(factors=3).offsets(6), -pm.Chord(factors=3).offsets(6)])
LENGTHS = torch.tensor([6, 2])


def draw_offsets(generator: torch.Generator, heads: int, factors: int, links: int, length: int) -> torch.Tensor:
    return torch.randint(-2 * length, 2 * length + 1, (heads, factors, links), generator=generator)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


@given(
    seed=st.integers(0, 2**31),
    length=st.sampled_from([1, 2, 17, 24]),
    heads=st.sampled_from([1, 3, 4]),
    channels=st.sampled_from([1, 3, 5, 8]),
    inputs=st.sampled_from([1, 3, 5]),
    hidden=st.sampled_from([1, 5, 8]),
    links=st.sampled_from([1, 3, 9]),
    factors=st.integers(1, 3),
    residual=st.sampled_from(cases.RESIDUALS),
    ring=st.booleans(),
    shared=st.booleans(),
)
def test_heads_equal_their_dense_products_with_every_gradient(
    seed, length, heads, channels, inputs, hidden, links, factors, residual, ring, shared
):
    generator = torch.Generator().manual_seed(seed)
    offsets = draw_offsets(generator, heads, factors, links, length)
    clean = cases.make_heads(generator, offsets, 2, length, inputs, channels, hidden, shared)
    lengths = torch.randint(0, length + 1, (2,), generator=generator).tolist()
    dirty = [*(cases.put_nan_past(tensor, lengths) for tensor in clean[:2]), *clean[2:]]
    ours = functools.partial(pm.paramix, offsets=offsets, residual=residual, lengths=lengths, ring=ring)
    theirs = functools.partial(
        dense.paramix_heads, offsets=offsets.tolist(), residual=residual, lengths=lengths, ring=ring
    )
    cases.assert_close(ours(*dirty), theirs(*clean), 1e-10)
    for actual, expected in zip(
        cases.compute_gradients(ours, dirty), cases.compute_gradients(theirs, clean), strict=True
    ):
        cases.assert_close(actual, expected, 1e-10)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize(("length", "heads", "channels", "links"), [(1, 3, 1, 1), (17, 4, 5, 3), (100, 3, 8, 9)])
def test_link_mix_mixes_each_slice_with_its_own_weights(length, heads, channels, links, ring, generator):
    offsets = draw_offsets(generator, heads, 1, links, length)[:, 0]
    lengths = cases.make_lengths(3, length)["mixed"]
    weights = torch.randn(3, length, heads, links, generator=generator)
    values = torch.randn(3, length, heads * channels, generator=generator)
    dirty = [cases.put_nan_past(weights.flatten(2), lengths).view_as(weights), cases.put_nan_past(values, lengths)]
    ours = functools.partial(pm.link_mix, offsets=offsets, lengths=lengths, ring=ring)

    def theirs(weights, values):
        parts = zip(weights.unbind(2), values.chunk(heads, 2), offsets.tolist(), strict=True)
        return torch.cat([dense.link_mix(*part, lengths, ring) for part in parts], 2)

    exact = [weights.double(), values.double()]
    expected = [theirs(*exact), *cases.compute_gradients(theirs, exact)]
    for name in cases.AVAILABLE:
        for _ in each_set() if name == "cpu" else [name]:
            with pm.backend(name):
                results = [ours(*dirty), *cases.compute_gradients(ours, dirty)]
            for actual, truth in zip(results, expected, strict=True):
                cases.assert_close(actual.double(), truth, 1e-5)


def test_offsets_without_heads_are_those_of_every_head(generator):
    offsets = OFFSETS[:1].expand(3, -1, -1)
    tensors = cases.make_heads(generator, offsets, 2, 6)
    assert torch.equal(pm.paramix(*tensors, OFFSETS[0]), pm.paramix(*tensors, offsets))
    weights = torch.ones(2, 6, 3, OFFSETS.shape[2], dtype=torch.float64)
    assert torch.equal(pm.link_mix(weights, tensors[1], OFFSETS[0, 0]), pm.link_mix(weights, tensors[1], offsets[:, 0]))


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_rows_of_a_table_serve_every_head(shared, generator):
    inputs, *rest = cases.make_heads(generator, OFFSETS, 2, 6, shared=shared, dtype=torch.float32)
    row_ids = torch.randint(6, (2, 6), generator=generator)
    for name in cases.AVAILABLE:
        with pm.backend(name):
            table = inputs[0].clone().requires_grad_()
            mixed = pm.paramix(table, *rest, OFFSETS, row_ids=row_ids)
            expanded = pm.paramix(table[row_ids], *rest, OFFSETS)
            assert torch.equal(mixed, expanded)
            gradients = [torch.autograd.grad(out.square().sum(), table)[0] for out in (mixed, expanded)]
            torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
def test_gradcheck(lengths, shared, generator):
    tensors = [tensor.requires_grad_() for tensor in cases.make_heads(generator, OFFSETS, 2, 6, shared=shared)]
    run = functools.partial(pm.paramix, offsets=OFFSETS, residual="block", lengths=lengths, checkpoint_every=2)
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)


@pytest.mark.parametrize(
    ("dtype", "lengths"),
    [(torch.float32, LENGTHS), pytest.param(torch.bfloat16, None, marks=pytest.mark.slow)],
    ids=["float32 lengths", "bfloat16"],
)
def test_opcheck(dtype, lengths, generator):
    factor = [torch.randn(2, 6, 2, 3), torch.randn(2, 6, 4)]
    factor = [tensor.to(dtype).requires_grad_() for tensor in factor]
    opcheck(torch_ops.link_mix_op, (*factor, OFFSETS[:, 0, :3], lengths, True))
    chain = [tensor.requires_grad_() for tensor in cases.make_heads(generator, OFFSETS, 2, 6, dtype=dtype)]
    opcheck(torch_ops.paramix_op, (*chain, OFFSETS, lengths, "factor", True, None, 1))
    plain = [tensor.detach() for tensor in chain]
    arguments = *plain, OFFSETS, lengths, "factor", True, None, 1
    _, checkpoints = torch_ops.paramix_op(*arguments)
    opcheck(torch_ops.paramix_backward_op, (plain[1], *arguments, checkpoints))


def test_compiled_exported_and_autocast(generator):
    tensors = cases.make_heads(generator, OFFSETS, 2, 6, dtype=torch.float32)
    run = functools.partial(pm.paramix, offsets=OFFSETS, lengths=LENGTHS, checkpoint_every=2)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), run(*tensors))
    for actual, expected in zip(
        cases.compute_gradients(compiled, tensors), cases.compute_gradients(run, tensors), strict=True
    ):
        assert torch.equal(actual, expected)

    class Mixer(torch.nn.Module):
        def forward(self, inputs, values):
            return pm.paramix(inputs, values, *tensors[2:], OFFSETS)

    program = torch.export.export(Mixer(), tuple(tensors[:2]))
    assert torch.equal(program.module()(*tensors[:2]), Mixer()(*tensors[:2]))
    halves = [tensor.bfloat16() for tensor in tensors]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = run(*tensors)
    assert mixed.dtype == torch.bfloat16
    assert torch.equal(mixed, run(*(half.float() for half in halves)).bfloat16())


def test_a_checkpoint_of_one_backend_serves_another(generator):
    tensors = [tensor.requires_grad_() for tensor in cases.make_heads(generator, OFFSETS, 2, 6, dtype=torch.float32)]
    gradients = []
    for name in cases.AVAILABLE:
        with pm.backend(name):
            mixed = pm.paramix(*tensors, OFFSETS)
        with pm.backend("reference"):
            gradients.append(torch.autograd.grad(mixed.sum(), tensors))
    for one in gradients[1:]:
        for actual, expected in zip(one, gradients[0], strict=True):
            cases.assert_close(actual, expected, 1e-5)


def test_rows_and_columns_of_every_heads_matrix(generator):
    inputs, _, *parameters = cases.make_heads(generator, OFFSETS, 2, 6)
    for lengths in (None, [6, 4]):
        matrix = MixingMatrix(inputs, *parameters, OFFSETS, "factor", lengths, True)
        whole = matrix.dense()
        assert whole.shape == (2, 2, 6, 6)
        identity = torch.eye(6, dtype=torch.float64).repeat(2, 1, 2)
        expected = dense.paramix_heads(
            inputs, identity, *parameters, OFFSETS.tolist(), "factor", lengths or [6, 6], True
        )
        cases.assert_close(whole, torch.stack(expected.chunk(2, 2), 1), 1e-10)
        cases.assert_close(matrix.rows([5, 0, 3]), whole[:, :, [5, 0, 3]], 1e-10)
        cases.assert_close(matrix.columns([5, 0, 3]), whole[..., [5, 0, 3]].mT.contiguous(), 1e-10)
    assert matrix.rows([]).shape == (2, 2, 0, 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.ones(2, 5, 8)}, "8 channels cannot be divided among 3 heads; use 6 or 9 channels"),
        (
            {"inputs": torch.ones(2, 5, 8)},
            "inputs has shape .* width is 8; expected 4, read by every head, or 3 heads x 4 = 12, each head its own",
        ),
        ({"b1": torch.ones(2, 6)}, r"b1 has shape \[2, 6\], expected \[heads, factors, hidden\]"),
        ({"w2": torch.ones(2, 2, 6, 2)}, "w2 has shape .*heads is 2; but w1 has heads 3"),
        (
            {"offsets": [[0, 1, 2]] * 2},
            r"offsets have shape \[2, 3\], expected \[factors, links\] = \[2, 2\] for all heads, "
            r"or \[heads, factors, links\] = \[3, 2, 2\]",
        ),
        ({"w1": torch.ones(2, 4, 6)}, r"b1 has shape \[3, 2, 6\], expected \[factors, hidden\]"),
    ],
)
def test_paramix_with_heads_says_what_is_wrong(changes, message):
    tensors = {
        "inputs": torch.ones(2, 5, 4),
        "values": torch.ones(2, 5, 9),
        "w1": torch.ones(3, 2, 4, 6),
        "b1": torch.ones(3, 2, 6),
        "w2": torch.ones(3, 2, 6, 2),
        "b2": torch.ones(3, 2, 2),
        "offsets": [[0, 1], [0, 2]],
    }
    assert pm.paramix(**tensors).shape == (2, 5, 9)
    with pytest.raises(ValueError, match=message):
        pm.paramix(**(tensors | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.ones(2, 5, 4)}, "link_mix: 4 channels cannot be divided among 3 heads; use 3 or 6 channels"),
        ({"offsets": [[0, 1]] * 2}, r"expected \[links\] = \[2\] for all heads, or \[heads, links\] = \[3, 2\]"),
        ({"weights": torch.ones(2, 5, 0, 2)}, "weights has no heads"),
    ],
)
def test_link_mix_with_heads_says_what_is_wrong(changes, message):
    tensors = {"weights": torch.ones(2, 5, 3, 2), "values": torch.ones(2, 5, 6), "offsets": [0, 1]}
    assert pm.link_mix(**tensors).shape == (2, 5, 6)
    with pytest.raises(ValueError, match=message):
        pm.link_mix(**(tensors | changes))
