"""Raw texts and numbers as a trained model reads them, and what it does not read of them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.formats import unlabeled
from paramixer.data.task import TaskInfo

# So many places are listed.
_LISTED = 5


class RawInput(NamedTuple):
    """One input as its source has it."""

    id: str
    """The source's name for it, or its number, counted from 0."""
    value: Any
    """A text, token ids, or numbers ``[length]`` or ``[length, features]``."""
    place: str
    """Where it stands, for messages."""


class ModelInput(NamedTuple):
    """One input as the model reads it."""

    id: str
    """Of the raw input."""
    windows: list[NDArray[Any]]
    """Token ids ``[length]`` or numbers ``[length, features]``, none longer than the model; one unless windows were
    asked for."""


@dataclass
class InputSummary:
    """How a model has read its inputs; counts while they are read."""

    length: int
    """The greatest length that the model reads."""
    inputs: int = 0
    """How many inputs there were."""
    cut: int = 0
    """How many were longer than the model, and lost their end."""
    windowed: int = 0
    """How many were longer than the model, and were read whole, in windows."""
    symbols: int = 0
    """Symbols that were read of texts."""
    unknown: int = 0
    """Symbols that the training data did not have."""
    with_unknown: int = 0
    """How many inputs have such symbols."""
    empty: int = 0
    """How many texts were empty."""
    empty_places: list[str] = field(default_factory=list)
    """Where the first of these stand."""

    def describe(self, remedy: str = "windows=True reads them whole") -> list[str]:
        """Return a sentence for everything that a user should know; none if the model has read all of it.

        Args:
            remedy: what to do about inputs that were cut.
        """
        lines = []
        for count, what in ((self.cut, "cut; " + remedy), (self.windowed, "read in windows")):
            if count:
                verbs = ("is", "was") if count == 1 else ("are", "were")
                lines.append(
                    f"{count:,} of {self.inputs:,} inputs {verbs[0]} longer than {self.length:,} and {verbs[1]} {what}"
                )
        if self.empty:
            are = "is" if self.empty == 1 else "are"
            more = f" and {self.empty - _LISTED:,} more" if self.empty > _LISTED else ""
            lines.append(
                f"{self.empty:,} of {self.inputs:,} inputs {are} empty, which says nothing about their class or value: "
                f"{', '.join(self.empty_places)}{more}"
            )
        if self.unknown:
            was = "was" if self.unknown == 1 else "were"
            lines.append(
                f"{self.unknown:,} of {self.symbols:,} symbols {was} unknown to the model, in {self.with_unknown:,} of "
                f"{self.inputs:,} inputs"
            )
        return lines


def read_inputs(
    inputs: Iterable[RawInput], info: TaskInfo, summary: InputSummary, windows: bool = False
) -> Iterator[ModelInput]:
    """Yield every input as the model reads it, and count in the summary.

    Args:
        inputs: raw ones.
        info: about the task that the model was trained on.
        summary: is filled.
        windows: whether an input longer than the model becomes several windows; by default its end is cut.
    """
    # One position more than the model reads tells whether there are more.
    uncut = dataclasses.replace(info, length=sys.maxsize if windows else info.length + 1)
    for raw in inputs:
        sequence = unlabeled.encode(raw.value, uncut, raw.place)
        summary.inputs += 1
        is_longer = len(sequence) > info.length
        summary.windowed += is_longer and windows
        summary.cut += is_longer and not windows
        if isinstance(raw.value, str) and info.vocabulary is not None:
            _count_symbols(raw.value, info, summary, whole=windows)
            _count_empty(raw, summary)
        first = 0 if info.vocabulary is None else int(sequence[0] == info.vocabulary.cls)
        yield ModelInput(raw.id, split_windows(sequence, info.length, first) if windows else [sequence[: info.length]])


def split_windows(sequence: NDArray[Any], length: int, first: int = 0) -> list[NDArray[Any]]:
    """Return as few windows as cover the whole sequence, all of the same length and evenly spread.

    With n = length - first, a sequence of L > n positions gets k = ceil(L / n) windows. Window j begins at
    floor(j (L - n) / (k - 1)): the first at the beginning, the last at the end, neighbors overlapping or adjacent.

    Args:
        sequence: ``[length]`` or ``[length, features]``.
        length: of a window.
        first: positions at the beginning, such as CLS, that every window begins with.
    """
    head, body = sequence[:first], sequence[first:]
    size = length - first
    if len(body) <= size:
        return [sequence]
    count = -(-len(body) // size)
    starts = [number * (len(body) - size) // (count - 1) for number in range(count)]
    return [np.concatenate([head, body[start : start + size]]) for start in starts]


def _count_empty(raw: RawInput, summary: InputSummary) -> None:
    if raw.value.strip():
        return
    summary.empty += 1
    if len(summary.empty_places) < _LISTED:
        # All places are in the same file, whose name may be long.
        summary.empty_places.append(raw.place.rpartition(", ")[2])


def _count_symbols(text: str, info: TaskInfo, summary: InputSummary, whole: bool) -> None:
    """Count the symbols that the model reads, and those of them that it does not know."""
    assert info.vocabulary is not None
    most = None if whole else info.length - int(info.vocabulary.cls is not None)
    is_character = info.vocabulary.unit == "character"
    symbols = text[:most] if is_character else text.split()[:most]
    unknown = info.vocabulary.count_unknown(symbols if isinstance(symbols, str) else " ".join(symbols))
    summary.symbols += len(symbols)
    summary.unknown += unknown
    summary.with_unknown += bool(unknown)
