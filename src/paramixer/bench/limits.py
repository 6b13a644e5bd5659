"""The machine's own limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from paramixer.bench.status import Notify
from paramixer.machine import last_cache_bytes

_REPEATS = 10


@dataclass(frozen=True)
class Limits:
    """What the machine can do at best, in float32."""

    flops: float
    """Floating-point operations per second, from the best of ten large matrix products."""
    bandwidth: float
    """Bytes per second to and from memory, from the best copy or triad."""


# Two cores with AVX2, for predictions without a measurement.
DEFAULT = Limits(flops=138e9, bandwidth=20e9)


def measure_limits(notify: Notify, quick: bool = False) -> Limits:
    """Measure the limits with torch's current number of threads; quick runs measure nothing."""
    notify("GEMM peak")
    run, operations = make_matrix_product(quick)
    peak = operations / _best_seconds(run)
    notify("memory bandwidth")
    # So large that the last cache holds hardly anything of it.
    count = 2**14 if quick else max(2**26, 2 * last_cache_bytes())
    target, first, second = (torch.ones(count) for _ in range(3))
    copy = 2 * 4 * count / _best_seconds(lambda: target.copy_(first))
    triad = 3 * 4 * count / _best_seconds(lambda: torch.add(first, second, alpha=3, out=target))
    return Limits(peak, max(copy, triad))


def make_matrix_product(quick: bool = False) -> tuple[Callable[[], object], int]:
    """Return a large matrix product to be timed, and its floating-point operations."""
    size = 128 if quick else 2048
    left, right, result = (torch.ones(size, size) for _ in range(3))
    return lambda: torch.mm(left, right, out=result), 2 * size**3


def _best_seconds(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
