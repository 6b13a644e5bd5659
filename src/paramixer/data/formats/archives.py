"""The files in a folder or an archive, one after another. Nothing is unpacked to disk."""

from __future__ import annotations

import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

from paramixer.data.errors import DataError

_TAR_MODES = {".tar": "r:", ".tar.gz": "r:gz", ".tgz": "r:gz"}
_ZIP = ".zip"
# Far more than any task's files have. A larger member is damaged, or made to fill the memory.
_LARGEST = 2 << 30
# Errors of the standard library's readers for damaged archives.
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, LookupError, OverflowError, NotImplementedError, RuntimeError, MemoryError),
)

Member = tuple[str, Callable[[], bytes]]
"""Name of a file, and a function that reads it."""


def is_archive(path: Path) -> bool:
    """Return whether the path is a folder, or its name is that of an archive."""
    return path.is_dir() or path.name.lower().endswith((_ZIP, *_TAR_MODES))


def walk(path: Path) -> Iterator[Member]:
    """Yield the name of every regular file in a folder, .zip, .tar, .tar.gz or .tgz, with a function that reads it.

    Names are relative, with "/" between parts. A folder's are sorted. An archive's are in its own order, in which a
    compressed tar is quick to read. Files may be read later, in any order.

    A folder's links to files are followed, because the user made them; links to folders and other entries are skipped.
    In an archive, a link, a device, a path that leaves the archive or a file of more than 2 GB is an error.
    """
    name = path.name.lower()
    if path.is_dir():
        return _walk_folder(path)
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    if name.endswith(_ZIP):
        return _walk_zip(path)
    for suffix, mode in _TAR_MODES.items():
        if name.endswith(suffix):
            return _walk_tar(path, mode)
    raise DataError(f"expected a folder or an archive named {_ZIP}, {', '.join(_TAR_MODES)}", path)


def _walk_folder(path: Path) -> Iterator[Member]:
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    for name, file in sorted((file.relative_to(path).as_posix(), file) for file in files):
        if file.is_file():
            yield name, partial(_read_file, file)


def _read_file(file: Path) -> bytes:
    try:
        if file.stat().st_size > _LARGEST:
            raise _make_size_error(file, None)
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"it cannot be read: {error.strerror}", file) from error


def _walk_zip(path: Path) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise _make_read_error(path, None, error) from error
    # Not closed here, because members may be read later. A ZipFile closes itself when it is no longer referenced.
    for info in archive.infolist():
        if info.is_dir():
            continue
        name = _check_name(path, info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _make_kind_error(path, name)
        if info.file_size > _LARGEST:
            raise _make_size_error(path, name)
        yield name, partial(_read_zipped, path, archive, info)


def _read_zipped(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        # Never more than the size that was checked, whatever the compressed data holds.
        with archive.open(info) as file:
            content = file.read(info.file_size)
            if len(content) < info.file_size:
                raise EOFError("it ends too early")
            return content
    except _BROKEN as error:
        raise _make_read_error(path, info.filename, error) from error


class _Tar(tarfile.TarFile):
    """Closes itself when it is no longer referenced, as a ZipFile does."""

    members: list[tarfile.TarInfo]

    def __del__(self) -> None:
        self.close()


def _walk_tar(path: Path, mode: str) -> Iterator[Member]:
    archive = _open_tar(path, mode)
    while (info := _read_next(path, archive)) is not None:
        if info.isdir():
            continue
        name = _check_name(path, info.name)
        if not info.isreg():
            raise _make_kind_error(path, name)
        if info.size > _LARGEST:
            raise _make_size_error(path, name)
        yield name, partial(_read_tarred, path, archive, info)


def _open_tar(path: Path, mode: str) -> _Tar:
    try:
        archive = _Tar.open(path, mode)  # type: ignore[call-overload]
    except _BROKEN as error:
        raise _make_read_error(path, None, error) from error
    assert isinstance(archive, _Tar)
    return archive


def _read_next(path: Path, archive: _Tar) -> tarfile.TarInfo | None:
    try:
        info = archive.next()
        # The archive would keep every member that it has passed: hundreds of MB for a million of them.
        archive.members = []
        if info is None:
            _check_end(archive)
    except _BROKEN as error:
        raise _make_read_error(path, None, error) from error
    return info


def _check_end(archive: _Tar) -> None:
    """Check that the tar ends with a block of zeros. tarfile takes damage after the first member for the end."""
    file = archive.fileobj
    assert file is not None
    file.seek(archive.offset)
    block = file.read(tarfile.BLOCKSIZE)
    if block != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it is damaged" if block else "it ends too early")
    # gzip's checksum is at the very end, after the zeros that fill the last block.
    while file.read(1 << 20):
        pass


def _read_tarred(path: Path, archive: _Tar, info: tarfile.TarInfo) -> bytes:
    try:
        file = archive.extractfile(info)
        assert file is not None
        with file:
            content = file.read()
        if len(content) != info.size:
            raise EOFError("it ends too early")
        return content
    except _BROKEN as error:
        raise _make_read_error(path, info.name, error) from error


def _check_name(path: Path, name: str) -> str:
    parts = PurePosixPath(name).parts
    outside = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or ".." in PureWindowsPath(name).parts
    if outside or not parts:
        raise DataError("its path leads out of the archive; repack it with relative paths", path, f"member {name!r}")
    return "/".join(parts)


def _make_kind_error(path: Path, name: str) -> DataError:
    return DataError("a link or device, which is not followed; pack the file itself", path, f"member {name!r}")


def _make_size_error(path: Path, name: str | None) -> DataError:
    return DataError(f"a file of more than {_LARGEST >> 30} GB", path, name and f"member {name!r}")


def _make_read_error(path: Path, name: str | None, error: BaseException) -> DataError:
    return DataError(
        f"it cannot be read: {error or type(error).__name__}; get the archive again", path, name and f"member {name!r}"
    )
