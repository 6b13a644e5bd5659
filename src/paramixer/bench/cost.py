"""Predicted cost of a chain: operations, bytes, time and memory.

Operations are exact and those of ``paramix`` alone. A dot product of n numbers costs 2 n: a multiplication and an
addition each. Heads are chains side by side: what one costs, times their number. What a backward pass recomputes is no
useful work and is counted apart. Times and memory are predictions; the benchmarks put measured ones beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from paramixer.bench.case import Case
from paramixer.bench.gpu_traffic import INPUT_BLOCK, Traffic, backward_traffic, count_programs, forward_traffic
from paramixer.bench.limits import Limits
from paramixer.ops.chain import count_checkpoints

FLOAT = 4
BACKENDS = ("cpu", "triton", "reference")

# Arithmetic of one exact GELU in vector code: a range reduction, two polynomials and a division.
_GELU = 30
# Share of the slower limit, arithmetic or memory, that a backend reaches in practice, forward and backward.
# That of triton is a guess: no GPU has run it yet.
_EFFICIENCY = {"cpu": (0.75, 0.62), "triton": (0.6, 0.5), "reference": (0.7, 0.7)}
# As many sequences go through the CPU backend's chain together as fit into the outer caches, and at least one.
_CACHED = 3 << 20


@dataclass(frozen=True)
class Operations:
    """Operations of one pass over the whole batch."""

    products: int
    """Useful floating-point operations in the matrix products and in the mix."""
    additions: int
    """Element by element: biases and residuals."""
    gelus: int
    """GELUs, or their derivatives."""
    recomputed: int
    """Floating-point operations repeated to save memory; no useful work."""


def forward_operations(case: Case) -> Operations:
    """Operations of a forward pass."""
    factors, links = case.offsets().shape
    each = case.tokens * case.chains * factors
    return Operations(
        products=each * 2 * (case.width * case.hidden + case.hidden * links + links * case.head_channels),
        additions=each * (case.hidden + links + case.head_channels),
        gelus=each * case.hidden,
        recomputed=0,
    )


def backward_operations(case: Case, checkpoint_every: int = 1) -> Operations:
    """Operations of a backward pass: each product has two gradients. The MLPs are always recomputed."""
    factors, links = case.offsets().shape
    forward = forward_operations(case)
    again = factors - 1 - count_checkpoints(factors, checkpoint_every)
    mlp = 2 * case.hidden * (case.width + links)
    return Operations(
        products=2 * forward.products,
        additions=2 * forward.additions,
        gelus=forward.gelus,
        recomputed=case.tokens * case.chains * factors * mlp + forward.products // factors * again,
    )


def forward_bytes(case: Case, backend: str) -> int:
    """Bytes to and from memory of a forward pass, if caches hold a tile and its neighbours but no whole tensor."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.head_channels
    each = {
        "cpu": width + 2 * channels,
        "triton": sum(one.memory for one in forward_traffic(width, hidden, channels, links)),
        "reference": width + 6 * hidden + 3 * links + links * (3 * channels + 1) + 3 * channels,
    }[_check_backend(backend)]
    return FLOAT * case.tokens * case.chains * factors * each


def backward_bytes(case: Case, backend: str, checkpoint_every: int = 1) -> int:
    """The same of a backward pass, recomputed factors included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.head_channels
    each = {
        "cpu": 3 * width + 4 * channels + 2 * links,
        "triton": sum(one.memory for one in backward_traffic(width, hidden, channels, links)),
        "reference": 6 * width + 14 * hidden + 5 * links + links * (5 * channels + 2) + 3 * channels,
    }[_check_backend(backend)]
    again = factors - 1 - count_checkpoints(factors, checkpoint_every)
    return FLOAT * case.tokens * case.chains * factors * each + forward_bytes(case, backend) // factors * again


def forward_seconds(case: Case, backend: str, limits: Limits) -> float:
    """Predicted time of a forward pass."""
    efficiency = _EFFICIENCY[_check_backend(backend)][0]
    return _seconds(
        _forward_work(case, backend), forward_bytes(case, backend), _gathered_bytes(case, backend), efficiency, limits
    )


def backward_seconds(case: Case, backend: str, limits: Limits, checkpoint_every: int = 1) -> float:
    """Predicted time of a backward pass."""
    work, moved = _backward_work(case, backend, checkpoint_every), backward_bytes(case, backend, checkpoint_every)
    factors = case.offsets().shape[0]
    again = factors - 1 - count_checkpoints(factors, checkpoint_every)
    gathered = _gathered_bytes(case, backend) // factors * (2 * factors + again)
    return _seconds(work, moved, gathered, _EFFICIENCY[_check_backend(backend)][1], limits)


def forward_memory(case: Case, backend: str) -> int:
    """Predicted peak of a forward pass without a graph: bytes beyond what the process had, its arguments included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.head_channels
    # Arguments and output; then the values on their way from factor to factor.
    each, passing = width + 2 * channels, 0
    if _check_backend(backend) == "cpu":
        passing = channels if factors > 1 else 0
        if case.heads is not None:
            # Inputs, values and output, head by head.
            passing += width + 2 * channels
    elif backend == "triton":
        # Two buffers between the factors.
        each += channels * min(factors - 1, 2)
    else:
        each += channels + max(2 * hidden, hidden + links, links + 2 * channels)
    return FLOAT * (case.tokens * case.chains * each + _wave(case) * passing + _parameters(case))


def training_memory(case: Case, backend: str, checkpoint_every: int = 1) -> int:
    """Predicted peak of a forward and a backward pass: bytes beyond what the process had, all gradients included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.head_channels
    # Arguments, output and its gradient, gradients of inputs and values; the checkpoints.
    each = 2 * width + 4 * channels + channels * count_checkpoints(factors, checkpoint_every)
    # One segment, recomputed; one factor's weights; the gradient on its way from factor to factor.
    passing = channels * (min(checkpoint_every, factors) - 1) + links + (channels if factors > 1 else 0)
    sums = 0
    if case.heads is not None:
        # Inputs, values, the output's gradient and those of inputs and values, head by head.
        passing += 2 * width + 3 * channels
    if _check_backend(backend) == "triton":
        # Segment, links and their gradients, two gradients on their way; what is before GELU where inputs are wide.
        each += channels * (min(checkpoint_every, factors) - 1 + min(factors - 1, 2)) + 2 * links
        each += hidden if width > INPUT_BLOCK else 0
        passing = 0
        sums = count_programs(case.tokens) * _parameters(case) // factors
    elif backend == "reference":
        each += passing + links + channels + 4 * hidden
        passing = 0
    return FLOAT * (case.tokens * case.chains * each + _wave(case) * passing + 2 * _parameters(case) + sums)


def choose_checkpoint_every(case: Case, backend: str, budget: int) -> int:
    """Return the smallest, and so the fastest, with which a training step should fit into ``budget`` bytes."""
    factors = case.offsets().shape[0]
    predicted = {every: training_memory(case, backend, every) for every in range(1, factors + 1)}
    for every, needed in predicted.items():
        if needed <= budget:
            return every
    least = min(predicted, key=lambda every: predicted[every])
    raise ValueError(
        f"a training step of {case} needs {predicted[least] / 1e9:.2f} GB even with checkpoint_every = {least}, "
        f"more than the {budget / 1e9:.2f} GB allowed; use a smaller batch"
    )


def describe(case: Case, backend: str, limits: Limits, checkpoint_every: int = 1) -> dict[str, Any]:
    """Return operations, bytes, predicted seconds and memory, as a record holds them."""
    return {
        "case": str(case),
        "engine": backend,
        "keep": checkpoint_every,
        "parameters": _parameters(case),
        "forward": {
            **asdict(forward_operations(case)),
            "bytes": forward_bytes(case, backend),
            "seconds": forward_seconds(case, backend, limits),
            "memory": forward_memory(case, backend),
        },
        "backward": {
            **asdict(backward_operations(case, checkpoint_every)),
            "bytes": backward_bytes(case, backend, checkpoint_every),
            "seconds": backward_seconds(case, backend, limits, checkpoint_every),
        },
        "training_memory": training_memory(case, backend, checkpoint_every),
    }


def _forward_work(case: Case, backend: str) -> int:
    """Operations that a forward pass executes: the Triton kernels compute padding, too."""
    operations = forward_operations(case)
    products = _executed(case, forward_traffic) if backend == "triton" else operations.products
    return products + operations.additions + _GELU * operations.gelus


def _backward_work(case: Case, backend: str, checkpoint_every: int) -> int:
    """The same of a backward pass: the Triton kernels compute hidden layers twice, the second time with a slope."""
    operations = backward_operations(case, checkpoint_every)
    products, gelus = operations.products + operations.recomputed, operations.gelus
    if backend == "triton":
        factors = case.offsets().shape[0]
        again = factors - 1 - count_checkpoints(factors, checkpoint_every)
        products = _executed(case, backward_traffic) + _executed(case, forward_traffic) // factors * again
        gelus *= 3
    return products + operations.additions + _GELU * gelus


def _executed(case: Case, traffic: Callable[[int, int, int, int], list[Traffic]]) -> int:
    factors, links = case.offsets().shape
    each = sum(one.operations for one in traffic(case.width, case.hidden, case.head_channels, links))
    return case.tokens * case.chains * factors * each


def _seconds(work: int, moved: int, gathered: int, efficiency: float, limits: Limits) -> float:
    cached = gathered / limits.cache if limits.cache else 0.0
    return max(work / limits.flops, moved / limits.bandwidth, cached) / efficiency


def _gathered_bytes(case: Case, backend: str) -> int:
    """Bytes of neighbors that a pass of the Triton kernels loads from caches; the CPU's caches limit nothing."""
    factors, links = case.offsets().shape
    return FLOAT * case.tokens * case.chains * factors * links * case.head_channels if backend == "triton" else 0


def _wave(case: Case) -> int:
    """Tokens that are on their way through the CPU backend's chain at a time."""
    sequences = _CACHED // (FLOAT * (case.width + 2 * case.head_channels) * case.length)
    return case.length * max(1, min(case.batch * case.chains, sequences))


def _parameters(case: Case) -> int:
    factors, links = case.offsets().shape
    return int(case.chains * factors * (case.width * case.hidden + case.hidden + case.hidden * links + links))


def _check_backend(backend: str) -> str:
    if backend not in BACKENDS:
        raise ValueError(f"there is no cost model for backend {backend!r}; choose from {', '.join(BACKENDS)}")
    return backend
