"""How a sequence is displayed: as an image, as text, as bases, as words, or as a curve."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import CLS, PAD, UNKNOWN, Vocabulary
from paramixer.report.wording import show_letter

Kind = Literal["image", "text", "bases", "words", "curve"]

_BASES = set("ACGTUN")
# Signs on the page for symbols that are not characters.
_SPECIAL_SIGNS = {PAD: "·", UNKNOWN: "�", CLS: "⌂"}


@dataclass(frozen=True)
class SequenceView:
    """A sequence, ready to be drawn."""

    kind: Kind
    """How it is drawn."""
    symbols: tuple[str, ...] = ()
    """The symbol at each position; empty for numbers."""
    numbers: NDArray[np.float32] | None = None
    """``[length, features]`` of a curve; gray values ``[side, side]`` from 0 to 255 of an image."""

    @property
    def length(self) -> int:
        """Number of positions."""
        if self.numbers is None:
            return len(self.symbols)
        return self.numbers.size if self.kind == "image" else len(self.numbers)

    def document(self) -> dict[str, Any]:
        """Return the JSON document that the page reads."""
        if self.numbers is None:
            return {"kind": self.kind, "symbols": list(self.symbols)}
        if self.kind == "image":
            return {"kind": self.kind, "side": len(self.numbers), "pixels": self.numbers.astype(int).ravel().tolist()}
        return {"kind": self.kind, "numbers": [[float(f"{number:.4g}") for number in row] for row in self.numbers.T]}

    def join_start(self, count: int) -> str:
        """Return the first symbols as one string; empty for numbers."""
        joined = (" " if self.kind == "words" else "").join(self.symbols[:count])
        return joined + ("…" if len(self.symbols) > count else "")


def view_sequence(sequence: Tensor, info: TaskInfo, length: int | None = None) -> SequenceView:
    """Choose how to display a sequence.

    Args:
        sequence: token ids ``[length]`` or numbers ``[length, features]``.
        info: the task that it belongs to.
        length: pad to this length with the pad symbol, or with zeros.
    """
    values = sequence.numpy()
    missing = max(0, (length or 0) - len(values))
    vocabulary = info.vocabulary
    if vocabulary is None:
        return SequenceView("curve", numbers=np.pad(values, ((0, missing), (0, 0))).astype(np.float32))
    ids = np.pad(values, (0, missing), constant_values=vocabulary.pad or 0)
    if vocabulary.unit == "number":
        side = math.isqrt(len(ids))
        if side > 1 and side * side == len(ids) and info.preset in ("image", "pathfinder"):
            return SequenceView("image", numbers=ids.reshape(side, side).astype(np.float32))
        return SequenceView("curve", numbers=ids[:, None].astype(np.float32))
    kind: Kind = "words" if vocabulary.unit == "word" else "bases" if _has_only_bases(vocabulary) else "text"
    signs = [_SPECIAL_SIGNS.get(symbol) or ("".join(map(show_letter, symbol))) for symbol in vocabulary.symbols]
    return SequenceView(kind, tuple(signs[number] for number in ids))


def encode_png(pixels: NDArray[Any], scale: int = 4) -> str:
    """Return gray values ``[height, width]`` as a data URL of a PNG, each pixel ``scale`` wide."""
    image = Image.fromarray(pixels.astype(np.uint8))
    buffer = io.BytesIO()
    image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _has_only_bases(vocabulary: Vocabulary) -> bool:
    letters = {symbol for symbol in vocabulary.symbols if symbol not in _SPECIAL_SIGNS}
    return bool(letters) and letters <= _BASES
