"""The machine's own limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from paramixer.bench.progress import Say
from paramixer.machine import last_cache_bytes

_TRIES = 10


@dataclass(frozen=True)
class Limits:
    """What the machine can do at best, in float32."""

    flops: float
    """Floating-point operations a second, as its best of ten large matrix products shows."""
    bandwidth: float
    """Bytes a second to and from memory, as its best copy or triad shows."""


# Of two cores with AVX2, for predictions where nothing was measured.
DEFAULT = Limits(flops=138e9, bandwidth=20e9)


def measure(say: Say, quick: bool = False) -> Limits:
    """The limits on the threads that torch has now; quick ones are no measurement."""
    say("GEMM peak")
    run, operations = product(quick)
    peak = operations / _best(run)
    say("memory bandwidth")
    # So far beyond the last cache that hardly anything of it is found there.
    count = 2**14 if quick else max(2**26, 2 * last_cache_bytes())
    target, first, second = (torch.ones(count) for _ in range(3))
    copy = 2 * 4 * count / _best(lambda: target.copy_(first))
    triad = 3 * 4 * count / _best(lambda: torch.add(first, second, alpha=3, out=target))
    return Limits(peak, max(copy, triad))


def product(quick: bool = False) -> tuple[Callable[[], object], int]:
    """A large matrix product to be timed, and its floating-point operations."""
    size = 128 if quick else 2048
    left, right, result = (torch.ones(size, size) for _ in range(3))
    return lambda: torch.mm(left, right, out=result), 2 * size**3


def _best(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
