"""The figures that the engine is to reach, as data, and one run that measures all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from paramixer.bench import block, memory, scaling, step, verify
from paramixer.bench.case import Case
from paramixer.bench.progress import Say
from paramixer.bench.settings import Settings, threads
from paramixer.bench.timing import inference, interleaved, training
from paramixer.bench.ways import engine
from paramixer.ops import paramix

Measured = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number to reach."""

    what: str
    """What is measured, against what, and where."""
    bound: float
    """The number to reach, in the unit."""
    sense: Literal["at least", "at most"] = "at least"
    """On which side of the bound it should be."""
    unit: Literal["x", "%", "GB"] = "x"
    """How the number is read."""
    read: Callable[[Measured], float | None]
    """Finds it among the measured numbers; None where it was not measured."""

    def reached(self, found: float) -> bool:
        """Whether this number is on the right side."""
        return found >= self.bound if self.sense == "at least" else found <= self.bound


@dataclass(frozen=True, kw_only=True)
class FiguresOptions(Settings):
    """Measure every figure that the engine is to reach, in one run."""

    threads: int | None = 2
    """Threads for everything; the figures are meant for two."""


# By name: the chain, and the ways that are compared with the engine on it.
CASES: dict[str, tuple[Case, tuple[str, ...]]] = {
    "long": (Case(), ("rolls", "scatter", "softmax")),
    "long, hidden 128": (Case(hidden=128), ()),
    "middle": (Case(length=4096), ("compiled rolls",)),
    "short, 8": (Case(batch=8, length=1024), ("rolls",)),
    "short, 4": (Case(batch=4, length=1024), ("compiled rolls", "softmax")),
    "image": (Case(batch=64, length=1024, protocol="cdil", links=3), ("rolls",)),
    "documents": (Case(batch=1, channels=100, hidden=128), ("rolls",)),
}
_PADDED = Case(batch=16)
_SINGLE = Case(batch=1)


def _times(case: str, way: str) -> Callable[[Measured], float | None]:
    return lambda measured: _dig(measured, "cases", case, "ways", way, "both", "times_engine")


def _share(case: str, phase: str) -> Callable[[Measured], float | None]:
    return lambda measured: _percent(_dig(measured, "cases", case, "ways", "paramixer", phase, "share_of_peak"))


def _at(*path: str) -> Callable[[Measured], float | None]:
    return lambda measured: _dig(measured, *path)


FIGURES: tuple[Figure, ...] = (
    Figure(
        what="forward+backward against the authors' gather-scatter, 2 x 16384 (aim: 30x)",
        bound=18,
        read=_times("long", "scatter"),
    ),
    Figure(what="against PyTorch rolls, 2 x 16384", bound=5, read=_times("long", "rolls")),
    Figure(what="against PyTorch rolls, 8 x 1024", bound=5, read=_times("short, 8", "rolls")),
    Figure(what="against torch.compile of the rolls, 2 x 4096", bound=4, read=_times("middle", "compiled rolls")),
    Figure(what="against torch.compile of the rolls, 4 x 1024", bound=1.8, read=_times("short, 4", "compiled rolls")),
    Figure(what="against SDPA, 2 x 16384", bound=18, read=_times("long", "softmax")),
    Figure(what="against SDPA, 4 x 1024", bound=2, read=_times("short, 4", "softmax")),
    Figure(what="share of the GEMM peak, 2 x 16384, forward", bound=55, unit="%", read=_share("long", "forward")),
    Figure(what="share of the GEMM peak, 2 x 16384, forward+backward", bound=40, unit="%", read=_share("long", "both")),
    Figure(what="the same with hidden = 128, forward", bound=60, unit="%", read=_share("long, hidden 128", "forward")),
    Figure(
        what="the same with hidden = 128, forward+backward",
        bound=45,
        unit="%",
        read=_share("long, hidden 128", "both"),
    ),
    Figure(what="CDIL K = 3, 64 x 1024 (Image), against PyTorch rolls", bound=4, read=_times("image", "rolls")),
    Figure(
        what="channels = 100, hidden = 128, 1 x 16384 (documents), against PyTorch rolls",
        bound=3,
        read=_times("documents", "rolls"),
    ),
    Figure(what="batch of 1, N = 16384: two threads against one", bound=1.7, read=_at("two_threads", "faster")),
    Figure(
        what="16 sequences padded to 16384, mean length 4096: with `lengths` against without",
        bound=3,
        read=_at("lengths", "faster"),
    ),
    Figure(
        what="training step of the Image preset: share outside `paramix`",
        bound=20,
        sense="at most",
        unit="%",
        read=lambda measured: _percent(_dig(measured, "presets", "image", "outside_paramix")),
    ),
    Figure(
        what="training step of a network at N = 2^20, batch 1: peak resident memory",
        bound=6,
        sense="at most",
        unit="GB",
        read=lambda measured: _gigabytes(_dig(measured, "long", "training", "peak")),
    ),
    Figure(
        what="forward pass of a network at N = 2^20, batch 1: peak resident memory",
        bound=1.5,
        sense="at most",
        unit="GB",
        read=lambda measured: _gigabytes(_dig(measured, "long", "forward", "peak")),
    ),
    Figure(
        what="time a token from N = 2^12 to 2^18, CHORD: growth beyond log^2 N",
        bound=1.3,
        sense="at most",
        read=_at("protocols", "chord", "both", "growth"),
    ),
    Figure(
        what="time a token from N = 2^12 to 2^18, CDIL K = 3: growth beyond log N",
        bound=1.3,
        sense="at most",
        read=_at("protocols", "cdil", "both", "growth"),
    ),
)


def measure(options: FiguresOptions, say: Say) -> Measured:
    """Everything that the figures read, and the figures themselves beside their bounds."""
    cases = {name: (_sized(case, options), ways) for name, (case, ways) in CASES.items()}
    measured: Measured = block.compare_all(cases, options, say)
    measured["two_threads"] = two_threads(_sized(_SINGLE, options), options.turns, say)
    measured["lengths"] = given_lengths(_sized(_PADDED, options), options.turns, say)
    measured |= step.measure(step.StepOptions(presets=("image",), quick=options.quick, rounds=options.rounds), say)
    growth = scaling.measure(scaling.ScalingOptions(quick=options.quick, rounds=options.rounds), say)
    measured["protocols"] = growth["protocols"]
    measured["long"] = memory.long(options, 6.0, say)
    measured["figures"] = [_document(figure, measured, options.quick) for figure in FIGURES]
    return measured


def two_threads(case: Case, rounds: int, say: Say) -> Measured:
    """Forward and backward of one sequence on one and on two threads."""
    tensors, upstream = case.tensors(), case.upstream()
    run = engine(case)
    why = verify.complaint(verify.errors(run, case, tensors, verify.truth(case, tensors)))
    if why is not None:
        return {"case": str(case), "why": why}
    both = training(run, tensors, upstream)

    def on(count: int) -> Callable[[], object]:
        def timed() -> None:
            # Not restored after each run: within a turn the threads are there already, as they are for anyone's loop.
            torch.set_num_threads(count)
            both()

        return timed

    with threads(2):
        timings = interleaved({"one thread": on(1), "two threads": on(2)}, rounds, say)
    return {
        "case": str(case),
        "why": None,
        "one": timings["one thread"].document(),
        "two": timings["two threads"].document(),
        "faster": timings["one thread"].times(timings["two threads"]),
    }


def given_lengths(case: Case, rounds: int, say: Say) -> Measured:
    """Sequences of 1/32 to 15/32 of the length, a quarter on average: with their lengths and without."""
    lengths = torch.linspace(1 / 32, 15 / 32, case.batch).mul(case.length).round().to(torch.int64)
    tensors, upstream, offsets = case.tensors(), case.upstream(), case.offsets()

    def short(*arguments: torch.Tensor) -> torch.Tensor:
        inputs, values, w1, b1, w2, b2 = arguments
        return paramix(inputs, values, w1, b1, w2, b2, offsets, lengths=lengths)

    why = verify.complaint(verify.errors(short, case, tensors, verify.truth(case, tensors, lengths)))
    if why is not None:
        return {"case": str(case), "why": why}
    full = engine(case)
    runs = {"with lengths": training(short, tensors, upstream), "without": training(full, tensors, upstream)}
    timings = interleaved(runs, rounds, say)
    forward = {"with lengths": inference(short, tensors), "without": inference(full, tensors)}
    passes = interleaved(forward, rounds, say)
    return {
        "case": str(case),
        "why": None,
        "lengths": lengths.tolist(),
        "with": timings["with lengths"].document(),
        "without": timings["without"].document(),
        "faster": timings["without"].times(timings["with lengths"]),
        "faster_forward": passes["without"].times(passes["with lengths"]),
    }


def _document(figure: Figure, measured: Measured, quick: bool) -> Measured:
    found = figure.read(measured)
    return {
        "what": figure.what,
        "sense": figure.sense,
        "bound": figure.bound,
        "unit": figure.unit,
        "measured": found,
        # At toy sizes nothing is reached or missed.
        "reached": None if found is None or quick else figure.reached(found),
    }


def _sized(case: Case, options: Settings) -> Case:
    return dataclasses.replace(case, batch=min(case.batch, 4), length=64) if options.quick else case


def _dig(measured: Any, *path: str) -> float | None:
    for name in path:
        if not isinstance(measured, dict) or measured.get(name) is None:
            return None
        measured = measured[name]
    return float(measured)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _gigabytes(count: float | None) -> float | None:
    return None if count is None else count / 1e9
