"""All implementations of one chain, verified and then timed side by side in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paramixer.bench import cost, verification
from paramixer.bench.case import Case, Tensors
from paramixer.bench.device import measured_device
from paramixer.bench.implementations import IMPLEMENTATIONS, PARAMIXER, Run, check_names
from paramixer.bench.limits import Limits, make_matrix_product
from paramixer.bench.status import Notify, add_prefix, ignore
from paramixer.bench.timing import make_forward, make_forward_backward, time_in_turns
from paramixer.machine import serving_backend

_PRODUCT = "a large matrix product"


def compare_implementations(
    case: Case,
    names: Sequence[str] = tuple(IMPLEMENTATIONS),
    *,
    limits: Limits,
    rounds: int = 5,
    notify: Notify = ignore,
    quick: bool = False,
) -> dict[str, Any]:
    """Verify the implementations, time those that are right, and relate them to paramixer and to the limits.

    Args:
        case: the chain.
        names: of ``IMPLEMENTATIONS``; paramixer is always among them.
        limits: the machine's, from ``measure_limits``.
        rounds: turns that each gets.
        notify: called with a line of text at every stage.
        quick: whether the yardstick is a small matrix product, so that the times mean nothing.
    """
    check_names(names)
    tensors = case.tensors()
    results, runs = _verify_all(case, tensors, dict.fromkeys([PARAMIXER, *names]), add_prefix(notify, str(case)))
    # The yardstick takes turns with the runs: on a shared machine a peak measured once may be that of another minute.
    product, product_flops = make_matrix_product(quick)
    forward_runs = {name: make_forward(run, tensors) for name, run in runs.items()}
    forward = time_in_turns({_PRODUCT: product, **forward_runs}, rounds, notify)
    upstream = case.upstream()
    both_runs = {name: make_forward_backward(run, tensors, upstream) for name, run in runs.items()}
    both = time_in_turns({_PRODUCT: product, **both_runs}, rounds, notify)
    useful = {"forward": cost.forward_operations(case).products}
    useful["both"] = useful["forward"] + cost.backward_operations(case).products
    for name in runs:
        for phase, timings in (("forward", forward), ("both", both)):
            share = useful[phase] / product_flops * timings[_PRODUCT].ratio_to(timings[name])
            results[name][phase] = {
                **timings[name].document(),
                # Without a right result of paramixer there is nothing to compare with.
                "times_engine": timings[name].ratio_to(timings[PARAMIXER]) if PARAMIXER in runs else None,
                "share_of_peak": share if IMPLEMENTATIONS[name].same_function else None,
            }
    return {
        "case": str(case),
        "flops": useful,
        "predicted": cost.describe(case, serving_backend(measured_device()), limits),
        "products": {"forward": forward[_PRODUCT].document(), "both": both[_PRODUCT].document()},
        # The key is part of the record format.
        "ways": results,
    }


def _verify_all(
    case: Case, tensors: Tensors, names: dict[str, None], notify: Notify
) -> tuple[dict[str, dict[str, Any]], dict[str, Run]]:
    """Return what is known of each implementation before timing, and the functions of those that may be timed."""
    notify("the reference, in float64")
    expected = verification.compute_expected(case, tensors)
    results: dict[str, dict[str, Any]] = {}
    runs: dict[str, Run] = {}
    for name in names:
        implementation = IMPLEMENTATIONS[name]
        why = implementation.reason_to_skip(case)
        errors: dict[str, float] = {}
        if why is None:
            notify(f"verifying {name}")
            try:
                run = implementation.build(case)
                if implementation.same_function:
                    errors = verification.relative_errors(run, case, tensors, expected)
                    why = verification.describe_mismatch(errors)
            except RuntimeError as error:
                # No compiler, or not enough memory: the table says so instead of a speed.
                why = f"failed: {str(error).strip().splitlines()[0]}"
        if why is None:
            runs[name] = run
        results[name] = {"same": implementation.same_function, "errors": errors, "why": why}
    return results, runs
