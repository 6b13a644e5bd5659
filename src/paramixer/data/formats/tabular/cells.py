"""What a cell of a table holds: a label or value, a text, or numbers."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError

# "0,5 0,7" and "0,5;0,7" may be two numbers or four.
_COMMA_INSIDE, _OTHER_BETWEEN = re.compile(r"\d,\d"), re.compile(r"\d(?:\s+|\s*;\s*)[-+.\d]")

LOOK_AHEAD = 100
"""How many rows are read to infer what a column holds."""


def parse_label(value: object, column: str, place: str) -> str | float:
    """Return the label or number in a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | float):
        return value
    if isinstance(value, int):
        # A whole number that no float holds is compared as text.
        return value if abs(value) < 2**63 else str(value)
    raise DataError(f"{column!r} holds a value of type {type(value).__name__}; expected a label or a number", place)


def parse_weight(value: object, column: str, place: str) -> float:
    """Return the weight in a cell: how much a sequence counts in training."""
    try:
        weight = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight) or weight < 0:
        raise DataError(f"{column!r} holds {value!r}; a weight is a number that is not negative", place)
    return weight


def parse_sequence(value: object, as_numbers: bool, column: str, place: str) -> str | NDArray[Any]:
    """Return the text, or the numbers ``[length]`` or ``[length, features]``, in a cell.

    Args:
        value: what the cell holds.
        as_numbers: whether texts of this column are lists of numbers; see :func:`are_number_lists`.
        column: its name, for messages.
        place: file and line or row, for messages.
    """
    if isinstance(value, str):
        if not as_numbers:
            return value
        if (numbers := parse_numbers(value)) is None:
            raise DataError(f"not a list of numbers, as the first rows of {column!r} are", place)
        if _COMMA_INSIDE.search(value) and _OTHER_BETWEEN.search(value):
            raise DataError(
                f"it is not clear whether commas in {column!r} stand inside of numbers; write decimal points", place
            )
        return numbers
    if not isinstance(value, list):
        kind = type(value).__name__
        raise DataError(f"{column!r} holds a value of type {kind}; expected a text or a list of numbers", place)
    if (numbers := _to_array(value)) is None:
        raise DataError("a list that is neither of numbers nor of equally long lists of numbers", place)
    return numbers


def are_number_lists(values: list[object]) -> bool:
    """Return whether all values are texts of numbers only, and not just one number each."""
    lists = [numbers for value in values if isinstance(value, str) and (numbers := parse_numbers(value)) is not None]
    return len(lists) == len(values) and any(len(numbers) > 1 for numbers in lists)


def parse_numbers(text: str) -> NDArray[Any] | None:
    """Return the numbers that a text lists; None if it has anything else."""
    try:
        if text.lstrip().startswith("["):
            return _to_array(json.loads(text))
        return np.array(text.replace(",", " ").replace(";", " ").split(), np.float64)
    except (ValueError, RecursionError):
        return None


def _to_array(values: list[Any]) -> NDArray[Any] | None:
    try:
        numbers = np.asarray(values)
    except ValueError:
        return None
    fits = numbers.dtype.kind in "biuf" and (numbers.ndim == 1 or (numbers.ndim == 2 and numbers.shape[1] > 0))
    return numbers if fits else None
