from __future__ import annotations

import copy
import itertools
import resource

import numpy as np
import pytest
import torch
from torch import Tensor

import dense
import paramixer as pm
from ops import cases

PROTOCOLS = [pm.Chord(), pm.Cdil(links=3), pm.Cdil(links=9), pm.Links([[0, 1, -5], [2, -2, 3], [0, 0, 9]])]


def block_and_input(length: int, protocol, generator, batch: int = 2, **settings):
    block = pm.ParamixerBlock(length, 4, 6, inputs=3, protocol=protocol, generator=generator, **settings).double()
    values = torch.randn(batch, length, 4, generator=generator, dtype=torch.float64)
    inputs = torch.randn(batch, length, 3, generator=generator, dtype=torch.float64)
    return block, values, inputs


def dense_factors(block: pm.ParamixerBlock, inputs: Tensor) -> Tensor:
    """Every stored factor as a matrix, ``[batch, factors, length, length]``."""
    length = inputs.shape[1]
    return torch.stack(
        [
            torch.stack([dense.factor(weights, row, length, True) for weights, row in zip(chain, table, strict=True)])
            for chain, table in zip(block.factors(inputs), itertools.repeat(block.offsets.tolist()), strict=False)
        ]
    )


def in_every_mode(test):
    """For every residual, on rings and lines, with and without lengths, for every protocol."""
    test = pytest.mark.parametrize("residual", cases.RESIDUALS)(test)
    test = pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])(test)
    test = pytest.mark.parametrize("lengths", [None, [12, 0, 1, 7]], ids=["full", "lengths"])(test)
    return pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)(test)


@in_every_mode
def test_mixing_matrix_times_g_is_the_block(protocol, lengths, ring, residual, generator):
    block, values, inputs = block_and_input(12, protocol, generator, batch=4, residual=residual, ring=ring)
    matrix = block.mixing_matrix(inputs, lengths)
    mixed = block(values, inputs, lengths)
    assert matrix.shape == (4, 12, 12)
    cases.assert_close(matrix @ block.g(values), mixed, 1e-10)
    positions = [11, 0, 5, 5]
    cases.assert_close(block.mixing_rows(inputs, positions, lengths), matrix[:, positions].detach(), 1e-10)


@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_mixing_matrix_is_the_product_of_the_factors(residual, generator):
    block, _, inputs = block_and_input(9, pm.Chord(), generator, residual=residual)
    assert block.factors(inputs).shape == (2, 4, 9, 5)
    identity = torch.eye(9, dtype=torch.float64)
    product = identity.expand(2, 9, 9)
    for m in range(4):
        matrix = dense_factors(block, inputs)[:, m]
        product = matrix @ product
        if residual != "none":
            product = product + (identity if residual == "block" else torch.linalg.solve(matrix, product))
    cases.assert_close(block.mixing_matrix(inputs), product, 1e-8)


def log_determinant(matrix: np.ndarray) -> float:
    """log|det| by Gaussian elimination in extended precision: products of random factors are too ill-conditioned for
    float64 (their condition is 6e14 at N = 256)."""
    matrix, total = matrix.copy(), np.longdouble(0)
    for column in range(len(matrix)):
        pivot = column + int(np.abs(matrix[column:, column]).argmax())
        matrix[[column, pivot]] = matrix[[pivot, column]]
        total += np.log(np.abs(matrix[column, column]))
        ratios = matrix[column + 1 :, column] / matrix[column, column]
        matrix[column + 1 :] -= np.outer(ratios, matrix[column])
    return float(total)


@pytest.mark.parametrize("length", [2, 3, 16, 33, 64, 100, 256])
@pytest.mark.parametrize("protocol", [pm.Chord(), pm.Cdil(links=3), pm.Cdil(links=9)], ids=str)
def test_factors_are_full_rank_and_so_is_their_product(protocol, length, generator):
    rows = torch.arange(length)
    total, product = 0.0, np.eye(length, dtype=np.longdouble)
    for factor in protocol.offsets(length).tolist():
        matrix = torch.zeros(length, length, dtype=torch.float64)
        for offset in factor:
            matrix[rows, (rows + offset) % length] += torch.randn(length, generator=generator, dtype=torch.float64)
        assert torch.linalg.matrix_rank(matrix) == length
        total += float(torch.linalg.slogdet(matrix).logabsdet)
        product = matrix.numpy().astype(np.longdouble) @ product
    assert log_determinant(product) == pytest.approx(total, rel=1e-8, abs=1e-8)
    if length <= 64:
        assert np.linalg.matrix_rank(product.astype(np.float64)) == length


def test_a_blocks_own_factors_are_full_rank_at_n_64(generator):
    block, _, inputs = block_and_input(64, pm.Chord(), generator, batch=1, residual="none")
    factors = dense_factors(block, inputs)[0]
    assert (torch.linalg.matrix_rank(factors) == 64).all()
    expected = torch.linalg.slogdet(factors).logabsdet.sum()
    product = torch.linalg.slogdet(block.mixing_matrix(inputs)[0]).logabsdet
    assert product.item() == pytest.approx(expected.item(), rel=1e-6)


@in_every_mode
def test_links_computed_once_per_row_are_the_same_links(protocol, lengths, ring, residual, generator):
    block, values, _ = block_and_input(12, protocol, generator, batch=4, residual=residual, ring=ring)
    # More rows than positions, some of them never used.
    table = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    row_ids = torch.randint(15, (4, 12), generator=generator)
    weights = torch.randn(4, 12, 4, generator=generator, dtype=torch.float64)
    results = []
    for mixed in (lambda v, t: block(v, t[row_ids], lengths), lambda v, t: block(v, t, lengths, row_ids)):
        leaves = values.clone().requires_grad_(), table.clone().requires_grad_()
        answer = mixed(*leaves)
        results.append([answer, *torch.autograd.grad((answer * weights).sum(), [*leaves, *block.parameters()])])
    for expected, other in zip(*results, strict=True):
        cases.assert_close(other, expected, 1e-10)
    for inputs, ids in ((table[:, :2], row_ids), (table, row_ids[:, :5]), (table[row_ids], row_ids)):
        with pytest.raises(ValueError, match=r"expected \[rows, 3\] and \[4, 12\]"):
            block(values, inputs, lengths, ids)


@in_every_mode
def test_links_computed_once_per_row_agree_with_the_reference_in_single_precision(
    protocol, lengths, ring, residual, generator
):
    exact, values, _ = block_and_input(12, protocol, generator, batch=4, residual=residual, ring=ring)
    table = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    row_ids = torch.randint(15, (4, 12), generator=generator)
    results = []
    for block, v, t in ((exact, values, table), (copy.deepcopy(exact).float(), values.float(), table.float())):
        leaves = v.clone().requires_grad_(), t.clone().requires_grad_()
        inputs = (leaves[1][row_ids], lengths) if block is exact else (leaves[1], lengths, row_ids)
        answer = block(leaves[0], *inputs)
        results.append([answer, *torch.autograd.grad(answer.square().sum(), [*leaves, *block.parameters()])])
    for expected, other in zip(*results, strict=True):
        cases.assert_close(other.double(), expected, 1e-5)


def test_blocks_are_drawn_as_torch_draws_linear_layers(generator):
    block = pm.ParamixerBlock(64, 25, 100, protocol=pm.Chord(links=40, factors=20), generator=generator)
    for tensor, fan_in in ((block.w1, 25), (block.b1, 25), (block.w2, 100), (block.b2, 100)):
        bound = fan_in**-0.5
        assert 0.98 * bound < tensor.abs().max().item() <= bound
        assert abs(tensor.mean().item()) < bound / 10


def test_generator_decides_the_parameters():
    first, again, other = (pm.ParamixerBlock(8, 4, 4, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
        assert not torch.equal(tensor, other.state_dict()[name])


def test_nan_past_the_lengths_reaches_no_gradient(generator):
    block, values, inputs = block_and_input(12, pm.Chord(), generator)
    clean = block(values, inputs, [4, 12])
    clean.sum().backward()
    expected = [parameter.grad.clone() for parameter in block.parameters()]
    block.zero_grad()
    dirty = [cases.put_nan_past(tensor, [4, 12]) for tensor in (values, inputs)]
    block(*dirty, [4, 12]).sum().backward()
    for parameter, grad in zip(block.parameters(), expected, strict=True):
        cases.assert_close(parameter.grad, grad, 1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("backend", [name for name, available in pm.backends().items() if available])
def test_rows_of_a_half_precision_block(backend, dtype, generator):
    block = pm.ParamixerBlock(9, 3, 4, generator=generator).to(dtype)
    inputs = torch.randn(2, 9, 3, generator=generator).to(dtype)
    with pm.backend(backend):
        rows, matrix = block.mixing_rows(inputs, [0, 8]), block.mixing_matrix(inputs)
    torch.testing.assert_close(rows, matrix[:, [0, 8]].detach(), rtol=0.02, atol=0.02)


def test_positions_may_be_any_whole_numbers_or_none(generator):
    block, _, inputs = block_and_input(12, pm.Chord(), generator)
    assert block.mixing_rows(inputs, []).shape == (2, 0, 12)
    assert block.mixing_rows(inputs, torch.tensor([1, 2], dtype=torch.int32)).shape == (2, 2, 12)
    assert block.mixing_rows(inputs, range(12)).shape == (2, 12, 12)
    cases.assert_close(block.mixing_rows(inputs, list(range(12)) * 3)[:, 24:], block.mixing_matrix(inputs), 1e-10)


def test_a_block_made_on_the_meta_device_runs_once_it_has_memory(generator):
    with torch.device("meta"):
        block = pm.ParamixerBlock(9, 3, 4)
    inputs = torch.randn(2, 9, 3, generator=generator)
    assert block.to_empty(device="cpu")(inputs, inputs).shape == (2, 9, 3)


def test_shorter_sequences_mix_on_shorter_rings(generator):
    block, values, inputs = block_and_input(12, pm.Chord(), generator)
    cut = block(values[:, :7], inputs[:, :7])
    cases.assert_close(block(values, inputs, [7, 7])[:, :7], cut, 1e-12)


def test_dropout_only_while_training(generator):
    block = pm.ParamixerBlock(64, 8, 8, dropout=0.5, generator=generator)
    values, inputs = torch.randn(2, 2, 64, 8, generator=generator)
    zeros = float((block(values, inputs) == 0).float().mean())
    assert 0.4 < zeros < 0.6
    assert (block.eval()(values, inputs) != 0).all()


def test_gradient_reaches_every_parameter_and_both_inputs(generator):
    block, values, inputs = block_and_input(10, pm.Chord(), generator)
    block(values.requires_grad_(), inputs.requires_grad_()).square().sum().backward()
    for tensor in (*block.parameters(), values, inputs):
        assert tensor.grad is not None
        assert (tensor.grad != 0).any()


@pytest.mark.slow
def test_one_row_at_65536_stays_far_below_n_squared():
    """A dense A of this size would take 17 GB; the row's stored entries take 76 MB."""
    block = pm.ParamixerBlock(2**16, 8, 8)
    inputs = torch.randn(1, 2**16, 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = block.mixing_rows(inputs, [12345])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert row.shape == (1, 1, 2**16)
    assert (row != 0).all()
    assert grown < 500
    probe = torch.randn(1, 2**16, 1)
    with torch.no_grad():
        expected = pm.paramix(inputs, probe, block.w1, block.b1, block.w2, block.b2, block.offsets)[0, 12345]
    torch.testing.assert_close((row.double() @ probe.double()).flatten(), expected.double(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pm.ParamixerBlock(8, 4, 4, residual="all"), "residual='all'; choose from factor, block, none"),
        (lambda: pm.ParamixerBlock(8, 4, 4, protocol="ring"), "no protocol 'ring'"),
        (lambda: pm.ParamixerBlock(8, 4, 4, protocol=pm.Chord(), links=3), "set them there, not beside it"),
        (lambda: pm.ParamixerBlock(8, 0, 4), "channels=0"),
        (lambda: pm.ParamixerBlock(1, 4, 4), "length 1 leaves nothing to link"),
        (lambda: pm.ParamixerBlock(8, 4, 4, checkpoint_every=0), "checkpoint_every=0"),
        (lambda: pm.ParamixerBlock(8, 4, 4)(torch.ones(1, 9, 4), torch.ones(1, 9, 4)), "length 9 .*exceeds .*8"),
        (
            lambda: pm.ParamixerBlock(8, 4, 4)(torch.ones(1, 8, 5), torch.ones(1, 8, 4)),
            r"values have shape \[1, 8, 5\]",
        ),
        (lambda: pm.ParamixerBlock(8, 4, 4).mixing_rows(torch.ones(1, 8, 4), [8]), "position 8 is outside"),
        (lambda: pm.ParamixerBlock(8, 4, 4).mixing_rows(torch.ones(1, 8, 4), [0.5]), "whole numbers"),
        (lambda: pm.ParamixerBlock(8, 4, 4).mixing_rows(torch.ones(1, 8, 4), [[1]]), r"positions have shape \[1, 1\]"),
        (lambda: pm.ParamixerBlock(8, 4, 4).mixing_rows(torch.ones(1, 8, 4).double(), [1]), "inputs are torch.float64"),
        (lambda: pm.ParamixerBlock(8, 4, 4, protocol=None), "protocol=None; give chord, cdil, or a value"),
        (lambda: pm.ParamixerBlock(8, 4, 2.5), "hidden is 2.5, not a whole number"),
        (lambda: pm.ParamixerBlock(8, 4, 4, ring="x"), "ring='x'; it is True or False"),
        (lambda: pm.ParamixerBlock(8, 4, 4, checkpoint_every=1.5), "checkpoint_every=1.5"),
    ],
)
def test_errors_name_the_value_and_the_remedy(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
