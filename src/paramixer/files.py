"""Atomic file writes: at any moment there is the old file or the new one, whole."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write content to path atomically: a crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write_synced(temporary, content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
