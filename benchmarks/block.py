"""One chain, every implementation: forward and forward+backward."""

# No postponed annotations: the command line reads the fields' types.
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.settings import Settings
from paramixer.bench.case import Case
from paramixer.bench.comparison import compare_implementations
from paramixer.bench.implementations import check_names, default_names
from paramixer.bench.limits import measure_limits
from paramixer.bench.status import Notify


@dataclass(frozen=True, kw_only=True)
class BlockOptions(Case, Settings):
    """Time every implementation of the same chain, forward and forward+backward."""

    implementations: tuple[str, ...] = ()
    """Which implementations to compare; by default all that serve such a chain. Paramixer is always among them."""

    def __post_init__(self) -> None:
        Case.__post_init__(self)
        Settings.__post_init__(self)
        check_names(self.implementations)

    def case(self) -> Case:
        """Return the chain to measure."""
        return case_of(self, self.quick, shortest=64)


def case_of(options: Case, quick: bool, shortest: int) -> Case:
    """Return the options' fields of a case; for a quick run one short sequence."""
    case = Case(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Case)})
    return dataclasses.replace(case, batch=1, length=min(case.length, shortest)) if quick else case


def measure(options: BlockOptions, notify: Notify) -> dict[str, Any]:
    """Return the machine's limits and the compared implementations."""
    case = options.case()
    return compare_cases({"block": (case, options.implementations or default_names(case))}, options, notify)


def compare_cases(cases: Mapping[str, tuple[Case, Sequence[str]]], options: Settings, notify: Notify) -> dict[str, Any]:
    """Compare implementations on several cases; returns the machine's limits beside them."""
    limits = measure_limits(notify, options.quick)
    compared = {
        name: compare_implementations(
            case, names, limits=limits, rounds=options.turns, notify=notify, quick=options.quick
        )
        for name, (case, names) in cases.items()
    }
    return {"limits": dataclasses.asdict(limits), "cases": compared}
