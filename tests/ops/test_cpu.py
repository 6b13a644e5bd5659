"""The C++ engine against the reference in float64: output, every gradient, awkward sizes, every instruction set."""

from __future__ import annotations

import itertools
import shutil
import statistics
import threading
import time

import pytest
import torch
from torch import Tensor

import paramixer as pm
from ops import cases
from paramixer.ops import cpu, reference
from paramixer.ops.chain import Chain

# Only a machine without a compiler may lack the engine; a build that does not load must fail here, not be skipped.
COMPILER = any(shutil.which(name) for name in ("c++", "g++", "clang++"))
pytestmark = pytest.mark.skipif(not (pm.backends()["cpu"] or COMPILER), reason=str(pm.backends()["cpu"]))
engine = cpu._engine
SETS = [name for name, runs in engine.instruction_sets().items() if runs] if engine else []
NAMES = ["dinputs", "dvalues", "dw1", "db1", "dw2", "db2"]


@pytest.fixture(autouse=True)
def _settings_as_before():
    threads = torch.get_num_threads()
    yield
    engine.use_instruction_set("auto")
    torch.set_num_threads(threads)


@pytest.fixture(params=SETS)
def instruction_set(request):
    engine.use_instruction_set(request.param)
    return request.param


@pytest.fixture(autouse=True)
def _new_memory_holds_nan(monkeypatch):
    """Every element the engine forgets to write shows."""
    monkeypatch.setattr(cpu, "_empty", lambda *shape: torch.full(shape, torch.nan))


def chain_of(
    generator: torch.Generator,
    offsets: Tensor,
    batch: int = 2,
    length: int = 37,
    inputs: int = 5,
    hidden: int = 7,
    channels: int = 9,
    residual: str = "factor",
    lengths: list[int] | None = None,
    ring: bool = True,
) -> Chain:
    """A float32 chain, NaN past the lengths."""
    tensors = cases.chain(generator, offsets, batch, length, inputs, channels, hidden, torch.float32)
    dirty = [cases.with_nan_past(tensor, lengths) for tensor in tensors[:2]]
    return Chain(*dirty, *tensors[2:], offsets, None if lengths is None else torch.tensor(lengths), residual, ring)


def in_double(chain: Chain) -> Chain:
    return Chain(*(tensor.double() for tensor in chain[:6]), *chain[6:])


def run(module, chain: Chain, grad: Tensor, keep: int) -> dict[str, Tensor]:
    mixed, kept = module.paramix(chain, keep)
    grads = module.paramix_backward(grad, chain, keep, kept)
    return {"mixed": mixed} | dict(zip(NAMES, grads, strict=True))


def errors_of(chain: Chain, keep: int = 1) -> dict[str, dict[str, tuple[float, float]]]:
    """By result: the engine's and plain PyTorch's errors against float64, largest and mean, in the largest entry."""
    grad = torch.randn(chain.values.shape, generator=torch.Generator().manual_seed(1))
    grad = cases.with_nan_past(grad, None if chain.lengths is None else chain.lengths.tolist())
    exact = run(reference, in_double(chain), grad.double(), keep)
    runs = run(cpu, chain, grad, keep), run(reference, chain, grad, keep)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, truth in exact.items():
        assert runs[0][name].dtype == torch.float32
        assert torch.isfinite(runs[0][name]).all(), name
        if truth.numel() and (scale := float(truth.abs().max())):
            ours, plain = ((result[name].double() - truth) / scale for result in runs)
            found[name] = {
                "largest": (float(ours.abs().max()), float(plain.abs().max())),
                "mean": (float(ours.square().mean().sqrt()), float(plain.square().mean().sqrt())),
            }
        else:
            assert not runs[0][name].any()
    return found


def assert_as_exact(chain: Chain, keep: int = 1) -> None:
    """Errors like those of plain PyTorch. Where there are few numbers, chance needs some roundings of room."""
    for name, errors in errors_of(chain, keep).items():
        for kind, (ours, plain) in errors.items():
            assert ours <= 2 * plain + 16 * 2**-23, f"{name}, {kind}: {ours:.3g}, plain PyTorch {plain:.3g}"


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("hidden", [32, 128])
@pytest.mark.parametrize("protocol", [pm.Chord(), pm.Cdil(links=3)], ids=str)
def test_errors_are_at_most_twice_those_of_plain_pytorch(protocol, hidden, residual, instruction_set, generator):
    """Over several draws, without any room: a single largest error is an accident, their median is not."""
    offsets = protocol.offsets(500)
    draws = [errors_of(chain_of(generator, offsets, 2, 500, 32, hidden, 32, residual)) for _ in range(5)]
    for name, kind in itertools.product(["mixed", *NAMES], ["largest", "mean"]):
        ours, plain = (statistics.median(draw[name][kind][who] for draw in draws) for who in (0, 1))
        assert ours <= 2 * plain, f"{name}, {kind}: {ours:.3g}, plain PyTorch {plain:.3g}"


def test_the_shape_of_the_code_for_wide_vectors_is_tested_even_where_avx512_is_missing():
    assert "baseline" in SETS
    assert engine.instruction_set() in SETS
    assert "wide" in SETS or "avx2" not in SETS
    assert engine.instruction_set() == ("avx512" if "avx512" in SETS else "avx2" if "avx2" in SETS else "baseline")


@pytest.mark.parametrize("length", [1, 2, 3, 15, 47, 48, 49, 63, 100, 257])
def test_any_length(length, instruction_set, generator):
    for protocol in (pm.Chord(), pm.Cdil(links=3)):
        assert_as_exact(chain_of(generator, cases.offsets_of(protocol, length), length=length, channels=32, hidden=32))


@pytest.mark.parametrize("channels", [1, 3, 8, 31, 32, 33, 64, 100, 130])
def test_any_number_of_channels(channels, instruction_set, generator):
    assert_as_exact(chain_of(generator, pm.Chord(factors=3).offsets(61), length=61, channels=channels))


@pytest.mark.parametrize("hidden", [1, 5, 8, 17, 32, 128, 300])
def test_any_hidden_width(hidden, instruction_set, generator):
    assert_as_exact(chain_of(generator, pm.Chord(factors=3).offsets(61), length=61, hidden=hidden))


@pytest.mark.parametrize("inputs", [1, 3, 8, 31, 32, 100])
def test_any_width_of_the_link_input(inputs, instruction_set, generator):
    assert_as_exact(chain_of(generator, pm.Chord(factors=3).offsets(61), length=61, inputs=inputs))


@pytest.mark.parametrize("links", [1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 200])
def test_any_number_of_links(links, instruction_set, generator):
    offsets = torch.randint(-200, 200, (2, links), generator=generator)
    assert_as_exact(chain_of(generator, offsets, length=61, channels=32))


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
def test_lengths_rings_and_residuals(kind, ring, residual, instruction_set, generator):
    for length, protocol in itertools.product((7, 100), cases.PROTOCOLS.values()):
        lengths = cases.lengths_of(6, length)[kind]
        offsets = protocol.offsets(length)
        chain = chain_of(generator, offsets, 6, length, channels=8, residual=residual, lengths=lengths, ring=ring)
        assert_as_exact(chain)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_offsets_of_any_sign_and_size(ring, instruction_set, generator):
    extreme = [0, 2**63 - 1, -(2**63), 2**40, -(2**40), 50, -50, 49, 1, -1, 1]
    assert_as_exact(chain_of(generator, torch.tensor([extreme, extreme[::-1]]), length=50, ring=ring))


@pytest.mark.parametrize("keep", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("residual", cases.RESIDUALS)
def test_keep_changes_memory_and_nothing_else(residual, keep, instruction_set, generator):
    offsets = pm.Chord(links=5, factors=7).offsets(90)
    chain = chain_of(generator, offsets, 3, 90, residual=residual, lengths=[90, 0, 33])
    grad = torch.randn(3, 90, 9, generator=generator)
    every, some = run(cpu, chain, grad, 1), run(cpu, chain, grad, keep)
    assert all(torch.equal(every[name], some[name]) for name in every)
    assert torch.equal(cpu.paramix(chain, 0)[0], every["mixed"])


@pytest.mark.parametrize(("batch", "length", "keep"), [(300, 7, 1), (3, 9000, 2)])
def test_batches_that_go_through_the_chain_in_several_waves(batch, length, keep, generator):
    """A wave ends after 256 sequences, or when it outgrows the caches."""
    offsets = pm.Cdil(links=3, factors=3).offsets(length)
    lengths = torch.randint(length + 1, (batch,), generator=generator).tolist()
    for residual, given in itertools.product(cases.RESIDUALS, (None, lengths)):
        assert_as_exact(chain_of(generator, offsets, batch, length, 32, 8, 32, residual, given), keep)


@pytest.mark.parametrize(("batch", "length"), [(1, 5000), (3, 700), (5, 48), (300, 20)])
def test_the_same_bits_for_any_number_of_threads_run_after_run(batch, length, instruction_set, generator):
    lengths = None if batch == 1 else ([length, 1, length // 3, 0, length] * 60)[:batch]
    chain = chain_of(generator, pm.Chord().offsets(length), batch, length, 16, 24, 32, lengths=lengths)
    grad = torch.randn(batch, length, 32, generator=generator)
    runs = []
    for threads in (1, 2, 8, 2, 3):
        torch.set_num_threads(threads)
        runs.append(run(cpu, chain, grad, 2))
    for name, first in runs[0].items():
        assert all(torch.equal(first, other[name]) for other in runs[1:]), name


def test_weight_gradients_of_many_tokens_stay_accurate(generator):
    assert_as_exact(chain_of(generator, pm.Cdil(links=3, factors=2).offsets(2**16), 1, 2**16, 8, 8, 8))


def sharing(chain: Chain, rows: int, generator: torch.Generator) -> Chain:
    """The chain with rows of a table for link inputs, some of which may have no token and one has half of them."""
    table = torch.randn(rows, chain.inputs.shape[2], generator=generator)
    symbols = torch.randint(rows, chain.values.shape[:2], generator=generator)
    symbols[torch.rand(symbols.shape, generator=generator) < 0.5] = rows // 2
    return chain._replace(inputs=table, symbols=symbols)


@pytest.mark.parametrize("rows", [1, 2, 95, 97, 300])
@pytest.mark.parametrize(("length", "channels", "links"), [(1, 1, 1), (61, 32, 7), (100, 5, 8), (200, 33, 17)])
def test_rows_of_a_table_write_what_their_tokens_would(length, channels, links, rows, instruction_set, generator):
    offsets = torch.randint(-200, 200, (3, links), generator=generator)
    chain = sharing(chain_of(generator, offsets, 3, length, channels=channels), rows, generator)
    assert_as_exact(chain)
    own = chain._replace(inputs=chain.inputs[chain.symbols], symbols=None)
    assert torch.equal(cpu.paramix(chain, 0)[0], cpu.paramix(own, 0)[0])


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
def test_rows_of_a_table_with_lengths_rings_and_residuals(kind, ring, residual, instruction_set, generator):
    lengths = cases.lengths_of(6, 100)[kind]
    for keep, protocol in itertools.product((1, 3), cases.PROTOCOLS.values()):
        chain = chain_of(
            generator, protocol.offsets(100), 6, 100, channels=8, residual=residual, lengths=lengths, ring=ring
        )
        assert_as_exact(sharing(chain, 40, generator), keep)


@pytest.mark.parametrize(
    ("batch", "length", "channels", "rows"),
    # The waves of the last are of 2 sequences with 1 thread and of 6 with 8.
    [(300, 7, 32, 50), (3, 9000, 32, 5), (3, 9000, 32, 4000), (13, 1024, 128, 100)],
)
def test_rows_of_a_table_in_several_waves_and_any_number_of_threads(batch, length, channels, rows, generator):
    lengths = None if channels == 128 else torch.randint(length + 1, (batch,), generator=generator).tolist()
    offsets = pm.Cdil(links=3, factors=3).offsets(length)
    chain = chain_of(generator, offsets, batch, length, channels, 8, channels, lengths=lengths)
    chain = sharing(chain, rows, generator)
    assert_as_exact(chain, 2)
    grad = torch.randn(chain.values.shape, generator=generator)
    runs = []
    for threads in (1, 2, 8, 3):
        torch.set_num_threads(threads)
        runs.append(run(cpu, chain, grad, 2))
    for name, first in runs[0].items():
        assert all(torch.equal(first, other[name]) for other in runs[1:]), name


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "mixed", "zero"])
@pytest.mark.parametrize(("length", "channels", "links"), [(1, 1, 1), (50, 32, 7), (100, 5, 3), (129, 100, 17)])
def test_link_mix_alone(length, channels, links, kind, ring, instruction_set, generator):
    offsets = torch.randint(-2 * length, 2 * length + 1, (links,), generator=generator)
    lengths = cases.lengths_of(5, length)[kind]
    tensors = [*cases.factor(generator, 5, length, channels, links, torch.float32)]
    tensors.append(torch.randn(5, length, channels, generator=generator))
    weights, values, grad = (cases.with_nan_past(tensor, lengths) for tensor in tensors)
    counts = None if lengths is None else torch.tensor(lengths)
    mixed = cpu.link_mix(weights, values, offsets, counts, ring)
    cases.assert_close(
        mixed.double(), reference.link_mix(weights.double(), values.double(), offsets, counts, ring), 1e-6
    )
    found = cpu.link_mix_backward(grad, weights, values, offsets, counts, ring)
    expected = reference.link_mix_backward(grad.double(), weights.double(), values.double(), offsets, counts, ring)
    for ours, exact in zip(found, expected, strict=True):
        cases.assert_close(ours.double(), exact, 1e-6)


@pytest.mark.parametrize("kind", ["none", "mixed", "zero"])
@pytest.mark.parametrize(
    ("length", "inputs", "hidden", "outputs"), [(1, 1, 1, 1), (200, 32, 32, 32), (97, 100, 128, 100), (33, 5, 7, 11)]
)
def test_mlp_alone(length, inputs, hidden, outputs, kind, instruction_set, generator):
    lengths = cases.lengths_of(5, length)[kind]
    counts = None if lengths is None else torch.tensor(lengths)
    shapes = [(inputs, hidden), (hidden,), (hidden, outputs), (outputs,)]
    layers = [torch.randn(shape, generator=generator) * shape[0] ** -0.5 for shape in shapes]
    x, grad = (
        cases.with_nan_past(torch.randn(5, length, width, generator=generator), lengths) for width in (inputs, outputs)
    )
    exact = [tensor.double() for tensor in (x, *layers)]
    found = [cpu.mlp(x, *layers, counts), *cpu.mlp_backward(grad, x, *layers, counts)]
    expected = [reference.mlp(*exact, counts), *reference.mlp_backward(grad.double(), *exact, counts)]
    for ours, truth in zip(found, expected, strict=True):
        cases.assert_close(ours.double(), truth, 1e-6)
    for threads in (1, 2, 8):
        torch.set_num_threads(threads)
        again = [cpu.mlp(x, *layers, counts), *cpu.mlp_backward(grad, x, *layers, counts)]
        assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


def gelu_through_the_engine(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """GELU and its derivative as the kernels compute them: one factor, one hidden unit, one link to oneself."""
    one, zero = torch.ones(1, 1, 1), torch.zeros(1, 1)
    values = torch.ones(1, len(numbers), 1)
    offsets = torch.zeros(1, 1, dtype=torch.int64)
    chain = Chain(numbers.reshape(1, -1, 1), values, one, zero, one, zero, offsets, None, "none", True)
    mixed, kept = cpu.paramix(chain, 1)
    return mixed.flatten(), cpu.paramix_backward(torch.ones_like(values), chain, 1, kept)[0].flatten()


def test_gelu_is_exact_to_1e_6_over_all_floats(instruction_set):
    steps = torch.arange(0, 2**31 - 2**23, 9973, dtype=torch.int64).to(torch.int32).view(torch.float32)
    fine = torch.linspace(-8, 8, 400_001)
    numbers = torch.cat([steps, -steps, fine])
    exact = numbers.double().requires_grad_()
    output = torch.nn.functional.gelu(exact)
    output.sum().backward()
    found, slope = gelu_through_the_engine(numbers)
    spacing = output.detach().abs() * 2**-22
    assert ((found.double() - output.detach()).abs() <= torch.maximum(spacing, torch.tensor(1e-6))).all()
    assert (slope.double() - exact.grad).abs().max() <= 1e-6


def test_nan_and_infinity_come_out_where_the_reference_has_them(instruction_set, generator):
    for row, number in itertools.product(range(6), (torch.nan, torch.inf, -torch.inf)):
        chain = chain_of(generator, pm.Chord(factors=2).offsets(40), 2, 40, channels=8, hidden=8)
        tensor = chain[row].clone()
        tensor.view(-1)[tensor.numel() // 2] = number
        chain = chain._replace(**{chain._fields[row]: tensor})
        grad = torch.ones(2, 40, 8)
        plain, found = run(reference, chain, grad, 1), run(cpu, chain, grad, 1)
        for name, expected in plain.items():
            for test in (torch.isnan, torch.isposinf, torch.isneginf):
                assert torch.equal(test(found[name]), test(expected)), f"{number} in {chain._fields[row]}: {name}"


def test_dropout_masks_are_the_same_for_every_engine_set_and_thread(instruction_set, generator):
    values = torch.randn(50_001, generator=generator)
    for p, seed in itertools.product((0.0, 0.2, 0.8, 1.0), (0, 1, 2**61 + 5)):
        expected = reference.dropout(values, p, seed)
        for threads in (1, 2, 8):
            torch.set_num_threads(threads)
            assert torch.equal(cpu.dropout(values, p, seed), expected)


def test_awkward_memory_is_brought_into_shape(generator):
    offsets = torch.stack([pm.Chord().offsets(64)] * 2, -1)[..., 0]
    assert not offsets.is_contiguous()
    chain = chain_of(generator, offsets, length=64)
    awkward = Chain(*(tensor.mT.contiguous().mT for tensor in chain[:6]), *chain[6:])
    assert torch.equal(cpu.paramix(awkward, 0)[0], cpu.paramix(chain, 0)[0])


def test_the_interpreter_is_free_while_a_kernel_runs(generator):
    torch.set_num_threads(1)
    chain = chain_of(generator, pm.Chord().offsets(2**15), 1, 2**15, 32, 64, 32)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    cpu.paramix(chain, 1)
    stop = time.perf_counter()
    done.set()
    ticker.join()
    assert sum(start < moment < stop for moment in ticks) >= 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.ones(2, 5, 4, dtype=torch.float64)}, "values is not float32"),
        ({"values": torch.ones(2, 5, 8)[..., ::2]}, "values .*not contiguous"),
        ({"values": torch.ones(2, 6, 4)}, "values has shape"),
        ({"offsets": torch.zeros(3)}, "offsets is not int64"),
        ({"offsets": torch.zeros(4, dtype=torch.int64)}, "offsets has shape"),
        ({"lengths": torch.tensor([5, 6])}, r"lengths\[1\] is 6"),
        ({"lengths": torch.tensor([5])}, "lengths has shape"),
        ({"out": torch.ones(2, 5, 3)}, "out has shape"),
    ],
)
def test_kernels_check_before_they_touch_a_pointer(changes, message):
    arguments = {
        "weights": torch.ones(2, 5, 3),
        "values": torch.ones(2, 5, 4),
        "offsets": torch.zeros(3, dtype=torch.int64),
        "lengths": None,
        "ring": True,
        "out": torch.ones(2, 5, 4),
    }
    engine.link_mix(**arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        engine.link_mix(**(arguments | changes))
    with pytest.raises(ValueError, match="'quantum' does not run on this machine"):
        engine.use_instruction_set("quantum")


def test_memory_is_used_again_and_never_twice_at_once():
    shape = (1000, 600)
    first, second = engine.empty(shape), engine.empty(shape)
    assert first.shape == shape
    assert first.data_ptr() != second.data_ptr()
    first.fill_(1)
    second.fill_(2)
    where = first.data_ptr()
    view = first[10:]
    del first
    third = engine.empty(shape).fill_(3)
    assert (view == 1).all(), "a view keeps its memory"
    del view
    fourth = engine.empty(shape).fill_(4)
    assert fourth.data_ptr() == where or not engine.keeps_memory()
    assert (second == 2).all()
    assert (third == 3).all()
    with pytest.raises(ValueError, match="cannot be addressed"):
        engine.empty((2**40, 2**40))
