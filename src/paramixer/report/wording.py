"""Predictions, labels and strings as text for a page."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

from torch import Tensor

from paramixer.data.task import TaskInfo
from paramixer.training.assessment.metrics import format_number

_CONTROL_SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
# Letters without a visible glyph that Unicode does not classify as blanks.
_BLANK_LETTERS = "\u2800\u3164\uffa0"


def format_score(value: float) -> str:
    """Return a metric as text; or that the data does not define it."""
    return format_number(value) if math.isfinite(value) else "not defined"


def group_digits(number: float) -> str:
    """Return a number without decimals, its digits in groups of three."""
    return f"{number:,.0f}".replace(",", " ")


def format_setting(value: Any) -> str:
    """Return a setting as text."""
    match value:
        case None:
            return "not set"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(format_setting, value)) or "none"
    return str(value)


def format_prediction(outputs: Tensor, info: TaskInfo) -> str:
    """Return the predicted class with its probability, or the predicted value.

    Args:
        outputs: logits ``[classes]``, or a single value.
        info: class names and the kind of target.
    """
    if not outputs.isfinite().all():
        return "not a finite number"
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
