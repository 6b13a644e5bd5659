"""Prepared data in a cache: made once, completely or not at all, also when two processes want it at the same time."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock

from paramixer.data.errors import DataError

# Part of every key: raise it when what is written changes.
FORMAT = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def folder() -> Path:
    """Where prepared data is kept: PARAMIXER_CACHE, or ``paramixer`` in the user's cache folder."""
    chosen = os.environ.get("PARAMIXER_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paramixer"


def prepared(name: str, key: dict[str, Any], build: Callable[[Path], None]) -> Path:
    """The folder for this key; ``build`` fills it if it is not there yet.

    Args:
        name: begins the folder's name.
        key: everything that decides what is in it, as JSON.
        build: gets an empty folder to fill. If it raises, nothing is left.
    """
    text = json.dumps({"format": FORMAT, **key}, sort_keys=True)
    wanted = folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if wanted.is_dir():
        return wanted
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(wanted.with_name(f".{wanted.name}.lock")):
            if not wanted.is_dir():
                _build(wanted, build)
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(
                f"no room left while writing ({error.strerror}); free some, or set PARAMIXER_CACHE to another folder",
                wanted.parent,
            ) from error
        raise
    return wanted


def _build(wanted: Path, build: Callable[[Path], None]) -> None:
    # Who holds the lock is alone, so whatever lies there was left by a process that was killed.
    for left in wanted.parent.glob(f".{wanted.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    started = Path(tempfile.mkdtemp(prefix=f".{wanted.name}-", dir=wanted.parent))
    try:
        build(started)
        for file in started.iterdir():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        started.rename(wanted)
    except BaseException:
        shutil.rmtree(started, ignore_errors=True)
        raise


def identity(source: Path) -> list[list[Any]]:
    """What a file or folder looks like from outside: names, sizes and times of change. Cheap, and enough for a key."""
    if not source.exists():
        raise DataError("there is no such file or folder", source)
    files: Iterable[Path] = sorted(source.rglob("*")) if source.is_dir() else [source]
    seen = [
        [str(file.relative_to(source)), found.st_size, found.st_mtime_ns]
        for file in files
        if file.is_file() and (found := file.stat())
    ]
    return [[str(source.resolve()), len(seen)], *seen]


def digest(files: Iterable[Path], settings: dict[str, Any]) -> str:
    """A hash of what is in the files and of the settings; the same on every machine."""
    found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file in files:
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()
