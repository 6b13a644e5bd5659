"""What stands for what: symbols and their ids, saved with the data so that raw input can always be read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAD, UNKNOWN, CLS = "<pad>", "<unknown>", "<cls>"
_SPECIALS = (PAD, UNKNOWN, CLS)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Symbols by id."""

    symbols: tuple[str, ...]
    """The symbol of each id."""
    unit: str = "character"
    """What a symbol is in raw input: a "character", a "word" between blanks, or a "number" from 0 on."""
    fold_case: bool = False
    """Whether raw input is turned into upper case first."""
    pad_symbol: str = PAD
    """Which symbol fills up short sequences, where it is one of them."""
    unknown_symbol: str = UNKNOWN
    """Which symbol stands for whatever is not in the vocabulary, where it is one of them. May be the same one."""

    def __post_init__(self) -> None:
        if self.unit not in ("character", "word", "number"):
            raise ValueError(f"unit={self.unit!r}; choose from character, word, number")
        if len(set(self.symbols)) != len(self.symbols):
            raise ValueError("a symbol stands twice in the vocabulary")

    @classmethod
    def of_characters(cls, texts: Iterable[str], with_cls: bool = True) -> Vocabulary:
        """Sorted characters of all texts, after PAD, UNKNOWN and, if wanted, CLS."""
        seen: set[str] = set()
        for text in texts:
            seen.update(text)
        return cls(symbols=(*_SPECIALS[: 3 if with_cls else 2], *sorted(seen)))

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def pad(self) -> int | None:
        """The id that fills up short sequences; None where there is none."""
        return self._ids.get(self.pad_symbol)

    @property
    def unknown(self) -> int | None:
        """The id of whatever is not in the vocabulary; None where that is an error."""
        return self._ids.get(self.unknown_symbol)

    @property
    def cls(self) -> int | None:
        """The id that stands in front of every sequence; None where nothing does."""
        return self._ids.get(CLS)

    @property
    def dtype(self) -> str:
        """The smallest type that holds every id."""
        return "uint8" if len(self) <= 2**8 else "uint16" if len(self) <= 2**16 else "int32"

    def encode(self, text: str, length: int | None = None) -> NDArray[np.int64]:
        """Token ids of raw input, with CLS in front where there is one, cut to the length.

        Raises:
            ValueError: names the first symbol that is unknown, where the vocabulary has no id for those.
        """
        begin = [] if self.cls is None else [self.cls]
        wanted = None if length is None else max(length - len(begin), 0)
        if self.unit == "character":
            # Folding can make two letters of one.
            ids = self._characters(text[:wanted])[:wanted]
        else:
            ids = np.array([self._id(word, place) for place, word in enumerate(text.split()[:wanted])], np.int64)
        return np.concatenate([np.array(begin, np.int64), ids])

    def document(self) -> dict[str, Any]:
        """As it stands in a JSON file."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "symbols": list(self.symbols)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Vocabulary:
        """What :meth:`document` wrote."""
        return cls(**{**document, "symbols": tuple(document["symbols"])})

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """The id of every code point up to the highest one in the vocabulary; -1 for the others."""
        points = {ord(symbol): number for symbol, number in self._ids.items() if len(symbol) == 1}
        table = np.full(max(points, default=0) + 2, -1, np.int64)
        for point, number in points.items():
            table[point] = number
        return table

    def _characters(self, text: str) -> NDArray[np.int64]:
        if self.fold_case:
            text = text.upper()
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        ids = self._table[np.minimum(points, len(self._table) - 1)]
        strange = ids < 0
        if strange.any():
            if self.unknown is None:
                place = int(strange.argmax())
                raise ValueError(f"{text[place]!r} at position {place} is not in the vocabulary")
            ids = np.where(strange, self.unknown, ids)
        return ids

    def _id(self, word: str, place: int) -> int:
        word = word.upper() if self.fold_case else word
        found = self._ids.get(word, self.unknown)
        if found is None:
            raise ValueError(f"{word!r} at position {place} is not in the vocabulary")
        return found
