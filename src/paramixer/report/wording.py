"""Predictions, labels and strings as text for a page."""

from __future__ import annotations

import unicodedata

from torch import Tensor

from paramixer.data.task import TaskInfo

_CONTROL_SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
# Letters without a visible glyph that Unicode does not classify as blanks.
_BLANK_LETTERS = "\u2800\u3164\uffa0"


def format_prediction(outputs: Tensor, info: TaskInfo) -> str:
    """Return the predicted class with its probability, or the predicted value.

    Args:
        outputs: logits ``[classes]``, or a single value.
        info: class names and the kind of target.
    """
    if info.target == "value":
        return f"{float(outputs):.4g}"
    probabilities = outputs.double().softmax(-1)
    best = int(probabilities.argmax())
    return f"{show_invisible(info.classes[best])} ({100 * float(probabilities[best]):.0f} %)"


def format_target(target: Tensor, info: TaskInfo) -> str:
    """Return the class name of a label, or the target value."""
    return f"{float(target):.4g}" if info.target == "value" else show_invisible(info.classes[int(target)])


def show_invisible(text: str) -> str:
    """Return the text with a visible sign for every character that is invisible or changes the text direction."""
    if not text.strip():
        return f"⟨{' '.join(_format_code_point(letter) for letter in text)}⟩"
    return "".join(show_letter(letter) for letter in text)


def show_letter(letter: str) -> str:
    """Return the letter, or a visible sign for it."""
    if letter == " " or (unicodedata.category(letter)[0] not in "CZ" and letter not in _BLANK_LETTERS):
        return letter
    return _CONTROL_SIGNS.get(letter, f"⟨{_format_code_point(letter)}⟩")


def _format_code_point(letter: str) -> str:
    return f"U+{ord(letter):04X}"
