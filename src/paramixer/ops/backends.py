"""The registry of backends: which exist, which are available, and which one serves a call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from paramixer.errors import BackendError
from paramixer.ops import cpu, reference, triton
from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.chain import Chain
from paramixer.ops.ngram_layout import NgramLayout


class Backend(Protocol):
    """What a module implements to serve the operators; ``reference`` defines the result of each function.

    Backends get tensors whose shapes, dtypes and lengths have been checked, in float32 or float64 unless they take half
    precision as it is.
    """

    takes_half: bool
    """Whether tensors in half precision come as they are; otherwise they are converted to float32 before."""

    def unavailable_reason(self) -> str | None:
        """Why the backend cannot run in this process; None if it can."""

    def unsupported_reason(self, values: Tensor) -> str | None:
        """Why the backend cannot compute with such values; None if it can."""

    def link_mix(self, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool) -> Tensor:
        """Apply one factor with given weights."""

    def link_mix_backward(
        self, grad: Tensor, weights: Tensor, values: Tensor, offsets: Tensor, lengths: Tensor | None, ring: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients of weights and values."""

    def paramix(self, chain: Chain, checkpoint_every: int) -> tuple[Tensor, Tensor]:
        """Return the chain's output and the factor inputs stored for the backward pass."""

    def paramix_backward(
        self, grad: Tensor, chain: Chain, checkpoint_every: int, checkpoints: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the gradients of inputs, values, w1, b1, w2, b2."""

    def mlp(self, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None) -> Tensor:
        """Apply a linear layer, GELU and another linear layer to every token."""

    def mlp_backward(
        self, grad: Tensor, inputs: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Return the gradients of inputs, w1, b1, w2, b2."""

    def lookup(self, ids: Tensor, table: Tensor) -> Tensor:
        """Return the table's rows with these ids."""

    def lookup_backward(self, grad: Tensor, ids: Tensor, rows: int) -> Tensor:
        """Return, for every row, the sum of the gradients of all tokens with that id."""

    def ngram_rows(
        self,
        tokens: Tensor,
        lengths: Tensor | None,
        layout: NgramLayout,
        admitted: Tensor | None,
        letters: Tensor | None = None,
    ) -> Tensor:
        """Return the row of each position's n-gram of each order; -1 for none."""

    def count_ngrams(
        self,
        tokens: Tensor,
        lengths: Tensor | None,
        layout: NgramLayout,
        first: int,
        seen: Tensor,
        counts: Tensor,
        letters: Tensor | None = None,
    ) -> None:
        """Add to the counts the sequences in which each row occurs."""

    def occurrences(self, rows: Tensor, total: int) -> Tensor:
        """Return how often rows occur in their sequence; 0 where one occurred before."""

    def bag(self, rows: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the sums of the table's rows times their weights."""

    def bag_backward(self, grad: Tensor, rows: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the distinct rows and the weighted sums of their gradients."""

    def update_rows_(
        self, table: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, grads: Tensor, step: AdamWStep
    ) -> None:
        """Apply one step of AdamW to these rows of a table and of its moments."""

    def dropout(self, values: Tensor, p: float, seed: int) -> Tensor:
        """Set a fraction p of the values to zero and scale the others by 1 / (1 - p)."""


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run in this process, and the reason if it cannot. True if it can."""

    available: bool
    reason: str

    def __bool__(self) -> bool:
        return self.available

    def __str__(self) -> str:
        return "available" if self.available else f"not available: {self.reason}"


# In the order in which "auto" tries them.
BACKENDS: dict[str, Backend] = {"cpu": cpu, "triton": triton, "reference": reference}

# The open contexts, the newest last.
_requested: list[list[str]] = []


def backend(name: str) -> AbstractContextManager[None]:
    """Run the operators on the backend of this name within the block.

    ``"auto"`` selects the fastest backend that can serve each call. With any other name, a call that this backend
    cannot serve raises. The choice holds for the whole process, as with ``torch.set_num_threads``, because autograd may
    run backward passes in threads of its own. It takes precedence over the environment variable PARAMIXER_BACKEND.

    >>> with backend("reference"):
    ...     pass
    """
    _check_name(name, "pm.backend")
    return _request(name)


@contextmanager
def _request(name: str) -> Iterator[None]:
    entry = [name]
    _requested.append(entry)
    try:
        yield
    finally:
        # Not simply the last: contexts of two threads may end in any order.
        _requested[:] = [other for other in _requested if other is not entry]


def backends() -> dict[str, Availability]:
    """Return every backend by name: whether it can run in this process, and why not if it cannot."""
    reasons = {name: candidate.unavailable_reason() for name, candidate in BACKENDS.items()}
    return {name: Availability(reason is None, reason or "") for name, reason in reasons.items()}


def select_backend(values: Tensor) -> Backend:
    """Return the backend for a call with these values; called when the operator runs."""
    name = _requested[-1][0] if _requested else os.environ.get("PARAMIXER_BACKEND") or "auto"
    if name == "auto":
        return next(candidate for candidate in _automatic(values) if not _refusal(candidate, values))
    _check_name(name, "PARAMIXER_BACKEND")
    reason = _refusal(BACKENDS[name], values)
    if reason:
        raise BackendError(f"backend {name!r} cannot serve this call: {reason}; use pm.backend('auto')")
    return BACKENDS[name]


def _automatic(values: Tensor) -> Iterator[Backend]:
    """Yield the backends that "auto" tries: on the CPU no Triton, whose interpreter is there for tests."""
    on_cpu = values.device.type == "cpu"
    return (candidate for candidate in BACKENDS.values() if not (on_cpu and candidate is triton))


def _refusal(candidate: Backend, values: Tensor) -> str | None:
    return candidate.unavailable_reason() or candidate.unsupported_reason(values)


def _check_name(name: str, origin: str) -> None:
    names = ["auto", *BACKENDS]
    if name not in names:
        raise ValueError(f"{origin}: there is no backend {name!r}; choose from {', '.join(names)}")
