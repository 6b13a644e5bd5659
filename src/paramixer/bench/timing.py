"""Times that can be compared on a noisy machine: all ways take turns, and ratios are taken within a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paramixer.bench.case import Tensors
from paramixer.bench.progress import Say
from paramixer.bench.ways import Run


@dataclass(frozen=True)
class Timing:
    """Seconds a run: the median of each round."""

    rounds: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median round."""
        return statistics.median(self.rounds)

    def times(self, other: Timing) -> float:
        """How many times as long as the other: the median over rounds, since noise hits both in a round."""
        return statistics.median(own / its for own, its in zip(self.rounds, other.rounds, strict=True))

    def document(self) -> dict[str, Any]:
        """As it stands in a record."""
        return {"seconds": self.seconds, "rounds": list(self.rounds)}


def interleaved(
    runs: Mapping[str, Callable[[], object]], rounds: int, say: Say, turn: float = 0.2
) -> dict[str, Timing]:
    """Time the runs in turns, after one warm-up each.

    Args:
        runs: what to time, by name.
        rounds: how many turns each gets.
        say: told what is going on, between the runs.
        turn: seconds for which a fast run is repeated in its turn; a slow one runs once. A single round is only a try,
            in which everything runs once.
    """
    for name, run in runs.items():
        say(f"{name}: warming up")
        run()
    medians: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        # There and back, so that nobody always runs after the same neighbour.
        for name in list(runs) if number % 2 == 0 else list(runs)[::-1]:
            say(f"{name}: round {number + 1} of {rounds}")
            medians[name].append(_turn(runs[name], turn if rounds > 1 else 0))
    return {name: Timing(tuple(found)) for name, found in medians.items()}


def inference(run: Run, tensors: Tensors) -> Callable[[], object]:
    """The forward pass without a graph, although inputs and parameters require gradients."""

    def forward() -> None:
        with torch.no_grad():
            run(*tensors)

    return forward


def training(run: Run, tensors: Tensors, upstream: Tensor) -> Callable[[], object]:
    """The forward and the backward pass, to the gradients of inputs, values and all parameters."""

    def both() -> None:
        for tensor in tensors:
            tensor.grad = None
        torch.autograd.backward(run(*tensors), upstream)

    return both


def _turn(run: Callable[[], object], turn: float) -> float:
    times: list[float] = []
    begin = time.perf_counter()
    while not times or time.perf_counter() - begin < turn:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
