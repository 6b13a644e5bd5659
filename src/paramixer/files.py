"""Atomic file writes: at any moment there is the old file or the new one, whole. JSON from any source."""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a disk, a quota or a file that is full."""
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class WriteError(OSError):
    """A file cannot be written; the message names the file, what is left of it, and the remedy."""


@contextmanager
def writing(path: Path, kept: str) -> Iterator[None]:
    """Turn a full disk and a missing permission into one sentence.

    Args:
        path: what is written.
        kept: what is there afterwards, such as "nothing was written".
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        if error.errno in FULL:
            why, remedy = "no space is left", "free some and try again"
        elif error.errno in _REFUSED:
            why, remedy = (error.strerror or "permission denied").lower(), "change the permissions or write elsewhere"
        else:
            raise
        failure = WriteError(f"{path} cannot be written: {why}; {kept}; {remedy}")
        failure.errno = error.errno
        raise failure from error


_unfinished: set[Path] = set()


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a file or folder when the context ends, renamed or not; also where Ctrl-C ends the process at once."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _remove(path)
        _unfinished.discard(path)


def remove_unfinished() -> None:
    """Remove what is not finished yet, before the process ends without its usual cleaning up."""
    for path in tuple(_unfinished):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        remove_quietly(path)


def replace_file(path: Path, content: bytes) -> None:
    """Write content to path atomically: a crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    kept = "the file from before is kept" if path.exists() else "nothing was written"
    with writing(path, kept), unfinished(temporary):
        write_synced(temporary, content)
        temporary.replace(path)
    sync_folder(path.parent)


def remove_quietly(path: Path) -> None:
    """Remove a file if it is there; what hinders that hides no other error."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def read_json(path: Path, most_bytes: int) -> Any:
    """Return the content of a JSON file that may come from anyone, or raise a ValueError of one sentence.

    Args:
        path: the file. If it is missing, FileNotFoundError is raised.
        most_bytes: a larger file is refused before it is read.
    """
    if path.stat().st_size > most_bytes:
        raise ValueError(
            f"{path} has {path.stat().st_size:,} bytes, the most is {most_bytes:,}; paramixer writes none that large"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"{path} is damaged, it is not JSON: its lists are nested too deeply") from None
    except (ValueError, IsADirectoryError) as error:
        raise ValueError(f"{path} is damaged, it is not JSON: {error}") from error


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file; it is on the disk when this returns."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put the folder's list of names on the disk, which makes renames within it durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
