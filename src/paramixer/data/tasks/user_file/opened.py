"""What every kind of file is opened to, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paramixer.data.errors import DataError
from paramixer.data.samples import Sample
from paramixer.data.vocabulary import Vocabulary

LONGEST = 16384
"""N is at most this unless a length is given."""

Alphabet = Literal["dna", "protein", "text"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How files are read; :func:`~paramixer.data.tasks.user_file.load` documents them."""

    text: str | None = None
    label: str | None = None
    labels: Path | None = None
    split: str | None = None
    id: str | None = None
    weight: str | None = None
    strict: bool = False
    encoding: str = "utf-8"
    alphabet: Alphabet | None = None
    image_size: str | int | None = None
    rate: int | None = None
    length: int | None = None

    def refuse(self, names: Iterable[str], why: str, source: str | Path) -> None:
        """Raise an error for options that this kind of file does not have.

        Raises:
            DataError: one of them was given.
        """
        for name in names:
            if getattr(self, name) is not None:
                raise DataError(f"{why}; leave out --{name.replace('_', '-')}", source)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """How files are read."""

    read: Callable[[], Iterable[Sample]]
    """Reads them from the beginning."""
    preset: str
    """The paper's nearest preset."""
    vocabulary: Vocabulary | None = None
    """Of texts or token ids; None if it is made from the training texts, or for numbers."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What was chosen, by which other files are read the same way."""
    notes: tuple[str, ...] = ()
    """What a user should know."""
    inferred: dict[str, Any] = field(default_factory=dict)
    """What was found; see :attr:`paramixer.data.TaskInfo.inferred`."""
