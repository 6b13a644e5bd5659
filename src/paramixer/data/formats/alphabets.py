"""What the letters of texts stand for: bases, amino acids, or characters."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = {"dna": "DNA", "protein": "proteins", "text": "text"}
"""What messages call each alphabet."""

_BASES = frozenset("ACGTUN")
_AMINO = frozenset("ACDEFGHIKLMNPQRSTVWYX")
_LETTERS = {"dna": _BASES, "protein": _AMINO}
# Shorter sequences, or proteins of fewer kinds of letters, could be words.
_SHORTEST, _LEAST_KINDS = 20, 12


def infer(values: Sequence[object]) -> str:
    """Return dna, protein or text for the first texts of a column."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or sum(map(len, texts)) < _SHORTEST * len(texts):
        return "text"
    letters = frozenset().union(*texts)
    if frozenset("".join(letters).upper()) <= _BASES:
        return "dna"
    return "protein" if letters <= _AMINO and len(letters) >= _LEAST_KINDS else "text"


def normalize(text: str, alphabet: str) -> str:
    """Return a text in upper case with T for U if it is DNA; any other as it is."""
    return text.upper().replace("U", "T") if alphabet == "dna" else text


def find_foreign(text: str, alphabet: str) -> str | None:
    """Return the first letter that the alphabet does not have; None if it has all."""
    return next((letter for letter in text if letter.upper() not in _LETTERS[alphabet]), None)
