"""The numbers that the CPU backend should reach, as data, and one run that measures all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from benchmarks import block, memory, scaling, step
from benchmarks.settings import Settings
from paramixer.bench.case import Case
from paramixer.bench.device import measured_device
from paramixer.bench.implementations import build_paramixer
from paramixer.bench.status import Notify
from paramixer.bench.timing import make_forward, make_forward_backward, time_in_turns, use_threads
from paramixer.bench.verification import verify
from paramixer.ops import paramix

Measured = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A number to reach."""

    what: str
    """What is measured, against what, and on which case."""
    bound: float
    """The number to reach, in the unit."""
    sense: Literal["at least", "at most"] = "at least"
    """On which side of the bound it should be."""
    unit: Literal["x", "%", "GB"] = "x"
    """How the number is read."""
    read: Callable[[Measured], float | None]
    """Reads it from the measured numbers; None if it was not measured."""

    def is_reached(self, number: float) -> bool:
        """Whether this number is on the right side of the bound."""
        return number >= self.bound if self.sense == "at least" else number <= self.bound


@dataclass(frozen=True, kw_only=True)
class TargetsOptions(Settings):
    """Measure every number that the CPU backend should reach, in one run."""

    threads: int | None = 2
    """Threads for everything; the targets are meant for two."""


# By name: the chain, and the implementations that are compared with paramixer on it.
CASES: dict[str, tuple[Case, tuple[str, ...]]] = {
    "long": (Case(), ("rolls", "scatter", "softmax")),
    "long, hidden 128": (Case(hidden=128), ()),
    "middle": (Case(length=4096), ("compiled rolls",)),
    "short, 8": (Case(batch=8, length=1024), ("rolls",)),
    "short, 4": (Case(batch=4, length=1024), ("compiled rolls", "softmax")),
    "image": (Case(batch=64, length=1024, protocol="cdil", links=3), ("rolls",)),
    "documents": (Case(batch=1, channels=100, hidden=128), ("rolls",)),
    "heads": (
        Case(batch=16, length=4096, protocol="cdil", links=9, heads=4, channels=64, inputs=64, hidden=16),
        ("rolls", "head calls"),
    ),
}
_PADDED = Case(batch=16)
_SINGLE = Case(batch=1)


def _times(case: str, name: str) -> Callable[[Measured], float | None]:
    return lambda measured: _look_up(measured, "cases", case, "ways", name, "both", "times_engine")


def _share(case: str, phase: str) -> Callable[[Measured], float | None]:
    return lambda measured: _percent(_look_up(measured, "cases", case, "ways", "paramixer", phase, "share_of_peak"))


def _at(*path: str) -> Callable[[Measured], float | None]:
    return lambda measured: _look_up(measured, *path)


TARGETS: tuple[Target, ...] = (
    Target(
        what="forward+backward against the authors' gather-scatter, 2 x 16384 (aim: 30x)",
        bound=18,
        read=_times("long", "scatter"),
    ),
    Target(what="against PyTorch rolls, 2 x 16384", bound=5, read=_times("long", "rolls")),
    Target(what="against PyTorch rolls, 8 x 1024", bound=5, read=_times("short, 8", "rolls")),
    Target(what="against torch.compile of the rolls, 2 x 4096", bound=4, read=_times("middle", "compiled rolls")),
    Target(what="against torch.compile of the rolls, 4 x 1024", bound=1.8, read=_times("short, 4", "compiled rolls")),
    Target(what="against SDPA, 2 x 16384", bound=18, read=_times("long", "softmax")),
    Target(what="against SDPA, 4 x 1024", bound=2, read=_times("short, 4", "softmax")),
    Target(what="share of the GEMM peak, 2 x 16384, forward", bound=55, unit="%", read=_share("long", "forward")),
    Target(what="share of the GEMM peak, 2 x 16384, forward+backward", bound=40, unit="%", read=_share("long", "both")),
    Target(what="the same with hidden = 128, forward", bound=60, unit="%", read=_share("long, hidden 128", "forward")),
    Target(
        what="the same with hidden = 128, forward+backward",
        bound=45,
        unit="%",
        read=_share("long, hidden 128", "both"),
    ),
    Target(what="CDIL K = 3, 64 x 1024 (Image), against PyTorch rolls", bound=4, read=_times("image", "rolls")),
    Target(
        what="channels = 100, hidden = 128, 1 x 16384 (documents), against PyTorch rolls",
        bound=3,
        read=_times("documents", "rolls"),
    ),
    Target(what="batch of 1, N = 16384: two threads against one", bound=1.7, read=_at("two_threads", "faster")),
    Target(
        what="16 sequences padded to 16384, mean length 4096: with `lengths` against without",
        bound=3,
        read=_at("lengths", "faster"),
    ),
    Target(
        what="training step of the Image preset: share outside `paramix`",
        bound=20,
        sense="at most",
        unit="%",
        read=lambda measured: _percent(_look_up(measured, "presets", "image", "outside_paramix")),
    ),
    Target(
        what="training step of a network at N = 2^20, batch 1: peak resident memory",
        bound=6,
        sense="at most",
        unit="GB",
        read=lambda measured: _gigabytes(_look_up(measured, "long", "training", "peak")),
    ),
    Target(
        what="forward pass of a network at N = 2^20, batch 1: peak resident memory",
        bound=1.5,
        sense="at most",
        unit="GB",
        read=lambda measured: _gigabytes(_look_up(measured, "long", "forward", "peak")),
    ),
    Target(
        what="time per token from N = 2^12 to 2^18, CHORD: growth beyond log^2 N",
        bound=1.3,
        sense="at most",
        read=_at("protocols", "chord", "both", "growth"),
    ),
    Target(
        what="time per token from N = 2^12 to 2^18, CDIL K = 3: growth beyond log N",
        bound=1.3,
        sense="at most",
        read=_at("protocols", "cdil", "both", "growth"),
    ),
    Target(
        what="4 heads of 16 channels, inputs and hidden 16, CDIL K = 9, 16 x 4096, against PyTorch rolls",
        bound=5,
        read=_times("heads", "rolls"),
    ),
    Target(what="the same heads against one call per head", bound=1.5, read=_times("heads", "head calls")),
    Target(
        what="the same heads: share of the GEMM peak, forward+backward",
        bound=30,
        unit="%",
        read=_share("heads", "both"),
    ),
)


def measure(options: TargetsOptions, notify: Notify) -> Measured:
    """Return everything that the targets read, and the targets beside their bounds."""
    cases = {name: (_sized(case, options), names) for name, (case, names) in CASES.items()}
    measured: Measured = block.compare_cases(cases, options, notify)
    if options.device == "cpu":
        measured["two_threads"] = compare_threads(_sized(_SINGLE, options), options.turns, notify)
    measured["lengths"] = compare_lengths(_sized(_PADDED, options), options.turns, notify)
    measured |= step.measure(
        step.StepOptions(presets=("image",), quick=options.quick, rounds=options.rounds, device=options.device), notify
    )
    growth = scaling.measure(
        scaling.ScalingOptions(quick=options.quick, rounds=options.rounds, device=options.device), notify
    )
    measured["protocols"] = growth["protocols"]
    measured["long"] = memory.measure_network(options, 6.0, notify)
    measured["figures"] = [_document(target, measured, options.quick) for target in TARGETS]
    return measured


def compare_threads(case: Case, rounds: int, notify: Notify) -> Measured:
    """Time forward and backward of one sequence on one and on two threads."""
    tensors, upstream = case.tensors(), case.upstream()
    run = build_paramixer(case)
    why = verify(run, case, tensors)
    if why is not None:
        return {"case": str(case), "why": why}
    both = make_forward_backward(run, tensors, upstream)

    def with_threads(count: int) -> Callable[[], object]:
        def run_both() -> None:
            # Not restored after each run: within a turn the threads exist already, as they do in a training loop.
            torch.set_num_threads(count)
            both()

        return run_both

    with use_threads(2):
        timings = time_in_turns({"one thread": with_threads(1), "two threads": with_threads(2)}, rounds, notify)
    return {
        "case": str(case),
        "why": None,
        "one": timings["one thread"].document(),
        "two": timings["two threads"].document(),
        "faster": timings["one thread"].ratio_to(timings["two threads"]),
    }


def compare_lengths(case: Case, rounds: int, notify: Notify) -> Measured:
    """Time sequences of 1/32 to 15/32 of the length, a quarter on average, with ``lengths`` and without."""
    lengths = torch.linspace(1 / 32, 15 / 32, case.batch).mul(case.length).round().to(measured_device(), torch.int64)
    tensors, upstream, offsets = case.tensors(), case.upstream(), case.offsets()

    def short(*arguments: torch.Tensor) -> torch.Tensor:
        inputs, values, w1, b1, w2, b2 = arguments
        return paramix(inputs, values, w1, b1, w2, b2, offsets, lengths=lengths)

    why = verify(short, case, tensors, lengths)
    if why is not None:
        return {"case": str(case), "why": why}
    full = build_paramixer(case)
    runs = {
        "with lengths": make_forward_backward(short, tensors, upstream),
        "without": make_forward_backward(full, tensors, upstream),
    }
    timings = time_in_turns(runs, rounds, notify)
    forward = {"with lengths": make_forward(short, tensors), "without": make_forward(full, tensors)}
    passes = time_in_turns(forward, rounds, notify)
    return {
        "case": str(case),
        "why": None,
        "lengths": lengths.tolist(),
        "with": timings["with lengths"].document(),
        "without": timings["without"].document(),
        "faster": timings["without"].ratio_to(timings["with lengths"]),
        "faster_forward": passes["without"].ratio_to(passes["with lengths"]),
    }


def _document(target: Target, measured: Measured, quick: bool) -> Measured:
    number = target.read(measured)
    return {
        "what": target.what,
        "sense": target.sense,
        "bound": target.bound,
        "unit": target.unit,
        "measured": number,
        # At toy sizes nothing is reached or missed.
        "reached": None if number is None or quick else target.is_reached(number),
    }


def _sized(case: Case, options: Settings) -> Case:
    return dataclasses.replace(case, batch=min(case.batch, 4), length=64) if options.quick else case


def _look_up(measured: Any, *path: str) -> float | None:
    for name in path:
        if not isinstance(measured, dict) or measured.get(name) is None:
            return None
        measured = measured[name]
    return float(measured)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _gigabytes(count: float | None) -> float | None:
    return None if count is None else count / 1e9
