"""What is wrong with somebody's data: where, what, and what to do."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """Data that cannot be used. The message begins with the file and the line or row."""

    def __init__(self, what: str, path: str | Path | None = None, place: str | None = None) -> None:
        where = ", ".join(str(part) for part in (path, place) if part is not None)
        super().__init__(f"{where}: {what}" if where else what)
