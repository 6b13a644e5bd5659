"""Runs the CPU backend on every instruction set of this machine and compares the results with one reference."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import paramixer as pm
from ops import cases
from paramixer.ops import cpu, reference
from paramixer.ops.chain import Chain

# Only a machine without a compiler may lack the compiled module; a build that does not load must fail, not be skipped.
_COMPILER = any(shutil.which(name) for name in ("c++", "g++", "clang++"))
needs_engine = pytest.mark.skipif(not (pm.backends()["cpu"] or _COMPILER), reason=str(pm.backends()["cpu"]))
engine = cpu._engine
SETS = [name for name, runs in engine.instruction_sets().items() if runs] if engine else []
GRADIENTS = ["dinputs", "dvalues", "dw1", "db1", "dw2", "db2"]


def each_set() -> Iterator[str]:
    """Every instruction set in turn, in use while the loop body runs."""
    for name in SETS:
        engine.use_instruction_set(name)
        yield name
    engine.use_instruction_set("auto")


def make_chain(
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
    """A random float32 chain, NaN past the lengths."""
    tensors = cases.make_chain(generator, offsets, batch, length, inputs, channels, hidden, torch.float32)
    dirty = [cases.put_nan_past(tensor, lengths) for tensor in tensors[:2]]
    return Chain(*dirty, *tensors[2:], offsets, None if lengths is None else torch.tensor(lengths), residual, ring)


def share_rows(chain: Chain, rows: int, generator: torch.Generator) -> Chain:
    """The chain with table rows as link inputs: half of the tokens share one row, some rows may have no token."""
    table = torch.randn(rows, chain.inputs.shape[2], generator=generator)
    row_ids = torch.randint(rows, chain.values.shape[:2], generator=generator)
    row_ids[torch.rand(row_ids.shape, generator=generator) < 0.5] = rows // 2
    return chain._replace(inputs=table, row_ids=row_ids)


def run(module, chain: Chain, grad: Tensor, checkpoint_every: int) -> dict[str, Tensor]:
    """Output and gradients of the chain by name."""
    mixed, checkpoints = module.paramix(chain, checkpoint_every)
    grads = module.paramix_backward(grad, chain, checkpoint_every, checkpoints)
    return {"mixed": mixed} | dict(zip(GRADIENTS, grads, strict=True))


Errors = dict[str, dict[str, float]]


def measure_errors(results: dict[str, Tensor], exact: dict[str, Tensor]) -> Errors:
    """By result: the largest and the mean error, relative to the largest exact entry."""
    errors: Errors = {}
    for name, truth in exact.items():
        if truth.numel() and (scale := float(truth.abs().max())):
            error = (results[name].double() - truth) / scale
            errors[name] = {"largest": float(error.abs().max()), "mean": float(error.square().mean().sqrt())}
        else:
            assert not results[name].any(), name
    return errors


def make_grad(chain: Chain) -> Tensor:
    """A random upstream gradient, NaN past the lengths."""
    grad = torch.randn(chain.values.shape, generator=torch.Generator().manual_seed(1))
    return cases.put_nan_past(grad, None if chain.lengths is None else chain.lengths.tolist())


def run_exactly(chain: Chain, grad: Tensor) -> dict[str, Tensor]:
    """The reference in float64. Its results do not depend on checkpoint_every, which test_against_dense checks."""
    double = Chain(*(tensor.double() for tensor in chain[:6]), *chain[6:])
    return run(reference, double, grad.double(), 1)


def measure_set(chain: Chain, grad: Tensor, exact: dict[str, Tensor], checkpoint_every: int = 1) -> Errors:
    """The errors of the instruction set in use."""
    results = run(cpu, chain, grad, checkpoint_every)
    for result, tensor in results.items():
        assert tensor.dtype == torch.float32
        assert torch.isfinite(tensor).all(), result
    return measure_errors(results, exact)


def compare_sets(chain: Chain) -> tuple[Errors, dict[str, Errors]]:
    """Errors against float64 of plain PyTorch in float32, and of every instruction set."""
    grad = make_grad(chain)
    exact = run_exactly(chain, grad)
    plain = measure_errors(run(reference, chain, grad, 1), exact)
    return plain, {name: measure_set(chain, grad, exact) for name in each_set()}


def assert_accurate(chain: Chain, *checkpoint_every: int) -> None:
    """Errors of every set at most twice those of plain PyTorch, plus some roundings for chance in few numbers."""
    grad = make_grad(chain)
    exact = run_exactly(chain, grad)
    room = 16 * 2**-23
    plain: Errors = {}
    for name in each_set():
        for every in checkpoint_every or (1,):
            for result, kinds in measure_set(chain, grad, exact, every).items():
                for kind, error in kinds.items():
                    if error <= room:
                        continue
                    # Only now: plain PyTorch takes longer than all sets together.
                    plain = plain or measure_errors(run(reference, chain, grad, 1), exact)
                    limit = 2 * plain[result][kind] + room
                    what = f"{name}, checkpoint_every={every}: {result}, {kind}"
                    assert error <= limit, f"{what}: {error:.3g}, limit {limit:.3g}"


def assert_same_bits(first: dict[str, Tensor], second: dict[str, Tensor], what: object) -> None:
    """All results are equal to the last bit."""
    for name in first:
        assert torch.equal(first[name], second[name]), f"{what}: {name}"


def run_with_threads(compute: Callable[[], dict[str, Tensor]], counts: tuple[int, ...]) -> list[dict[str, Tensor]]:
    """The results with each number of threads."""
    before = torch.get_num_threads()
    results = []
    try:
        for threads in counts:
            torch.set_num_threads(threads)
            results.append(compute())
    finally:
        torch.set_num_threads(before)
    return results
