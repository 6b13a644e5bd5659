"""All ways of computing one chain, verified and then timed side by side in one process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paramixer.bench import cost, limits, verify
from paramixer.bench.case import Case, Tensors
from paramixer.bench.limits import Limits
from paramixer.bench.progress import Say, within
from paramixer.bench.settings import Settings
from paramixer.bench.timing import inference, interleaved, training
from paramixer.bench.ways import ENGINE, WAYS, Run, Way
from paramixer.machine import serving_engine

_PRODUCT = "a large matrix product"


@dataclass(frozen=True, kw_only=True)
class BlockOptions(Case, Settings):
    """Time every way of computing the same chain, forward and forward+backward."""

    ways: tuple[str, ...] = tuple(WAYS)
    """Which ways to compare; this library's engine is always among them."""

    def __post_init__(self) -> None:
        Case.__post_init__(self)
        Settings.__post_init__(self)
        for name in self.ways:
            if name not in WAYS:
                raise ValueError(f"there is no way {name!r}; choose from {', '.join(WAYS)}")


def measure(options: BlockOptions, say: Say) -> dict[str, Any]:
    """The machine's limits and the compared ways."""
    case = Case(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Case)})
    if options.quick:
        case = dataclasses.replace(case, batch=1, length=min(case.length, 64))
    return compare_all({"block": (case, options.ways)}, options, say)


def compare_all(cases: Mapping[str, tuple[Case, Sequence[str]]], options: Settings, say: Say) -> dict[str, Any]:
    """Several cases, and the machine's limits."""
    found = limits.measure(say, options.quick)
    compared = {
        name: compare(case, ways, found, options.turns, say, options.quick) for name, (case, ways) in cases.items()
    }
    return {"limits": dataclasses.asdict(found), "cases": compared}


def compare(
    case: Case, names: Sequence[str], found: Limits, rounds: int, say: Say, quick: bool = False
) -> dict[str, Any]:
    """Verify the ways, time those that are right, and say how they relate to the engine and to the limits."""
    tensors = case.tensors()
    verdicts, runs = _verified(case, tensors, dict.fromkeys([ENGINE, *names]), within(say, str(case)))
    # The yardstick takes turns with the ways: on a shared machine a peak measured once may be that of another minute.
    product, product_flops = limits.product(quick)
    forward = interleaved(
        {_PRODUCT: product, **{name: inference(run, tensors) for name, run in runs.items()}}, rounds, say
    )
    upstream = case.upstream()
    both = interleaved(
        {_PRODUCT: product, **{name: training(run, tensors, upstream) for name, run in runs.items()}}, rounds, say
    )
    useful = {"forward": cost.forward_operations(case).products}
    useful["both"] = useful["forward"] + cost.backward_operations(case).products
    for name in runs:
        for phase, timings in (("forward", forward), ("both", both)):
            verdicts[name][phase] = {
                **timings[name].document(),
                # Without a right result of the engine there is nothing to compare with.
                "times_engine": timings[name].times(timings[ENGINE]) if ENGINE in runs else None,
                "share_of_peak": useful[phase] / product_flops * timings[_PRODUCT].times(timings[name])
                if WAYS[name].same
                else None,
            }
    return {
        "case": str(case),
        "flops": useful,
        "predicted": cost.document(case, serving_engine(), found),
        "products": {"forward": forward[_PRODUCT].document(), "both": both[_PRODUCT].document()},
        "ways": verdicts,
    }


def _verified(
    case: Case, tensors: Tensors, names: dict[str, None], say: Say
) -> tuple[dict[str, dict[str, Any]], dict[str, Run]]:
    """What is known of each way before any timing, and the functions of those that may be timed."""
    say("the reference, in float64")
    expected = verify.truth(case, tensors)
    verdicts: dict[str, dict[str, Any]] = {}
    runs: dict[str, Run] = {}
    for name in names:
        way = WAYS[name]
        why = way.declines(case)
        found: dict[str, float] = {}
        if why is None:
            say(f"verifying {name}")
            try:
                run = way.prepare(case)
                found, why = _checked(way, run, case, tensors, expected)
            except RuntimeError as error:
                # A compiler that is not there, or memory that is not: the table says so instead of a speed.
                why = f"failed: {str(error).strip().splitlines()[0]}"
        if why is None:
            runs[name] = run
        verdicts[name] = {"same": way.same, "errors": found, "why": why}
    return verdicts, runs


def _checked(
    way: Way, run: Run, case: Case, tensors: Tensors, expected: verify.Truth
) -> tuple[dict[str, float], str | None]:
    if not way.same:
        return {}, None
    found = verify.errors(run, case, tensors, expected)
    return found, verify.complaint(found)
