"""The operators as torch sees them: gradcheck, opcheck, compile, export, autocast, dtypes."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.library import opcheck

import paramixer as pm
from ops import cases
from paramixer.ops import mlp, torch_ops

OFFSETS = pm.Chord().offsets(6)
LENGTHS = torch.tensor([6, 2])
DTYPES = torch.float32, torch.float64, torch.bfloat16


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Each test compiles the same functions again; torch counts that against a limit of recompilations."""
    torch.compiler.reset()


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_link_mix_gradcheck(ring, lengths, generator):
    tensors = [tensor.requires_grad_() for tensor in cases.make_factor(generator, 2, 6, 3, 4, torch.float64)]
    run = functools.partial(pm.link_mix, offsets=OFFSETS[0], lengths=lengths, ring=ring)
    assert torch.autograd.gradcheck(run, tensors)


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_paramix_gradcheck(ring, lengths, residual, generator):
    tensors = [tensor.requires_grad_() for tensor in cases.make_chain(generator, OFFSETS, 2, 6)]
    run = functools.partial(
        pm.paramix, offsets=OFFSETS, residual=residual, lengths=lengths, ring=ring, checkpoint_every=2
    )
    assert torch.autograd.gradcheck(run, tensors)


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
def test_mlp_gradcheck(lengths, generator):
    shapes = [(2, 6, 3), (3, 5), (5,), (5, 4), (4,)]
    tensors = [torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]
    assert torch.autograd.gradcheck(lambda *arguments: mlp(*arguments, lengths=lengths), tensors)


@pytest.mark.parametrize(
    ("dtype", "lengths"),
    [
        (torch.float32, LENGTHS),
        (torch.bfloat16, None),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in itertools.product(DTYPES, (None, LENGTHS))),
    ],
    ids=lambda value: "lengths" if isinstance(value, torch.Tensor) else str(value),
)
def test_opcheck(dtype, lengths, generator):
    factor = [tensor.requires_grad_() for tensor in cases.make_factor(generator, 2, 6, 3, 4, dtype)]
    opcheck(torch_ops.link_mix_op, (*factor, OFFSETS[0], lengths, True))
    weights, values = (tensor.detach() for tensor in factor)
    opcheck(torch_ops.link_mix_backward_op, (torch.ones_like(values), weights, values, OFFSETS[0], lengths, True))
    chain = [tensor.requires_grad_() for tensor in cases.make_chain(generator, OFFSETS, 2, 6, dtype=dtype)]
    layers = [tensor.detach().clone().requires_grad_() for tensor in (chain[0], *(one[0] for one in chain[2:]))]
    opcheck(torch_ops.mlp_op, (*layers, lengths))
    bare = [tensor.detach() for tensor in layers]
    opcheck(torch_ops.mlp_backward_op, (torch_ops.mlp_op(*bare, lengths), *bare, lengths))
    for checkpoint_every in (1, 2):
        opcheck(torch_ops.paramix_op, (*chain, OFFSETS, lengths, "factor", True, None, checkpoint_every))
    plain = [tensor.detach() for tensor in chain]
    opcheck(torch_ops.paramix_op, (*plain, OFFSETS, lengths, "block", False, None, 0))
    row_ids = torch.randint(6, (2, 6), generator=generator)
    shared = [plain[0][0].clone().requires_grad_(), *chain[1:]]
    opcheck(torch_ops.paramix_op, (*shared, OFFSETS, lengths, "factor", True, row_ids, 1))
    for inputs, rows in ((plain[0], None), (plain[0][0], row_ids)):
        arguments = *(inputs, *plain[1:]), OFFSETS, lengths, "factor", True, rows, 2
        _, checkpoints = torch_ops.paramix_op(*arguments)
        opcheck(torch_ops.paramix_backward_op, (plain[1], *arguments, checkpoints))


def test_second_derivatives_raise(generator):
    weights, values = (t.requires_grad_() for t in cases.make_factor(generator, 2, 6, 3, 4, torch.float64))
    (first,) = torch.autograd.grad(pm.link_mix(weights, values, OFFSETS[0]).square().sum(), weights, create_graph=True)
    with pytest.raises(RuntimeError, match="link_mix_backward"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("ring", "lengths", "checkpoint_every"), [(True, None, 1), (True, LENGTHS, 2), (False, LENGTHS, 1)]
)
def test_compiled_full_graph_gives_the_same_numbers(ring, lengths, checkpoint_every, generator):
    tensors = cases.make_chain(generator, OFFSETS, 2, 6)
    run = functools.partial(pm.paramix, offsets=OFFSETS, lengths=lengths, ring=ring, checkpoint_every=checkpoint_every)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), run(*tensors))
    for actual, expected in zip(
        cases.compute_gradients(compiled, tensors), cases.compute_gradients(run, tensors), strict=True
    ):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize(("ring", "lengths"), [(True, None), (False, LENGTHS)])
def test_compiled_link_mix_gives_the_same_numbers(ring, lengths, generator):
    tensors = cases.make_factor(generator, 2, 6, 3, 4, torch.float64)
    run = functools.partial(pm.link_mix, offsets=[0, 1, 2, 4], lengths=lengths, ring=ring)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), run(*tensors))
    for actual, expected in zip(
        cases.compute_gradients(compiled, tensors), cases.compute_gradients(run, tensors), strict=True
    ):
        assert torch.equal(actual, expected)


@pytest.mark.slow
def test_inductor_full_graph_gives_the_same_numbers(generator):
    block = pm.ParamixerBlock(64, 8, 8, generator=generator)
    values, inputs = torch.randn(2, 2, 64, 8, generator=generator)
    compiled = torch.compile(block, fullgraph=True)
    torch.testing.assert_close(compiled(values, inputs), block(values, inputs))


def test_exported_program_gives_the_same_numbers(generator):
    block = pm.ParamixerBlock(16, 4, 5, generator=generator).eval()
    values, inputs = torch.randn(2, 3, 16, 4, generator=generator)
    program = torch.export.export(block, (values, inputs))
    assert torch.equal(program.module()(values, inputs), block(values, inputs))


def test_autocast_computes_bfloat16_in_float32(generator):
    block = pm.ParamixerBlock(16, 4, 5, generator=generator)
    values, inputs = torch.randn(2, 3, 16, 4, generator=generator)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = block(values, inputs)
        mixed.float().square().sum().backward()
    assert mixed.dtype == torch.bfloat16
    assert all(parameter.grad.dtype == torch.float32 for parameter in block.parameters())
    torch.testing.assert_close(mixed.float(), block(values, inputs), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_rounded_once_at_the_end(dtype, generator):
    tensors = [tensor.to(dtype) for tensor in cases.make_chain(generator, OFFSETS, 2, 6)]
    mixed = pm.paramix(*tensors, OFFSETS)
    assert mixed.dtype == dtype
    assert torch.equal(mixed, pm.paramix(*(tensor.float() for tensor in tensors), OFFSETS).to(dtype))


def test_without_gradients_nothing_is_checkpointed(monkeypatch, generator):
    intervals = []

    def record(*arguments):
        intervals.append(arguments[-1])
        return torch_ops.paramix_op(*arguments)

    monkeypatch.setattr("paramixer.ops.functional.paramix_op", record)
    tensors = cases.make_chain(generator, OFFSETS, 2, 6)
    pm.paramix(*tensors, OFFSETS, checkpoint_every=2)
    tensors[2].requires_grad_()
    pm.paramix(*tensors, OFFSETS, checkpoint_every=2)
    with torch.no_grad():
        pm.paramix(*tensors, OFFSETS, checkpoint_every=2)
    assert intervals == [0, 2, 0]


def test_noncontiguous_tensors_are_read_right(generator):
    tensors = cases.make_chain(generator, OFFSETS, 2, 6)
    awkward = [tensor.mT.contiguous().mT for tensor in tensors]
    assert not awkward[1].is_contiguous()
    cases.assert_close(pm.paramix(*awkward, OFFSETS), pm.paramix(*tensors, OFFSETS), 1e-12)


def test_empty_batches_and_a_frozen_chain(generator):
    tensors = cases.make_chain(generator, OFFSETS, 0, 6)
    assert pm.paramix(*tensors, OFFSETS).shape == (0, 6, 4)
    assert pm.link_mix(torch.ones(0, 6, 1), torch.ones(0, 6, 2), [0]).shape == (0, 6, 2)
    linear = nn.Linear(4, 4).double()
    chain = cases.make_chain(generator, OFFSETS, 2, 6)
    pm.paramix(chain[0], linear(chain[1]), *chain[2:], OFFSETS).sum().backward()
    assert linear.weight.grad is not None


@pytest.mark.slow
def test_reference_never_builds_all_links_at_once():
    """At this size [batch, N, K, channels] alone would take 2.3 GB; the values take 134 MB."""
    program = """
import resource, torch, paramixer as pm
weights, values = torch.ones(1, 2**20, 18), torch.ones(1, 2**20, 32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with pm.backend("reference"):
    pm.link_mix(weights, values, pm.Chord(links=18).offsets(2**20)[0])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    megabytes = float(
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    )
    assert megabytes < 600
