"""The CPU backend against the reference in float64: output, every gradient, awkward sizes, every instruction set."""

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
    engine,
    make_chain,
    needs_engine,
    run,
    run_with_threads,
)
from paramixer.ops import cpu, reference
from paramixer.ops.chain import Chain

pytestmark = [needs_engine, pytest.mark.usefixtures("nan_memory")]


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("hidden", [32, 128])
@pytest.mark.parametrize("protocol", [pm.Chord(), pm.Cdil(links=3)], ids=str)
def test_errors_are_at_most_twice_those_of_plain_pytorch(protocol, hidden, residual, generator):
    """Over several draws, without any room: a single largest error is an accident, their median is not."""
    offsets = protocol.offsets(500)
    draws = [compare_sets(make_chain(generator, offsets, 2, 500, 32, hidden, 32, residual)) for _ in range(5)]
    for result, kind in itertools.product(["mixed", *GRADIENTS], ["largest", "mean"]):
        plain = statistics.median(draw[0][result][kind] for draw in draws)
        for name in SETS:
            ours = statistics.median(draw[1][name][result][kind] for draw in draws)
            assert ours <= 2 * plain, f"{name}: {result}, {kind}: {ours:.3g}, plain PyTorch {plain:.3g}"


def test_the_code_for_wide_vectors_is_tested_even_where_avx512_is_missing():
    assert "baseline" in SETS
    assert engine.instruction_set() in SETS
    assert "wide" in SETS or "avx2" not in SETS
    assert engine.instruction_set() == ("avx512" if "avx512" in SETS else "avx2" if "avx2" in SETS else "baseline")


@pytest.mark.parametrize("length", [1, 2, 3, 15, 47, 48, 49, 63, 95, 96, 97, 100, 257])
def test_any_length(length, generator):
    for protocol in (pm.Chord(), pm.Cdil(links=3)):
        offsets = cases.make_offsets(protocol, length)
        assert_accurate(make_chain(generator, offsets, length=length, channels=32, hidden=32))


@pytest.mark.parametrize("channels", [1, 3, 8, 31, 32, 33, 64, 100, 130])
def test_any_number_of_channels(channels, generator):
    assert_accurate(make_chain(generator, pm.Chord(factors=3).offsets(61), length=61, channels=channels))


@pytest.mark.parametrize("hidden", [1, 5, 8, 17, 32, 128, 300])
def test_any_hidden_width(hidden, generator):
    assert_accurate(make_chain(generator, pm.Chord(factors=3).offsets(61), length=61, hidden=hidden))


@pytest.mark.parametrize("inputs", [1, 3, 8, 31, 32, 100])
def test_any_width_of_the_link_input(inputs, generator):
    assert_accurate(make_chain(generator, pm.Chord(factors=3).offsets(61), length=61, inputs=inputs))


@pytest.mark.parametrize("links", [1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 200])
def test_any_number_of_links(links, generator):
    offsets = torch.randint(-200, 200, (2, links), generator=generator)
    assert_accurate(make_chain(generator, offsets, length=61, channels=32))


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
def test_lengths_rings_and_residuals(kind, ring, residual, generator):
    for length, protocol in itertools.product((7, 100), cases.PROTOCOLS.values()):
        lengths = cases.make_lengths(6, length)[kind]
        offsets = protocol.offsets(length)
        chain = make_chain(generator, offsets, 6, length, channels=8, residual=residual, lengths=lengths, ring=ring)
        assert_accurate(chain)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_offsets_of_any_sign_and_size(ring, generator):
    extreme = [0, 2**63 - 1, -(2**63), 2**40, -(2**40), 50, -50, 49, 1, -1, 1]
    assert_accurate(make_chain(generator, torch.tensor([extreme, extreme[::-1]]), length=50, ring=ring))


@pytest.mark.parametrize("checkpoint_every", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_checkpoint_every_changes_memory_and_no_result(residual, checkpoint_every, generator):
    offsets = pm.Chord(links=5, factors=7).offsets(90)
    chain = make_chain(generator, offsets, 3, 90, residual=residual, lengths=[90, 0, 33])
    grad = torch.randn(3, 90, 9, generator=generator)
    for name in each_set():
        every = run(cpu, chain, grad, 1)
        assert_same_bits(every, run(cpu, chain, grad, checkpoint_every), name)
        assert torch.equal(cpu.paramix(chain, 0)[0], every["mixed"]), name


@pytest.mark.parametrize(("batch", "length", "checkpoint_every"), [(300, 7, 1), (3, 9000, 2)])
def test_batches_that_go_through_the_chain_in_several_waves(batch, length, checkpoint_every, generator):
    """A wave ends after 256 sequences, or when it outgrows the caches."""
    offsets = pm.Cdil(links=3, factors=3).offsets(length)
    lengths = torch.randint(length + 1, (batch,), generator=generator).tolist()
    for residual, given in itertools.product(cases.RESIDUALS, (None, lengths)):
        assert_accurate(make_chain(generator, offsets, batch, length, 32, 8, 32, residual, given), checkpoint_every)


@pytest.mark.parametrize(("batch", "length"), [(1, 5000), (3, 700), (5, 48), (300, 20)])
def test_the_same_bits_for_any_number_of_threads_run_after_run(batch, length, generator):
    lengths = None if batch == 1 else ([length, 1, length // 3, 0, length] * 60)[:batch]
    chain = make_chain(generator, pm.Chord().offsets(length), batch, length, 16, 24, 32, lengths=lengths)
    grad = torch.randn(batch, length, 32, generator=generator)
    for name in each_set():
        first, *others = run_with_threads(lambda: run(cpu, chain, grad, 2), (1, 2, 8, 2, 3))
        for other in others:
            assert_same_bits(first, other, name)


def test_weight_gradients_of_many_tokens_stay_accurate(generator):
    assert_accurate(make_chain(generator, pm.Cdil(links=3, factors=2).offsets(2**16), 1, 2**16, 8, 8, 8))


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "mixed", "zero"])
@pytest.mark.parametrize(("length", "channels", "links"), [(1, 1, 1), (50, 32, 7), (100, 5, 3), (129, 100, 17)])
def test_link_mix_alone(length, channels, links, kind, ring, generator):
    offsets = torch.randint(-2 * length, 2 * length + 1, (links,), generator=generator)
    lengths = cases.make_lengths(5, length)[kind]
    tensors = [*cases.make_factor(generator, 5, length, channels, links, torch.float32)]
    tensors.append(torch.randn(5, length, channels, generator=generator))
    weights, values, grad = (cases.put_nan_past(tensor, lengths) for tensor in tensors)
    rest = offsets, None if lengths is None else torch.tensor(lengths), ring
    exact = weights.double(), values.double()
    expected = [reference.link_mix(*exact, *rest), *reference.link_mix_backward(grad.double(), *exact, *rest)]
    for _ in each_set():
        results = [cpu.link_mix(weights, values, *rest), *cpu.link_mix_backward(grad, weights, values, *rest)]
        for result, truth in zip(results, expected, strict=True):
            cases.assert_close(result.double(), truth, 1e-6)


@pytest.mark.parametrize("kind", ["none", "mixed", "zero"])
@pytest.mark.parametrize(
    ("length", "inputs", "hidden", "outputs"), [(1, 1, 1, 1), (200, 32, 32, 32), (97, 100, 128, 100), (33, 5, 7, 11)]
)
def test_mlp_alone(length, inputs, hidden, outputs, kind, generator):
    lengths = cases.make_lengths(5, length)[kind]
    counts = None if lengths is None else torch.tensor(lengths)
    shapes = [(inputs, hidden), (hidden,), (hidden, outputs), (outputs,)]
    layers = [torch.randn(shape, generator=generator) * shape[0] ** -0.5 for shape in shapes]
    x, grad = (
        cases.put_nan_past(torch.randn(5, length, width, generator=generator), lengths) for width in (inputs, outputs)
    )
    exact = [tensor.double() for tensor in (x, *layers)]
    expected = [reference.mlp(*exact, counts), *reference.mlp_backward(grad.double(), *exact, counts)]

    def compute() -> dict[str, Tensor]:
        results = cpu.mlp(x, *layers, counts), *cpu.mlp_backward(grad, x, *layers, counts)
        return dict(zip(["out", "dinputs", "dw1", "db1", "dw2", "db2"], results, strict=True))

    for name in each_set():
        first, *others = run_with_threads(compute, (1, 2, 8))
        for result, truth in zip(first.values(), expected, strict=True):
            cases.assert_close(result.double(), truth, 1e-6)
        for other in others:
            assert_same_bits(first, other, name)


def gelu_through_the_engine(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """GELU and its derivative as the kernels compute them: one factor, one hidden unit, one link to oneself."""
    one, zero = torch.ones(1, 1, 1), torch.zeros(1, 1)
    values = torch.ones(1, len(numbers), 1)
    offsets = torch.zeros(1, 1, dtype=torch.int64)
    chain = Chain(numbers.reshape(1, -1, 1), values, one, zero, one, zero, offsets, None, "none", True)
    mixed, checkpoints = cpu.paramix(chain, 1)
    return mixed.flatten(), cpu.paramix_backward(torch.ones_like(values), chain, 1, checkpoints)[0].flatten()


def test_gelu_is_exact_to_1e_6_over_all_floats():
    steps = torch.arange(0, 2**31 - 2**23, 9973, dtype=torch.int64).to(torch.int32).view(torch.float32)
    fine = torch.linspace(-8, 8, 400_001)
    numbers = torch.cat([steps, -steps, fine])
    exact = numbers.double().requires_grad_()
    output = torch.nn.functional.gelu(exact)
    output.sum().backward()
    limit = torch.maximum(output.detach().abs() * 2**-22, torch.tensor(1e-6))
    for name in each_set():
        result, slope = gelu_through_the_engine(numbers)
        assert ((result.double() - output.detach()).abs() <= limit).all(), name
        assert (slope.double() - exact.grad).abs().max() <= 1e-6, name


def test_nan_and_infinity_come_out_where_the_reference_has_them(generator):
    for row, number in itertools.product(range(6), (torch.nan, torch.inf, -torch.inf)):
        chain = make_chain(generator, pm.Chord(factors=2).offsets(40), 2, 40, channels=8, hidden=8)
        tensor = chain[row].clone()
        tensor.view(-1)[tensor.numel() // 2] = number
        chain = chain._replace(**{chain._fields[row]: tensor})
        grad = torch.ones(2, 40, 8)
        # In float64: torch's own float32 products have NaN for some infinities on machines with AVX-512.
        plain = run(
            reference,
            chain._replace(**{name: getattr(chain, name).double() for name in chain._fields[:6]}),
            grad.double(),
            1,
        )
        for name in each_set():
            for result, tensor in run(cpu, chain, grad, 1).items():
                for test in (torch.isnan, torch.isposinf, torch.isneginf):
                    same = torch.equal(test(tensor), test(plain[result]))
                    assert same, f"{name}: {number} in {chain._fields[row]}: {result}"


def test_dropout_masks_are_the_same_for_every_backend_set_and_thread(generator):
    values = torch.randn(50_001, generator=generator)
    for p, seed in itertools.product((0.0, 0.2, 0.8, 1.0), (0, 1, 2**61 + 5)):
        expected = reference.dropout(values, p, seed)
        for name in each_set():
            for results in run_with_threads(lambda p=p, seed=seed: {"out": cpu.dropout(values, p, seed)}, (1, 2, 8)):
                assert torch.equal(results["out"], expected), name
