"""Symbols and their ids, saved with the data so that raw input can always be encoded again."""

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
    """What a symbol is in raw input: a "character", a "word" between blanks, or a whole "number"."""
    fold_case: bool = False
    """Whether raw input is converted to upper case first."""
    pad_symbol: str = PAD
    """The symbol that pads short sequences, if the vocabulary has it."""
    unknown_symbol: str = UNKNOWN
    """The symbol for everything that is not in the vocabulary, if it has one. May be the padding symbol."""

    def __post_init__(self) -> None:
        if self.unit not in ("character", "word", "number"):
            raise ValueError(f"unit={self.unit!r}; choose from character, word, number")
        if len(set(self.symbols)) != len(self.symbols):
            raise ValueError(f"the symbol {_find_repeated(self.symbols)!r} is in the vocabulary twice")

    @classmethod
    def from_characters(cls, texts: Iterable[str], with_cls: bool = True) -> Vocabulary:
        """Return the sorted characters of all texts, after PAD, UNKNOWN and, by default, CLS."""
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return cls(symbols=(*_SPECIALS[: 3 if with_cls else 2], *sorted(characters)))

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def pad(self) -> int | None:
        """The id that pads short sequences; None if there is none."""
        return self._ids.get(self.pad_symbol)

    @property
    def unknown(self) -> int | None:
        """The id of everything that is not in the vocabulary; None if that is an error."""
        return self._ids.get(self.unknown_symbol)

    @property
    def cls(self) -> int | None:
        """The id in front of every sequence; None if there is none."""
        return self._ids.get(CLS)

    @property
    def dtype(self) -> str:
        """The smallest dtype that holds every id."""
        return "uint8" if len(self) <= 2**8 else "uint16" if len(self) <= 2**16 else "int32"

    @cached_property
    def letters(self) -> tuple[int, ...] | None:
        """For each id the letter or digit, counted from 1, that it stands for; 0 for what separates words.

        Upper and lower case are one letter. None where symbols are no characters or no words stand apart, as in DNA.
        """
        if self.unit != "character":
            return None
        folded = [symbol.lower() if len(symbol) == 1 and symbol.isalnum() else "" for symbol in self.symbols]
        if not any(len(symbol) == 1 and symbol.isspace() for symbol in self.symbols):
            return None
        numbers = {letter: number for number, letter in enumerate(sorted({*folded} - {""}), 1)}
        return tuple(numbers.get(letter, 0) for letter in folded)

    def encode(self, text: str, length: int | None = None) -> NDArray[np.int64]:
        """Return the token ids of raw input ``[length]``, with CLS in front if there is one, cut to the length.

        Raises:
            ValueError: a symbol is not in the vocabulary, which has no id for unknown ones.
        """
        first = [] if self.cls is None else [self.cls]
        most = None if length is None else max(length - len(first), 0)
        if self.unit == "character":
            # One letter can become two in upper case.
            ids = self._encode_characters(text[:most])[:most]
        else:
            ids = np.array([self._encode_word(word, place) for place, word in enumerate(text.split()[:most])], np.int64)
        return np.concatenate([np.array(first, np.int64), ids])

    def count_unknown(self, text: str) -> int:
        """Return how many symbols of raw input the vocabulary lacks."""
        if self.unit == "character":
            return int((self._find_ids(text.upper() if self.fold_case else text) < 0).sum())
        return sum(word not in self._ids for word in (text.upper() if self.fold_case else text).split())

    def document(self) -> dict[str, Any]:
        """Return all fields as JSON can hold them."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "symbols": list(self.symbols)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Vocabulary:
        """Return what :meth:`document` wrote."""
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

    def _encode_characters(self, text: str) -> NDArray[np.int64]:
        if self.fold_case:
            text = text.upper()
        ids = self._find_ids(text)
        is_unknown = ids < 0
        if is_unknown.any():
            if self.unknown is None:
                place = int(is_unknown.argmax())
                raise ValueError(f"{text[place]!r} at position {place} is not in the vocabulary")
            ids = np.where(is_unknown, self.unknown, ids)
        return ids

    def _find_ids(self, text: str) -> NDArray[np.int64]:
        """Return the id of every character, -1 for those that the vocabulary lacks."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        return self._table[np.minimum(points, len(self._table) - 1)]

    def _encode_word(self, word: str, place: int) -> int:
        word = word.upper() if self.fold_case else word
        number = self._ids.get(word, self.unknown)
        if number is None:
            raise ValueError(f"{word!r} at position {place} is not in the vocabulary")
        return number


def _find_repeated(symbols: tuple[str, ...]) -> str:
    return next(symbol for symbol in symbols if symbols.count(symbol) > 1)


BASES = Vocabulary(symbols=tuple("NACGT"), fold_case=True, pad_symbol="N", unknown_symbol="N")
"""The paper's five symbols of DNA. An unknown base is as good as none, so N also pads."""
BYTES = Vocabulary(symbols=tuple(map(str, range(256))), unit="number")
"""Unsigned bytes, such as shades of gray."""
AMINO_ACIDS = Vocabulary(symbols=(PAD, UNKNOWN, *"ACDEFGHIKLMNPQRSTVWY"), fold_case=True)
"""The twenty amino acids of proteins; all other letters are unknown."""
