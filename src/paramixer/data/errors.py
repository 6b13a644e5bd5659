"""Errors about data and settings: where, what, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class DataError(ValueError):
    """Data or settings that cannot be used. The message begins with the file and the line or row."""

    def __init__(self, what: str, path: str | Path | None = None, place: str | None = None) -> None:
        where = ", ".join(str(part) for part in (path, place) if part is not None)
        super().__init__(f"{where}: {what}" if where else what)


def check_integer(name: str, value: Any, least: int | None = None) -> int:
    """Return a setting as an int.

    Raises:
        DataError: it is not a whole number, or less than ``least``.
    """
    is_number = not isinstance(value, bool | str | bytes)
    try:
        number = int(value) if is_number and int(value) == value else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" of at least {least}"
        raise DataError(f"{name}={value}; it must be a whole number{bound}")
    return number
