"""The cache of prepared data. Each entry is made once and completely, also if two processes ask at the same time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paramixer.data.errors import DataError
from paramixer.extras import needed_for
from paramixer.files import FULL, unfinished

# Part of every key. Raise it when the files change.
FORMAT = 1


def find_folder() -> Path:
    """Return the cache folder: PARAMIXER_CACHE, or ``paramixer`` in the user's cache folder."""
    chosen = os.environ.get("PARAMIXER_CACHE")
    if chosen:
        return Path(chosen)
    with needed_for("the cache of prepared data"):
        import platformdirs
    # Without an author, which Windows would add to the path.
    return platformdirs.user_cache_path("paramixer", appauthor=False)


def prepare(name: str, key: dict[str, Any], build: Callable[[Path], None]) -> Path:
    """Return the folder for this key; ``build`` fills it if it does not exist yet.

    Args:
        name: beginning of the folder's name.
        key: everything that determines the content, as JSON.
        build: gets an empty folder to fill. If it raises, nothing is left.
    """
    with needed_for("the cache of prepared data"):
        from filelock import FileLock
    text = json.dumps({"format": FORMAT, **key}, sort_keys=True)
    folder = find_folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                _build(folder, build)
    except OSError as error:
        if error.errno in FULL:
            raise DataError(
                f"no space left while writing ({error.strerror}); free some, or set PARAMIXER_CACHE to another folder",
                folder.parent,
            ) from error
        raise
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    # This process holds the lock, so unfinished folders were left by processes that were killed.
    for left in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    with unfinished(temporary):
        build(temporary)
        for path in temporary.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        temporary.rename(folder)


def identify(source: Path) -> list[list[Any]]:
    """Return names, sizes and times of change of a file, or of all files in a folder. Cheap, and enough for a key."""
    if not source.exists():
        raise DataError("there is no such file or folder", source)
    files: Iterable[Path] = sorted(source.rglob("*")) if source.is_dir() else [source]
    entries = [
        [str(file.relative_to(source)), status.st_size, status.st_mtime_ns]
        for file in files
        if file.is_file() and (status := file.stat())
    ]
    return [[str(source.resolve()), len(entries)], *entries]


def compute_digest(files: Iterable[Path], settings: dict[str, Any]) -> str:
    """Return a hash of the files' content and of the settings. It is the same on every machine."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
