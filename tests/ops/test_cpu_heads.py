"""Heads on the CPU backend: output and every gradient at awkward sizes, on every instruction set, with any threads."""

from __future__ import annotations

import itertools
import statistics

import pytest
import torch
from torch import Tensor

import paramixer as pm
from ops import cases
from ops.instruction_sets import (
    GRADIENTS,
    SETS,
    assert_accurate,
    assert_same_bits,
    compare_sets,
    each_set,
    make_grad,
    needs_engine,
    run,
    run_with_threads,
)
from paramixer.ops import cpu, reference
from paramixer.ops.chain import Chain

pytestmark = [needs_engine, pytest.mark.usefixtures("nan_memory")]


def make_chain(
    generator: torch.Generator,
    offsets: Tensor,
    batch: int = 2,
    length: int = 37,
    inputs: int = 5,
    hidden: int = 7,
    channels: int = 3,
    residual: str = "factor",
    lengths: list[int] | None = None,
    ring: bool = True,
    shared: bool = False,
) -> Chain:
    """A random float32 chain with heads, NaN past the lengths; inputs and channels are those of one head."""
    tensors = cases.make_heads(generator, offsets, batch, length, inputs, channels, hidden, shared, torch.float32)
    dirty = [cases.put_nan_past(tensor, lengths) for tensor in tensors[:2]]
    return Chain(*dirty, *tensors[2:], offsets, None if lengths is None else torch.tensor(lengths), residual, ring)


def draw_offsets(generator: torch.Generator, heads: int = 3, factors: int = 2, links: int = 3) -> Tensor:
    return torch.randint(-200, 200, (heads, factors, links), generator=generator)


@pytest.mark.parametrize("length", [1, 2, 17, 95, 96, 97, 100])
def test_any_length(length, generator):
    for heads, shared in ((1, False), (4, True)):
        assert_accurate(make_chain(generator, draw_offsets(generator, heads), length=length, shared=shared))


@pytest.mark.parametrize("width", [1, 3, 5, 8, 16, 33])
def test_any_width_of_values_inputs_and_hidden_layers(width, generator):
    for name in ("channels", "inputs", "hidden"):
        assert_accurate(make_chain(generator, draw_offsets(generator), length=100, **{name: width}))


@pytest.mark.parametrize("links", [1, 2, 3, 9, 14, 33])
@pytest.mark.parametrize("heads", [1, 3, 4])
def test_any_number_of_links_and_heads(heads, links, generator):
    for shared in (True, False):
        assert_accurate(make_chain(generator, draw_offsets(generator, heads, links=links), length=61, shared=shared))


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
def test_lengths_rings_and_residuals(kind, ring, residual, generator):
    protocols = [cases.PROTOCOLS[name] for name in ("chord", "cdil 9", "causal")]
    for (length, shared), protocol in itertools.product(((7, True), (100, False)), protocols):
        offsets = torch.stack([protocol.offsets(length)] * 2)
        lengths = cases.make_lengths(6, length)[kind]
        assert_accurate(make_chain(generator, offsets, 6, length, 5, 7, 8, residual, lengths, ring, shared))


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_offsets_of_any_sign_and_size(ring, generator):
    extreme = [0, 2**63 - 1, -(2**63), 2**40, -(2**40), 50, -50, 49, 1, -1, 1]
    offsets = torch.tensor([[extreme, extreme[::-1]]] * 2)
    assert_accurate(make_chain(generator, offsets, length=50, ring=ring))


@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_checkpoint_every_changes_memory_and_no_result(residual, generator):
    offsets = torch.stack([pm.Chord(links=5, factors=7).offsets(90)] * 2)
    for lengths in (None, [90, 0, 33]):
        chain = make_chain(generator, offsets, 3, 90, residual=residual, lengths=lengths)
        grad = make_grad(chain)
        for name in each_set():
            every = run(cpu, chain, grad, 1)
            for checkpoint_every in (2, 3, 100):
                assert_same_bits(every, run(cpu, chain, grad, checkpoint_every), name)
            assert torch.equal(cpu.paramix(chain, 0)[0], every["mixed"]), name


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize(("batch", "length"), [(1, 5000), (5, 700), (100, 20)])
def test_the_same_bits_for_any_number_of_threads(batch, length, shared, generator):
    """Waves depend on the number of threads; with these sizes a wave ends inside a sequence's heads."""
    lengths = None if batch == 1 else ([length, 1, length // 3, 0, length] * 60)[:batch]
    offsets = torch.stack([pm.Cdil(links=3, factors=4).offsets(length)] * 3)
    chain = make_chain(generator, offsets, batch, length, 16, 8, 16, lengths=lengths, shared=shared)
    grad = make_grad(chain)
    for name in each_set():
        first, *others = run_with_threads(lambda: run(cpu, chain, grad, 2), (1, 2, 8))
        for other in others:
            assert_same_bits(first, other, name)
    assert_accurate(chain, 2)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_one_call_has_the_bits_of_one_call_for_each_head(shared, generator):
    """All but the gradient of shared inputs, which is a sum over the heads."""
    offsets = draw_offsets(generator, 4, 3, 9)
    chain = make_chain(generator, offsets, 3, 100, 16, 16, 16, "block", [100, 33, 0], shared=shared)
    grad = make_grad(chain)
    for name in each_set():
        together = run(cpu, chain, grad, 1)
        apart = [run(cpu, head, part, 1) for head, part in zip(chain.split_heads(), grad.chunk(4, 2), strict=True)]
        for result, tensor in together.items():
            parts = [head[result] for head in apart]
            if result == "dinputs" and shared:
                cases.assert_close(tensor, torch.stack(parts).sum(0), 1e-6)
            else:
                joined = torch.cat(parts, 2) if parts[0].shape[:2] == (3, 100) else torch.stack(parts)
                assert torch.equal(tensor, joined), f"{name}: {result}"


def test_errors_are_at_most_twice_those_of_plain_pytorch(generator):
    """Over several draws, without any room: a single largest error is an accident, their median is not."""
    offsets = torch.stack([pm.Cdil(links=9).offsets(300)] * 4)
    draws = [compare_sets(make_chain(generator, offsets, 2, 300, 16, 16, 16)) for _ in range(5)]
    for result, kind in itertools.product(["mixed", *GRADIENTS], ["largest", "mean"]):
        plain = statistics.median(draw[0][result][kind] for draw in draws)
        for name in SETS:
            ours = statistics.median(draw[1][name][result][kind] for draw in draws)
            assert ours <= 2 * plain, f"{name}: {result}, {kind}: {ours:.3g}, plain PyTorch {plain:.3g}"


def test_nan_and_infinity_come_out_where_the_reference_has_them(generator):
    for row, number in itertools.product(range(6), (torch.nan, torch.inf, -torch.inf)):
        chain = make_chain(generator, draw_offsets(generator, 2), 2, 39, channels=8, hidden=8)
        tensor = chain[row].clone()
        tensor.view(-1)[tensor.numel() // 2] = number
        chain = chain._replace(**{chain._fields[row]: tensor})
        grad = torch.ones_like(chain.values)
        plain = run(reference, chain, grad, 1)
        for name in each_set():
            for result, tensor in run(cpu, chain, grad, 1).items():
                for test in (torch.isnan, torch.isposinf, torch.isneginf):
                    same = torch.equal(test(tensor), test(plain[result]))
                    assert same, f"{name}: {number} in {chain._fields[row]}: {result}"
