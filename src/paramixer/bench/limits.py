"""The machine's own limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from paramixer.bench.device import measured_device, synchronize
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
    cache: float | None = None
    """Bytes per second from the cache that holds a sequence's values; None if it limits nothing."""


# Two cores with AVX2, for predictions without a measurement.
DEFAULT = Limits(flops=138e9, bandwidth=20e9)
# GPUs, for predictions: float32 without tensor cores and memory from the makers' data sheets (SXM, 40 and 80 GB); the
# second-level cache at 5120 bytes per clock, which NVIDIA states for the A100 and is taken for the H100, too.
DEVICES = {
    "a100": Limits(flops=19.5e12, bandwidth=1.555e12, cache=7.2e12),
    "h100": Limits(flops=66.9e12, bandwidth=3.35e12, cache=9.0e12),
}


def measure_limits(notify: Notify, quick: bool = False) -> Limits:
    """Measure the limits with torch's current number of threads; quick runs measure nothing."""
    notify("GEMM peak")
    run, operations = make_matrix_product(quick)
    peak = operations / _best_seconds(run)
    notify("memory bandwidth")
    # So large that the last cache holds hardly anything of it.
    count = 2**14 if quick else max(2**28 if measured_device().type == "cuda" else 2**26, 2 * last_cache_bytes())
    target, first, second = (torch.ones(count, device=measured_device()) for _ in range(3))
    copy = 2 * 4 * count / _best_seconds(lambda: target.copy_(first))
    triad = 3 * 4 * count / _best_seconds(lambda: torch.add(first, second, alpha=3, out=target))
    return Limits(peak, max(copy, triad))


def make_matrix_product(quick: bool = False) -> tuple[Callable[[], object], int]:
    """Return a large matrix product to be timed, and its floating-point operations."""
    size = 128 if quick else 2048
    if measured_device().type == "cuda" and not quick:
        # Large enough to fill every multiprocessor.
        size = 8192
    left, right, result = (torch.ones(size, size, device=measured_device()) for _ in range(3))
    return lambda: torch.mm(left, right, out=result), 2 * size**3


def _best_seconds(run: Callable[[], object]) -> float:
    run()
    synchronize()
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        run()
        synchronize()
        times.append(time.perf_counter() - start)
    return min(times)
