"""Times that can be compared on a noisy machine: all runs take turns, and ratios are taken within a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paramixer.bench.case import Tensors
from paramixer.bench.device import synchronize
from paramixer.bench.implementations import Run
from paramixer.bench.status import Notify


@dataclass(frozen=True)
class Timing:
    """Seconds per run: the median of each round."""

    rounds: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median round."""
        return statistics.median(self.rounds)

    def ratio_to(self, other: Timing) -> float:
        """How many times as long as the other: the median over rounds, since noise hits both in a round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.rounds, other.rounds, strict=True))

    def document(self) -> dict[str, Any]:
        """The timing as a record holds it."""
        return {"seconds": self.seconds, "rounds": list(self.rounds)}


def time_in_turns(
    runs: Mapping[str, Callable[[], object]], rounds: int, notify: Notify, turn: float = 0.2
) -> dict[str, Timing]:
    """Time the runs in turns, after one warm-up each.

    Args:
        runs: what to time, by name.
        rounds: how many turns each gets.
        notify: called with a line of text before every run.
        turn: seconds for which a fast run is repeated in its turn; a slow one runs once. With a single round
            everything runs once.
    """
    for name, run in runs.items():
        notify(f"{name}: warming up")
        run()
        synchronize()
    medians: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        # Forward and back, so that no run always follows the same neighbor.
        for name in list(runs) if number % 2 == 0 else list(runs)[::-1]:
            notify(f"{name}: round {number + 1} of {rounds}")
            medians[name].append(_time_turn(runs[name], turn if rounds > 1 else 0))
    return {name: Timing(tuple(seconds)) for name, seconds in medians.items()}


def make_forward(run: Run, tensors: Tensors) -> Callable[[], object]:
    """Return the forward pass without a graph, although inputs and parameters require gradients."""

    def forward() -> None:
        with torch.no_grad():
            run(*tensors)

    return forward


def make_forward_backward(run: Run, tensors: Tensors, upstream: Tensor) -> Callable[[], object]:
    """Return the forward and the backward pass, to the gradients of inputs, values and all parameters."""

    def forward_backward() -> None:
        for tensor in tensors:
            tensor.grad = None
        torch.autograd.backward(run(*tensors), upstream)

    return forward_backward


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let torch use this many threads within the block; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _time_turn(run: Callable[[], object], turn: float) -> float:
    times: list[float] = []
    begin = time.perf_counter()
    while not times or time.perf_counter() - begin < turn:
        start = time.perf_counter()
        run()
        synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
