"""How a sequence looks: as a picture, as text, as bases, as words, or as curves."""

from __future__ import annotations

import base64
import io
import math
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import CLS, PAD, UNKNOWN, Vocabulary

Kind = Literal["image", "text", "bases", "words", "curve"]

_BASES = set("ACGTUN")
_BREAKS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
# Letters that look like nothing although they are none of Unicode's blanks.
_EMPTY = "\u2800\u3164\uffa0"
# What stands on a page for symbols that are no characters.
_SIGNS = {PAD: "·", UNKNOWN: "�", CLS: "⌂"}


@dataclass(frozen=True)
class Look:
    """A sequence, ready to be drawn."""

    kind: Kind
    """How it is drawn."""
    symbols: tuple[str, ...] = ()
    """What stands at each position, where tokens do."""
    numbers: NDArray[np.float32] | None = None
    """``[length, features]`` of a curve; gray values ``[side, side]`` in 0 to 255 of an image."""

    @property
    def length(self) -> int:
        """Positions."""
        if self.numbers is None:
            return len(self.symbols)
        return self.numbers.size if self.kind == "image" else len(self.numbers)

    def document(self) -> dict[str, Any]:
        """As the page reads it."""
        if self.numbers is None:
            return {"kind": self.kind, "symbols": list(self.symbols)}
        if self.kind == "image":
            return {"kind": self.kind, "side": len(self.numbers), "pixels": self.numbers.astype(int).ravel().tolist()}
        return {"kind": self.kind, "numbers": [[float(f"{number:.4g}") for number in row] for row in self.numbers.T]}

    def beginning(self, count: int) -> str:
        """The first symbols as text; nothing for what is no text."""
        joined = (" " if self.kind == "words" else "").join(self.symbols[:count])
        return joined + ("…" if len(self.symbols) > count else "")


def look_of(sequence: Tensor, info: TaskInfo, length: int | None = None) -> Look:
    """How this sequence looks.

    Args:
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        info: what the task says about them.
        length: fill up with the pad symbol, or with zeros, to so many positions.
    """
    values = sequence.numpy()
    missing = max(0, (length or 0) - len(values))
    vocabulary = info.vocabulary
    if vocabulary is None:
        return Look("curve", numbers=np.pad(values, ((0, missing), (0, 0))).astype(np.float32))
    ids = np.pad(values, (0, missing), constant_values=vocabulary.pad or 0)
    if vocabulary.unit == "number":
        side = math.isqrt(len(ids))
        if side > 1 and side * side == len(ids) and info.preset in ("image", "pathfinder"):
            return Look("image", numbers=ids.reshape(side, side).astype(np.float32))
        return Look("curve", numbers=ids[:, None].astype(np.float32))
    kind: Kind = "words" if vocabulary.unit == "word" else "bases" if _of_bases(vocabulary) else "text"
    shown = [_SIGNS.get(symbol) or ("".join(map(_seen, symbol))) for symbol in vocabulary.symbols]
    return Look(kind, tuple(shown[number] for number in ids))


def visible(text: str) -> str:
    """The same text with a sign for everything that would not be seen, or would turn the text around it."""
    return "".join(_seen(letter) for letter in text) if text.strip() else f"⟨{' '.join(_code(one) for one in text)}⟩"


def _seen(letter: str) -> str:
    if letter == " " or (unicodedata.category(letter)[0] not in "CZ" and letter not in _EMPTY):
        return letter
    return _BREAKS.get(letter, f"⟨{_code(letter)}⟩")


def _code(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def png(pixels: NDArray[Any], scale: int = 4) -> str:
    """Gray values ``[height, width]`` as an address that holds the picture itself."""
    picture = Image.fromarray(pixels.astype(np.uint8))
    buffer = io.BytesIO()
    picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _of_bases(vocabulary: Vocabulary) -> bool:
    letters = {symbol for symbol in vocabulary.symbols if symbol not in _SIGNS}
    return bool(letters) and letters <= _BASES
