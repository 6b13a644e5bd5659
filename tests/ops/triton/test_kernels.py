"""The Triton kernels against the reference in float64, at awkward sizes, in Triton's interpreter."""

from __future__ import annotations

import contextlib
import functools
import itertools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paramixer as pm
from ops import cases, test_torch_ops
from ops.instruction_sets import run, run_exactly, share_rows
from ops.triton.accuracy import DEVICE, assert_accurate, assert_same_bits, backend, make_chain, move, run_backend
from paramixer.errors import BackendError
from paramixer.ops import reference, triton
from paramixer.ops.triton import launch

pytestmark = pytest.mark.usefixtures("nan_memory")


@pytest.mark.parametrize("length", [1, 2, 17, 100])
def test_any_length(length, generator):
    assert_accurate(make_chain(generator, length=length, batch=1 if length == 100 else 2))


@pytest.mark.parametrize(("batch", "length"), [(0, 9), (2, 0)])
@pytest.mark.parametrize("heads", [None, 2])
def test_batches_without_a_position(heads, batch, length, generator):
    results = run_backend(make_chain(generator, heads, batch=batch, length=length))
    assert results["mixed"].shape[:2] == (batch, length)
    assert not any(results[name].any() for name in ("dw1", "db1", "dw2", "db2"))


@pytest.mark.parametrize("width", [1, 5, 32, 33, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["channels", "inputs", "hidden"])
def test_any_width_of_values_inputs_and_hidden_layers(name, width, generator):
    assert_accurate(make_chain(generator, batch=1, factors=1, **{name: width}))


@pytest.mark.parametrize("links", [1, 3, 16, pytest.param(33, marks=pytest.mark.slow)])
def test_any_number_of_links(links, generator):
    assert_accurate(make_chain(generator, batch=1, links=links))


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("heads", [1, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_heads(heads, shared, generator):
    assert_accurate(make_chain(generator, heads, lengths=[17, 9], shared=shared))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_heads_with_wide_inputs_and_several_tiles(shared, generator):
    assert_accurate(make_chain(generator, 3, 2, 9, 2, 100, 33, 40, 16, "block", [100, 70], shared=shared))


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_mixed_lengths_rings_and_residuals(ring, residual, generator):
    lengths = [17, 0, 1, 2, 8]
    assert_accurate(make_chain(generator, batch=5, lengths=lengths, ring=ring, residual=residual, reach=12))


@pytest.mark.slow
@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["full", "one", "mixed"])
def test_lengths_of_every_kind_over_several_tiles(kind, ring, residual, generator):
    lengths = cases.make_lengths(5, 70)[kind]
    assert_accurate(make_chain(generator, 2, 2, 2, 5, 70, 3, 5, 4, residual, lengths, ring, reach=90))


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("lengths", [None, [50, 7]])
def test_offsets_of_any_sign_and_size(lengths, ring, generator):
    extreme = [0, 2**63 - 1, -(2**63), 2**40, -(2**40), 50, -50, 49, 1, -1, 1]
    chain = make_chain(generator, links=len(extreme), length=50, lengths=lengths, ring=ring)
    assert_accurate(chain._replace(offsets=torch.tensor([extreme, extreme[::-1]])))


@pytest.mark.parametrize("heads", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "residual", ["block", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("factor", "none"))]
)
def test_checkpoint_every_changes_memory_and_no_result(residual, heads, generator):
    chain = make_chain(generator, heads, factors=4, residual=residual, lengths=[17, 5])
    every = run_backend(chain)
    for checkpoint_every in (2, 3):
        assert_same_bits(every, run_backend(chain, checkpoint_every), checkpoint_every)
    mixed, checkpoints = backend.paramix(chain, 0)
    assert torch.equal(mixed, every["mixed"])
    assert not checkpoints.numel()
    assert_accurate(chain, 3)


def test_checkpoints_are_zero_past_the_lengths_as_in_the_reference(generator):
    chain = make_chain(generator, 2, factors=4, length=70, lengths=[70, 3])
    checkpoints, expected = backend.paramix(chain, 1)[1], reference.paramix(chain, 1)[1]
    cases.assert_close(checkpoints, expected, 1e-5)


def test_the_same_bits_run_after_run(generator):
    chain = make_chain(generator, 2, factors=1, length=70, lengths=[70, 33], shared=True)
    assert_same_bits(run_backend(chain), run_backend(chain), "second run")


@pytest.mark.parametrize("heads", [None, 2])
def test_rows_of_a_table_as_link_inputs(heads, generator):
    chain = share_rows(make_chain(generator, heads, length=17, lengths=[17, 9], shared=True), 5, generator)
    assert_accurate(chain)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("heads", [None, 3])
@pytest.mark.parametrize("lengths", [None, [17, 0, 5]])
def test_link_mix_alone(lengths, heads, ring, generator):
    between = () if heads is None else (heads,)
    weights = torch.randn(3, 17, *between, 4, generator=generator)
    values, grad = (torch.randn(3, 17, 15, generator=generator) for _ in range(2))
    offsets = torch.randint(-40, 40, (*between, 4), generator=generator)
    past = cases.put_nan_past
    if heads is None:
        weights = past(weights, lengths)
    values, grad = past(values, lengths), past(grad, lengths)
    rest = offsets, None if lengths is None else torch.tensor(lengths), ring
    exact = weights.double(), values.double()
    expected = [reference.link_mix(*exact, *rest), *reference.link_mix_backward(grad.double(), *exact, *rest)]
    results = [backend.link_mix(weights, values, *rest), *backend.link_mix_backward(grad, weights, values, *rest)]
    for result, truth in zip(results, expected, strict=True):
        cases.assert_close(result.double(), truth, 1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("heads", "residual"), [(None, "factor"), (2, "factor"), (None, "block")])
def test_half_precision_is_computed_in_float32(dtype, heads, residual, generator):
    """As exact as the reference, which converts to float32, computes and rounds the result."""
    chain = make_chain(generator, heads, lengths=[17, 8])
    tensors = [tensor.to(dtype) for tensor in chain[:6]]
    arguments = *tensors, chain.offsets, residual, chain.lengths
    results = {}
    for name, device in (("reference", "cpu"), ("triton", DEVICE)):
        leaves = [tensor.to(device, copy=True).requires_grad_() for tensor in tensors]
        with pm.backend(name):
            output = pm.paramix(*leaves, *arguments[6:])
            output.float().square().sum().backward()
        assert output.dtype == dtype
        results[name] = [move(tensor, "cpu") for tensor in (output.detach(), *(leaf.grad for leaf in leaves))]
    for ours, expected in zip(results["triton"], results["reference"], strict=True):
        cases.assert_close(ours.float(), expected.float(), 2 * torch.finfo(dtype).eps)


def test_mlp_alone(generator):
    lengths = torch.tensor([9, 0, 4])
    shapes = [(5, 7), (7,), (7, 3), (3,)]
    layers = [torch.randn(shape, generator=generator) for shape in shapes]
    x, grad = (cases.put_nan_past(torch.randn(3, 9, width, generator=generator), [9, 0, 4]) for width in (5, 3))
    exact = [tensor.double() for tensor in (x, *layers)]
    expected = [reference.mlp(*exact, lengths), *reference.mlp_backward(grad.double(), *exact, lengths)]
    results = [backend.mlp(x, *layers, lengths), *backend.mlp_backward(grad, x, *layers, lengths)]
    for result, truth in zip(results, expected, strict=True):
        cases.assert_close(result.double(), truth, 1e-6)


def test_sums_over_the_rows_of_tables(generator):
    ids = torch.randint(7, (50,), generator=generator)
    grad = torch.randn(50, 3, generator=generator)
    cases.assert_close(backend.lookup_backward(grad, ids, 9), reference.lookup_backward(grad, ids, 9), 1e-6)
    rows = torch.randint(-1, 7, (50, 2), generator=generator).int()
    for weights in (None, torch.randn(50, 2, generator=generator)):
        sums = backend.bag_backward(grad, rows, weights), reference.bag_backward(grad, rows, weights)
        for ours, expected in zip(*sums, strict=True):
            cases.assert_close(ours, expected, 1e-6)


def test_dropout_has_the_masks_of_every_backend(generator):
    values = torch.randn(3001, generator=generator)
    for p, seed in itertools.product((0.0, 0.2, 1.0), (0, 2**61 + 5)):
        assert torch.equal(backend.dropout(values, p, seed), reference.dropout(values, p, seed))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_and_infinity_come_out_where_the_reference_has_them(generator):
    for row, number in itertools.product(range(6), (torch.nan, torch.inf, -torch.inf)):
        chain = make_chain(generator, length=40, channels=8, hidden=8)
        tensor = chain[row].clone()
        tensor.view(-1)[tensor.numel() // 2] = number
        chain = chain._replace(**{chain._fields[row]: tensor})
        grad = torch.ones_like(chain.values)
        # In float64: torch's own float32 products have NaN for some infinities on machines with AVX-512.
        results = run(backend, chain, grad, 1), run_exactly(chain, grad)
        for name, ours in results[0].items():
            for test in (torch.isnan, torch.isposinf, torch.isneginf):
                same = torch.equal(test(ours), test(results[1][name]))
                assert same, f"{number} in {chain._fields[row]}: {name}"


def test_calls_that_the_backend_cannot_serve_are_refused_in_words(generator):
    values = torch.ones(1, 4, 2, dtype=torch.float64, device=DEVICE)
    with pm.backend("triton"), pytest.raises(BackendError, match="computes in float32, these are torch.float64"):
        pm.link_mix(values[..., :1], values, [1])
    with pytest.raises(BackendError, match="2147483648 sequences x length 1 x 1 heads.*split the batch"):
        launch.launch_tiles(None, 2**31, 1, 1, launch.choose(16))
    refused = {
        "hidden": (513, "up to 512 hidden"),
        "links": (257, "256 links"),
        "channels": (4097, "4096 channels of a"),
    }
    for name, (width, message) in refused.items():
        with pytest.raises(BackendError, match=f"{message}.*these have {width}; use pm.backend\\('reference'\\)"):
            run_backend(make_chain(generator, length=1, **{name: width}))
    with pytest.raises(BackendError, match="4096 channels of a head"):
        backend.link_mix(torch.ones(1, 1, 1), torch.ones(1, 1, 4097), torch.zeros(1), None, True)
    too_long = torch.ones(1, device=DEVICE).expand(1, 2**30 + 1, 1)
    assert "sequences of up to 1073741824 positions" in triton.unsupported_reason(too_long)


@pytest.mark.slow
@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU would measure")
@pytest.mark.parametrize("residual", ["factor", "block"])
def test_tuning_runs_kernels_several_times_and_adds_once(residual, monkeypatch, generator):
    """With made-up times: all choices run, the last is chosen, and sums in place are as if it alone had run."""
    times = itertools.count(1000, -1)

    def measure(call, quantiles):
        call()
        return [float(next(times))] * len(quantiles)

    monkeypatch.setattr(launch.triton, "autotune", functools.partial(launch.triton.autotune, do_bench=measure))
    monkeypatch.setattr(launch, "is_tuned", lambda: True)
    launch._tune.cache_clear()
    assert_accurate(make_chain(generator, residual=residual, factors=1, lengths=[17, 4]))
    assert next(times) < 980


def test_compiled_graphs_and_autocast_run_on_the_backend(generator):
    block = pm.ParamixerBlock(17, 6, 5).to(DEVICE)
    values, inputs = torch.randn(2, 2, 17, 6, generator=generator).to(DEVICE).requires_grad_()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    with pm.backend("triton"):
        output = compiled(values, inputs)
        (gradient,) = torch.autograd.grad(output.square().sum(), values)
        with torch.autocast(DEVICE, torch.bfloat16):
            assert block(values, inputs).dtype == torch.bfloat16
    with pm.backend("reference"):
        expected = block(values, inputs)
        cases.assert_close(output, expected, 1e-5)
        cases.assert_close(gradient, torch.autograd.grad(expected.square().sum(), values)[0], 1e-5)


@pytest.mark.slow
@pytest.mark.skipif(DEVICE != "cpu", reason="makes tensors on the CPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(dtype, generator):
    """Schema, fake tensors, strides and autograd registration hold where this backend serves."""
    with pm.backend("triton"):
        test_torch_ops.test_opcheck(dtype, test_torch_ops.LENGTHS, generator)


def test_products_are_read_in_tf32_where_torch_may_do_so(monkeypatch):
    monkeypatch.setattr(launch, "_has_tf32", lambda device: True)
    matmul, values = torch.backends.cuda.matmul, torch.ones(1)
    before = matmul.allow_tf32
    try:
        for allowed, expected in ((False, "ieee"), (True, "tf32")):
            matmul.allow_tf32 = allowed
            assert launch.choose_precision(values) == expected
            assert launch.choose_precision(values.bfloat16()) == "tf32"
    finally:
        matmul.allow_tf32 = before


@pytest.mark.skipif(DEVICE != "cpu", reason="about the interpreter")
def test_auto_leaves_tensors_on_the_cpu_to_other_backends(monkeypatch, generator):
    monkeypatch.setattr(triton, "link_mix", lambda *_: pytest.fail("the interpreter served"))
    assert pm.backends()["triton"]
    pm.link_mix(torch.ones(1, 4, 1), torch.ones(1, 4, 2), [1])
    pm.link_mix(torch.ones(1, 4, 1).double(), torch.ones(1, 4, 2).double(), [1])


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    heads=st.sampled_from([None, 1, 3]),
    factors=st.integers(1, 3),
    links=st.integers(1, 18),
    length=st.integers(1, 70),
    widths=st.tuples(*[st.integers(1, 40)] * 3),
    residual=st.sampled_from(cases.RESIDUALS),
    ring=st.booleans(),
    shared=st.booleans(),
    checkpoint_every=st.integers(1, 3),
    data=st.data(),
)
def test_any_shape(heads, factors, links, length, widths, residual, ring, shared, checkpoint_every, data):
    batch = data.draw(st.integers(1, 3))
    lengths = data.draw(st.none() | st.lists(st.integers(0, length), min_size=batch, max_size=batch))
    generator = torch.Generator().manual_seed(length)
    sizes = factors, links, batch, length, *widths
    assert_accurate(make_chain(generator, heads, *sizes, residual, lengths, ring, shared, 200), checkpoint_every)


def test_kernels_run_on_the_gpu_of_their_tensors(monkeypatch):
    """Triton launches on the current GPU, which may be another one."""

    class Elsewhere(torch.Tensor):
        device = torch.device("cuda", 1)

    current = []

    @contextlib.contextmanager
    def make_current(device):
        current.append(device)
        yield
        current.pop()

    class Kernel:
        def __getitem__(self, grid):
            return lambda **arguments: launched.append(list(current))

    launched = []
    monkeypatch.setattr(launch, "is_tuned", lambda: False)
    monkeypatch.setattr(torch.cuda, "device", make_current)
    values = torch.ones(3).as_subclass(Elsewhere)
    launch.run(Kernel(), lambda _: (1,), launch.choose(16), offsets=None, values=values)
    assert launched == [[torch.device("cuda", 1)]]
