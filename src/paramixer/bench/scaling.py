"""How the time a token grows with the length of the sequence, against what the complexity allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paramixer.bench import cost, limits, verify
from paramixer.bench.case import Case
from paramixer.bench.progress import Say, within
from paramixer.bench.settings import Settings
from paramixer.bench.timing import Timing, inference, interleaved, training
from paramixer.bench.ways import engine
from paramixer.machine import serving_engine


@dataclass(frozen=True)
class Law:
    """How the work a token may grow with log2 N."""

    name: str
    power: int
    links: int | None

    def __call__(self, length: int) -> float:
        """Work a token, up to a factor."""
        return math.log2(length) ** self.power


LAWS = {"chord": Law("log^2 N", 2, None), "cdil": Law("log N", 1, 3)}


@dataclass(frozen=True, kw_only=True)
class ScalingOptions(Settings):
    """Time a token from short to very long sequences, CHORD and CDIL with three links."""

    shortest: int = 12
    """log2 of the shortest sequence."""
    longest: int = 18
    """log2 of the longest sequence; a batch holds as many tokens as one of these."""
    channels: int = 32
    """Width of values and link input."""
    hidden: int = 32
    """Width of the hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.shortest <= self.longest:
            raise ValueError(f"shortest={self.shortest}, longest={self.longest}; give 1 <= shortest <= longest")


def measure(options: ScalingOptions, say: Say) -> dict[str, Any]:
    """Times of the engine at every power of two, verified at each, and their growth against the law."""
    shortest, longest = (5, 7) if options.quick else (options.shortest, options.longest)
    found = limits.measure(say, options.quick)
    protocols = {}
    for protocol, law in LAWS.items():
        cases = [
            Case(
                batch=2 ** (longest - power),
                length=2**power,
                channels=options.channels,
                hidden=options.hidden,
                protocol="chord" if protocol == "chord" else "cdil",
                links=law.links,
            )
            for power in range(shortest, longest + 1)
        ]
        protocols[protocol] = _measure(cases, law, found, options.turns, within(say, protocol))
    return {"limits": {"flops": found.flops, "bandwidth": found.bandwidth}, "protocols": protocols}


def growth(lengths: list[int], seconds: list[float], law: Callable[[int], float]) -> float:
    """The most by which the times grow faster than the law, from the first length on; 1 where they do not."""
    return max(time / seconds[0] / (law(n) / law(lengths[0])) for n, time in zip(lengths, seconds, strict=True))


def fit(lengths: list[int], seconds: list[float], law: Callable[[int], float]) -> float:
    """The factor of the law that fits the times best, in the logarithm."""
    ratios = [math.log(time / law(n)) for n, time in zip(lengths, seconds, strict=True)]
    return math.exp(sum(ratios) / len(ratios))


def _measure(cases: list[Case], law: Law, found: limits.Limits, rounds: int, say: Say) -> dict[str, Any]:
    for case in cases:
        say(f"verifying N = {case.length}")
        why = _complaint(case)
        if why is not None:
            return {"law": law.name, "why": f"N = {case.length}: {why}"}
    # One length after the other would need less memory, but then noise would look like growth.
    forward: dict[str, Callable[[], object]] = {}
    both: dict[str, Callable[[], object]] = {}
    for case in cases:
        tensors, run = case.tensors(), engine(case)
        forward[f"N = {case.length}, forward"] = inference(run, tensors)
        both[f"N = {case.length}, both"] = training(run, tensors, case.upstream())
    timings = interleaved({**forward, **both}, rounds, say)
    lengths = [case.length for case in cases]
    return {
        "law": law.name,
        "why": None,
        "lengths": lengths,
        "batches": [case.batch for case in cases],
        "forward": _growth(cases, [timings[name] for name in forward], law),
        "both": _growth(cases, [timings[name] for name in both], law),
        "predicted": [_predicted(case, found) for case in cases],
    }


def _growth(cases: list[Case], timings: list[Timing], law: Law) -> dict[str, Any]:
    lengths = [case.length for case in cases]
    a_token = [timing.seconds / case.tokens for case, timing in zip(cases, timings, strict=True)]
    return {"seconds_a_token": a_token, "growth": growth(lengths, a_token, law), "fit": fit(lengths, a_token, law)}


def _predicted(case: Case, found: limits.Limits) -> float:
    name = serving_engine()
    return (cost.forward_seconds(case, name, found) + cost.backward_seconds(case, name, found)) / case.tokens


def _complaint(case: Case) -> str | None:
    """One sequence of the batch is checked; the others only repeat it, and the reference is slow."""
    one = Case(
        batch=1,
        length=case.length,
        channels=case.channels,
        hidden=case.hidden,
        protocol=case.protocol,
        links=case.links,
    )
    tensors = one.tensors()
    return verify.complaint(verify.errors(engine(one), one, tensors, verify.truth(one, tensors)))
