"""What a chain costs before anybody runs it: operations, bytes, time and memory.

Operations are exact and those of ``paramix`` alone. A product of a row of n numbers costs 2 n: a multiplication and an
addition each. What a backward pass recomputes is no useful work and is counted apart. Times and memory are predictions;
the benchmarks put measured ones beside them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from paramixer.bench.case import Case
from paramixer.bench.limits import Limits
from paramixer.ops.chain import kept_factors

FLOAT = 4
ENGINES = ("cpu", "reference")

# Arithmetic of one exact GELU in vector code: a range reduction, two polynomials and a division.
_GELU = 30
# Share of the slower limit, arithmetic or memory, that an engine comes to in practice, forward and backward.
_EFFICIENCY = {"cpu": (0.75, 0.62), "reference": (0.7, 0.7)}
# As many sequences go through the CPU engine's chain together as fit into the outer caches, and at least one.
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
    each = case.tokens * factors
    return Operations(
        products=each * 2 * (case.width * case.hidden + case.hidden * links + links * case.channels),
        additions=each * (case.hidden + links + case.channels),
        gelus=each * case.hidden,
        recomputed=0,
    )


def backward_operations(case: Case, keep: int = 1) -> Operations:
    """Operations of a backward pass: each product has two gradients. The MLPs are recomputed, whatever is kept."""
    factors, links = case.offsets().shape
    forward = forward_operations(case)
    again = factors - 1 - kept_factors(factors, keep)
    mlp = 2 * case.hidden * (case.width + links)
    return Operations(
        products=2 * forward.products,
        additions=2 * forward.additions,
        gelus=forward.gelus,
        recomputed=case.tokens * factors * mlp + forward.products // factors * again,
    )


def forward_bytes(case: Case, engine: str) -> int:
    """Bytes to and from memory of a forward pass, if caches hold a tile and its neighbours but no whole tensor."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.channels
    each = {
        "cpu": width + 2 * channels,
        "reference": width + 6 * hidden + 3 * links + links * (3 * channels + 1) + 3 * channels,
    }[_known(engine)]
    return FLOAT * case.tokens * factors * each


def backward_bytes(case: Case, engine: str, keep: int = 1) -> int:
    """The same of a backward pass, recomputed factors included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.channels
    each = {
        "cpu": 3 * width + 4 * channels + 2 * links,
        "reference": 6 * width + 14 * hidden + 5 * links + links * (5 * channels + 2) + 3 * channels,
    }[_known(engine)]
    again = factors - 1 - kept_factors(factors, keep)
    return FLOAT * case.tokens * factors * each + forward_bytes(case, engine) // factors * again


def forward_seconds(case: Case, engine: str, limits: Limits) -> float:
    """Predicted time of a forward pass."""
    return _seconds(forward_operations(case), forward_bytes(case, engine), _EFFICIENCY[_known(engine)][0], limits)


def backward_seconds(case: Case, engine: str, limits: Limits, keep: int = 1) -> float:
    """Predicted time of a backward pass."""
    operations, moved = backward_operations(case, keep), backward_bytes(case, engine, keep)
    return _seconds(operations, moved, _EFFICIENCY[_known(engine)][1], limits)


def forward_memory(case: Case, engine: str) -> int:
    """Predicted peak of a forward pass without a graph: bytes beyond what the process had, its arguments included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.channels
    # Arguments and output; then the values on their way from factor to factor.
    each, passing = width + 2 * channels, 0
    if _known(engine) == "cpu":
        passing = channels if factors > 1 else 0
    else:
        each += channels + max(2 * hidden, hidden + links, links + 2 * channels)
    return FLOAT * (case.tokens * each + _wave(case) * passing + _parameters(case))


def training_memory(case: Case, engine: str, keep: int = 1) -> int:
    """Predicted peak of a forward and a backward pass: bytes beyond what the process had, all gradients included."""
    factors, links = case.offsets().shape
    width, hidden, channels = case.width, case.hidden, case.channels
    # Arguments, output and its gradient, gradients of inputs and values; what was kept.
    each = 2 * width + 4 * channels + channels * kept_factors(factors, keep)
    # One segment, recomputed; one factor's weights; the gradient on its way from factor to factor.
    passing = channels * (min(keep, factors) - 1) + links + (channels if factors > 1 else 0)
    if _known(engine) == "reference":
        each += passing + links + channels + 4 * hidden
        passing = 0
    return FLOAT * (case.tokens * each + _wave(case) * passing + 2 * _parameters(case))


def choose_keep(case: Case, engine: str, budget: int) -> int:
    """The smallest keep, and so the fastest, whose training step is predicted to stay within so many bytes."""
    factors = case.offsets().shape[0]
    predicted = {keep: training_memory(case, engine, keep) for keep in range(1, factors + 1)}
    for keep, needed in predicted.items():
        if needed <= budget:
            return keep
    least = min(predicted, key=lambda keep: predicted[keep])
    raise ValueError(
        f"a training step of {case} needs {predicted[least] / 1e9:.2f} GB even with keep = {least}, "
        f"more than the {budget / 1e9:.2f} GB allowed; use a smaller batch"
    )


def document(case: Case, engine: str, limits: Limits, keep: int = 1) -> dict[str, Any]:
    """All of it, as it stands in a record."""
    return {
        "case": str(case),
        "engine": engine,
        "keep": keep,
        "parameters": _parameters(case),
        "forward": {
            **asdict(forward_operations(case)),
            "bytes": forward_bytes(case, engine),
            "seconds": forward_seconds(case, engine, limits),
            "memory": forward_memory(case, engine),
        },
        "backward": {
            **asdict(backward_operations(case, keep)),
            "bytes": backward_bytes(case, engine, keep),
            "seconds": backward_seconds(case, engine, limits, keep),
        },
        "training_memory": training_memory(case, engine, keep),
    }


def _seconds(operations: Operations, moved: int, efficiency: float, limits: Limits) -> float:
    work = operations.products + operations.additions + _GELU * operations.gelus + operations.recomputed
    return max(work / limits.flops, moved / limits.bandwidth) / efficiency


def _wave(case: Case) -> int:
    """Tokens that are on their way through the CPU engine's chain at a time."""
    sequences = _CACHED // (FLOAT * (case.width + 2 * case.channels) * case.length)
    return case.length * max(1, min(case.batch, sequences))


def _parameters(case: Case) -> int:
    factors, links = case.offsets().shape
    return int(factors * (case.width * case.hidden + case.hidden + case.hidden * links + links))


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise ValueError(f"there is no cost model for engine {engine!r}; choose from {', '.join(ENGINES)}")
    return engine
