"""How the time per token grows with the length of the sequence, against the complexity."""

# No postponed annotations: the command line reads the fields' types.
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.settings import Settings
from paramixer.bench import cost, verification
from paramixer.bench.case import Case
from paramixer.bench.device import measured_device
from paramixer.bench.implementations import build_paramixer
from paramixer.bench.limits import Limits, measure_limits
from paramixer.bench.status import Notify, add_prefix
from paramixer.bench.timing import Timing, make_forward, make_forward_backward, time_in_turns
from paramixer.machine import serving_backend


@dataclass(frozen=True)
class Law:
    """How the work per token may grow with log2 N."""

    name: str
    power: int
    links: int | None

    def __call__(self, length: int) -> float:
        """Work per token, up to a factor."""
        return math.log2(length) ** self.power


LAWS = {"chord": Law("log^2 N", 2, None), "cdil": Law("log N", 1, 3)}


@dataclass(frozen=True, kw_only=True)
class ScalingOptions(Settings):
    """Time per token from short to very long sequences, CHORD and CDIL with three links."""

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


def measure(options: ScalingOptions, notify: Notify) -> dict[str, Any]:
    """Return times at every power of two, verified at each, and their growth against the law."""
    shortest, longest = (5, 7) if options.quick else (options.shortest, options.longest)
    limits = measure_limits(notify, options.quick)
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
        protocols[protocol] = _measure(cases, law, limits, options.turns, add_prefix(notify, protocol))
    return {"limits": {"flops": limits.flops, "bandwidth": limits.bandwidth}, "protocols": protocols}


def growth(lengths: list[int], seconds: list[float], law: Callable[[int], float]) -> float:
    """The most by which the times grow faster than the law, from the first length on; 1 where they do not."""
    return max(time / seconds[0] / (law(n) / law(lengths[0])) for n, time in zip(lengths, seconds, strict=True))


def fit(lengths: list[int], seconds: list[float], law: Callable[[int], float]) -> float:
    """The factor of the law that fits the times best, in the logarithm."""
    ratios = [math.log(time / law(n)) for n, time in zip(lengths, seconds, strict=True)]
    return math.exp(sum(ratios) / len(ratios))


def _measure(cases: list[Case], law: Law, limits: Limits, rounds: int, notify: Notify) -> dict[str, Any]:
    for case in cases:
        notify(f"verifying N = {case.length}")
        why = _verify_one(case)
        if why is not None:
            return {"law": law.name, "why": f"N = {case.length}: {why}"}
    # One length after the other would need less memory, but then noise would look like growth.
    forward: dict[str, Callable[[], object]] = {}
    both: dict[str, Callable[[], object]] = {}
    for case in cases:
        tensors, run = case.tensors(), build_paramixer(case)
        forward[f"N = {case.length}, forward"] = make_forward(run, tensors)
        both[f"N = {case.length}, both"] = make_forward_backward(run, tensors, case.upstream())
    timings = time_in_turns({**forward, **both}, rounds, notify)
    lengths = [case.length for case in cases]
    return {
        "law": law.name,
        "why": None,
        "lengths": lengths,
        "batches": [case.batch for case in cases],
        "forward": _growth(cases, [timings[name] for name in forward], law),
        "both": _growth(cases, [timings[name] for name in both], law),
        "predicted": [_predict_seconds(case, limits) for case in cases],
    }


def _growth(cases: list[Case], timings: list[Timing], law: Law) -> dict[str, Any]:
    lengths = [case.length for case in cases]
    per_token = [timing.seconds / case.tokens for case, timing in zip(cases, timings, strict=True)]
    return {
        "seconds_a_token": per_token,
        "growth": growth(lengths, per_token, law),
        "fit": fit(lengths, per_token, law),
    }


def _predict_seconds(case: Case, limits: Limits) -> float:
    name = serving_backend(measured_device())
    return (cost.forward_seconds(case, name, limits) + cost.backward_seconds(case, name, limits)) / case.tokens


def _verify_one(case: Case) -> str | None:
    """Verify one sequence of the batch; the others only repeat it, and the reference is slow."""
    single = dataclasses.replace(case, batch=1)
    return verification.verify(build_paramixer(single), single)
