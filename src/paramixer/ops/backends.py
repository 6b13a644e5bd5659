"""One door, several engines: which there are, which one serves, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from paramixer.ops import cpu, reference
from paramixer.ops.chain import Chain


class Engine(Protocol):
    """What a module must offer to serve the operators; ``reference`` says what each function means.

    Engines get float32 or float64 tensors whose shapes, dtypes and lengths have been checked.
    """

    def missing(self) -> str | None:
        """Why the engine cannot run in this process; None where it can."""

    def refuses(self, values: Tensor) -> str | None:
        """Why the engine cannot serve such values; None where it can."""

    def link_mix(self, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
        """One factor with given weights."""

    def link_mix_backward(
        self, grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
    ) -> tuple[Tensor, Tensor]:
        """Gradients of weights and values."""

    def paramix(self, chain: Chain, keep: int) -> tuple[Tensor, Tensor]:
        """The chain's output, and the factors' inputs kept for the backward pass."""

    def paramix_backward(self, grad: Tensor, chain: Chain, keep: int, kept: Tensor) -> tuple[Tensor, ...]:
        """Gradients of inputs, values, w1, b1, w2, b2."""

    def mlp(self, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
        """A linear layer, GELU and another linear layer for every token."""

    def mlp_backward(
        self, grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Gradients of inputs, w1, b1, w2, b2."""

    def lookup(self, ids: Tensor, table: Tensor) -> Tensor:
        """The table's rows of these ids."""

    def lookup_backward(self, grad: Tensor, ids: Tensor, rows: int) -> Tensor:
        """Row by row the sum of the gradients of all tokens with that id."""

    def dropout(self, values: Tensor, p: float, seed: int) -> Tensor:
        """Values with a share p of them zero and the others scaled by 1 / (1 - p)."""


@dataclass(frozen=True)
class Availability:
    """Whether an engine can run in this process, and if not, why. True where it can."""

    available: bool
    why: str

    def __bool__(self) -> bool:
        return self.available

    def __str__(self) -> str:
        return "available" if self.available else f"not available: {self.why}"


# In the order in which "auto" tries them.
ENGINES: dict[str, Engine] = {"cpu": cpu, "reference": reference}
NOT_BUILT = {"triton": "this version has no Triton engine yet"}

# The contexts that are open, the newest last.
_asked_for: list[list[str]] = []


def backend(name: str) -> AbstractContextManager[None]:
    """Serve the operators by the engine of this name within the block.

    ``"auto"`` takes the fastest engine that can serve each call; any other name is taken at its word, and a call that
    this engine cannot serve raises. Holds for the whole process, as ``torch.set_num_threads`` does, because autograd
    may run backward passes in threads of its own. It takes precedence over the variable PARAMIXER_BACKEND.

    >>> with backend("reference"):
    ...     pass
    """
    _check_name(name, "pm.backend")
    return _asking_for(name)


@contextmanager
def _asking_for(name: str) -> Iterator[None]:
    entry = [name]
    _asked_for.append(entry)
    try:
        yield
    finally:
        # Not simply the last: contexts of two threads may end in any order.
        _asked_for[:] = [other for other in _asked_for if other is not entry]


def backends() -> dict[str, Availability]:
    """Every engine by name: whether it can run in this process, and why not where it cannot."""
    found = {name: engine.missing() for name, engine in ENGINES.items()} | NOT_BUILT
    return {name: Availability(why is None, why or "") for name, why in found.items()}


def serving(values: Tensor) -> Engine:
    """The engine for a call with these values, chosen when the operator runs."""
    name = _asked_for[-1][0] if _asked_for else os.environ.get("PARAMIXER_BACKEND") or "auto"
    if name == "auto":
        return next(engine for engine in ENGINES.values() if not (engine.missing() or engine.refuses(values)))
    _check_name(name, "PARAMIXER_BACKEND")
    why = NOT_BUILT.get(name) or ENGINES[name].missing() or ENGINES[name].refuses(values)
    if why:
        raise RuntimeError(f"backend {name!r} cannot serve this call: {why}; use pm.backend('auto')")
    return ENGINES[name]


def _check_name(name: str, origin: str) -> None:
    names = ["auto", *ENGINES, *NOT_BUILT]
    if name not in names:
        raise ValueError(f"{origin}: there is no backend {name!r}; choose from {', '.join(names)}")
