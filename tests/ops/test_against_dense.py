"""Both operators equal a dense matrix product written from the definition, output and every gradient."""

from __future__ import annotations

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense
import paramixer as pm
from ops import cases
from ops.instruction_sets import each_set


def assert_all_backends_close(compute, tensors, expected):
    """In float64 on the reference; in float32 on every available backend and instruction set."""
    with pm.backend("reference"):
        cases.assert_close(compute(*(tensor.double() for tensor in tensors)), expected, cases.TOLERANCE[torch.float64])
    for name in cases.AVAILABLE:
        for _ in each_set() if name == "cpu" else [name]:
            with pm.backend(name):
                cases.assert_close(compute(*tensors).double(), expected, cases.TOLERANCE[torch.float32])


@pytest.mark.parametrize("length", range(1, 65))
def test_link_mix_equals_its_matrix_at_every_length(length, generator):
    for protocol in cases.PROTOCOLS.values():
        offsets = cases.make_offsets(protocol, length)[-1]
        tensors = cases.make_factor(generator, 2, length, 3, len(offsets), torch.float32)
        exact = [tensor.double() for tensor in tensors]
        expected = dense.link_mix(*exact, offsets.tolist(), [length] * 2, ring=True)
        assert_all_backends_close(functools.partial(pm.link_mix, offsets=offsets), tensors, expected)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
@pytest.mark.parametrize("length", [1, 2, 7, 16])
def test_link_mix_with_lengths_and_gradients(length, kind, ring, generator):
    lengths = cases.make_lengths(5, length)[kind]
    lengths_or_full = lengths or [length] * 5
    for protocol in cases.PROTOCOLS.values():
        offsets = cases.make_offsets(protocol, length)[-1]
        clean = cases.make_factor(generator, 5, length, 3, len(offsets), torch.float64)
        dirty = [cases.put_nan_past(tensor, lengths) for tensor in clean]
        ours = functools.partial(pm.link_mix, offsets=offsets, lengths=lengths, ring=ring)
        theirs = functools.partial(dense.link_mix, offsets=offsets.tolist(), lengths=lengths_or_full, ring=ring)
        cases.assert_close(ours(*dirty), theirs(*clean), 1e-10)
        for actual, expected in zip(
            cases.compute_gradients(ours, dirty), cases.compute_gradients(theirs, clean), strict=True
        ):
            cases.assert_close(actual, expected, 1e-10)


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("protocol", cases.PROTOCOLS.values(), ids=cases.PROTOCOLS)
def test_paramix_equals_its_matrix_product(protocol, residual, generator):
    for length in range(1, 65):
        offsets = cases.make_offsets(protocol, length)
        tensors = cases.make_chain(generator, offsets, 2, length, dtype=torch.float32)
        exact = [tensor.double() for tensor in tensors]
        expected = dense.paramix(*exact, offsets.tolist(), residual, [length] * 2, ring=True)
        assert_all_backends_close(functools.partial(pm.paramix, offsets=offsets, residual=residual), tensors, expected)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("length", [2, 7])
def test_paramix_with_lengths_and_gradients(length, residual, kind, ring, generator):
    lengths = cases.make_lengths(5, length)[kind]
    lengths_or_full = lengths or [length] * 5
    for protocol in cases.PROTOCOLS.values():
        offsets = cases.make_offsets(protocol, length)
        clean = cases.make_chain(generator, offsets, 5, length)
        dirty = [*(cases.put_nan_past(tensor, lengths) for tensor in clean[:2]), *clean[2:]]
        ours = functools.partial(pm.paramix, offsets=offsets, residual=residual, lengths=lengths, ring=ring)
        theirs = functools.partial(
            dense.paramix, offsets=offsets.tolist(), residual=residual, lengths=lengths_or_full, ring=ring
        )
        cases.assert_close(ours(*dirty), theirs(*clean), 1e-10)
        for actual, expected in zip(
            cases.compute_gradients(ours, dirty), cases.compute_gradients(theirs, clean), strict=True
        ):
            cases.assert_close(actual, expected, 1e-10)


@pytest.mark.parametrize("checkpoint_every", [2, 3, 4, 100])
@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_checkpoint_every_changes_memory_and_no_result(residual, checkpoint_every, generator):
    offsets = pm.Chord(links=4, factors=5).offsets(9)
    tensors = cases.make_chain(generator, offsets, 3, 9)
    for lengths in (None, [9, 0, 4]):
        run = functools.partial(pm.paramix, offsets=offsets, residual=residual, lengths=lengths)
        every = cases.compute_gradients(run, tensors)
        some = cases.compute_gradients(functools.partial(run, checkpoint_every=checkpoint_every), tensors)
        assert all(torch.equal(a, b) for a, b in zip(every, some, strict=True))


@given(
    seed=st.integers(0, 2**31),
    length=st.integers(1, 24),
    table=st.integers(1, 5).flatmap(
        lambda links: st.lists(
            st.lists(st.integers(-(2**40), 2**40) | st.integers(-30, 30), min_size=links, max_size=links),
            min_size=1,
            max_size=3,
        )
    ),
    residual=st.sampled_from(cases.RESIDUALS),
    ring=st.booleans(),
)
def test_paramix_equals_its_matrix_product_for_any_table(seed, length, table, residual, ring):
    offsets = torch.tensor(table)
    generator = torch.Generator().manual_seed(seed)
    tensors = cases.make_chain(generator, offsets, 2, length)
    lengths = torch.randint(0, length + 1, (2,), generator=generator).tolist()
    expected = dense.paramix(*tensors, table, residual, lengths, ring)
    cases.assert_close(pm.paramix(*tensors, table, residual, lengths, ring), expected, 1e-10)


@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_without_ring_and_forward_links_no_output_sees_a_later_position(residual, generator):
    offsets = cases.PROTOCOLS["causal"].offsets(12)
    inputs, values, *parameters = cases.make_chain(generator, offsets, 1, 12)
    for position in range(12):
        changed = [tensor.clone() for tensor in (inputs, values)]
        for tensor in changed:
            tensor[:, position] = torch.randn(tensor.shape[2], generator=generator, dtype=tensor.dtype)
        before = pm.paramix(inputs, values, *parameters, offsets, residual, ring=False)
        after = pm.paramix(*changed, *parameters, offsets, residual, ring=False)
        assert torch.equal(before[:, :position], after[:, :position])
        assert not torch.equal(before[:, position:], after[:, position:])


def test_a_link_that_leaves_the_sequence_contributes_nothing_even_if_it_is_nan():
    weights = torch.ones(1, 4, 2)
    weights[0, 3, 1] = torch.nan
    values = torch.arange(1.0, 5).reshape(1, 4, 1)
    assert pm.link_mix(weights, values, [0, 1], ring=False).flatten().tolist() == [3, 5, 7, 4]
    assert pm.link_mix(weights, values, [0, 1]).isnan().flatten().tolist() == [False, False, False, True]


def test_nan_and_infinity_reach_exactly_the_positions_that_link_to_them():
    values = torch.zeros(1, 8, 1)
    values[0, 4], values[0, 6] = torch.inf, torch.nan
    mixed = pm.link_mix(torch.ones(1, 8, 2), values, [0, 1]).flatten()
    assert mixed.isinf().nonzero().flatten().tolist() == [3, 4]
    assert mixed.isnan().nonzero().flatten().tolist() == [5, 6]
