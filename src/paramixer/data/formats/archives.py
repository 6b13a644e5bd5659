"""The files in a folder or an archive, one after another and without unpacking any."""

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
# No file of any task comes near; a member that claims or unfolds to more is damage, or made to fill the memory.
_LARGEST = 2 << 30
# What the standard library's readers raise for damaged archives.
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, LookupError, OverflowError, NotImplementedError, RuntimeError, MemoryError),
)

Member = tuple[str, Callable[[], bytes]]


def is_archive(path: Path) -> bool:
    """Whether it is a folder, or the name says that it is an archive."""
    return path.is_dir() or path.name.lower().endswith((_ZIP, *_TAR_MODES))


def members(path: Path) -> Iterator[Member]:
    """Names of all regular files in a folder, .zip, .tar, .tar.gz or .tgz, each with a function that reads it.

    Names are relative with "/" between parts; a folder's are sorted, an archive's in its own order, which is also the
    order in which a packed tar is quick to read. Files may be read later, in any order.

    A folder's links to files are followed, for the user made them; links to folders, and what is no file, are passed
    over. In an archive, a link, a device, a path that leaves the archive or a file of more than 2 GB is an error.
    """
    name = path.name.lower()
    if path.is_dir():
        return _in_folder(path)
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    if name.endswith(_ZIP):
        return _in_zip(path)
    for suffix, mode in _TAR_MODES.items():
        if name.endswith(suffix):
            return _in_tar(path, mode)
    raise DataError(f"wanted is a folder or an archive named {_ZIP}, {', '.join(_TAR_MODES)}", path)


def _in_folder(path: Path) -> Iterator[Member]:
    found = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    named = sorted((file.relative_to(path).as_posix(), file) for file in found)
    for name, file in named:
        if file.is_file():
            yield name, partial(_file, file)


def _file(file: Path) -> bytes:
    try:
        if file.stat().st_size > _LARGEST:
            raise _too_large(file, None)
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"it cannot be read: {error.strerror}", file) from error


def _in_zip(path: Path) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise _broken(path, None, error) from error
    # Not closed here, for its members may be read later; a ZipFile closes itself when nothing holds it any more.
    for info in archive.infolist():
        if info.is_dir():
            continue
        name = _safe(path, info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _no_file(path, name)
        if info.file_size > _LARGEST:
            raise _too_large(path, name)
        yield name, partial(_zipped, path, archive, info)


def _zipped(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        # It unfolds to no more than the size that was checked, whatever the packed data says.
        with archive.open(info) as file:
            content = file.read(info.file_size)
            if len(content) < info.file_size:
                raise EOFError("it ends too early")
            return content
    except _BROKEN as error:
        raise _broken(path, info.filename, error) from error


class _Tar(tarfile.TarFile):
    """Closes itself when nothing holds it any more, as a ZipFile does."""

    members: list[tarfile.TarInfo]

    def __del__(self) -> None:
        self.close()


def _in_tar(path: Path, mode: str) -> Iterator[Member]:
    archive = _opened_tar(path, mode)
    while (info := _next(path, archive)) is not None:
        if info.isdir():
            continue
        name = _safe(path, info.name)
        if not info.isreg():
            raise _no_file(path, name)
        if info.size > _LARGEST:
            raise _too_large(path, name)
        yield name, partial(_tarred, path, archive, info)


def _opened_tar(path: Path, mode: str) -> _Tar:
    try:
        archive = _Tar.open(path, mode)  # type: ignore[call-overload]
    except _BROKEN as error:
        raise _broken(path, None, error) from error
    assert isinstance(archive, _Tar)
    return archive


def _next(path: Path, archive: _Tar) -> tarfile.TarInfo | None:
    try:
        info = archive.next()
        # The archive would keep every member it has passed, some hundred MB for a million of them.
        archive.members = []
        if info is None:
            _check_end(archive)
    except _BROKEN as error:
        raise _broken(path, None, error) from error
    return info


def _check_end(archive: _Tar) -> None:
    """A tar ends with a block of zeros; tarfile also takes any damage after the first member for the end."""
    file = archive.fileobj
    assert file is not None
    file.seek(archive.offset)
    block = file.read(tarfile.BLOCKSIZE)
    if block != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it is damaged" if block else "it ends too early")
    # A gzip's checksum stands at its end, behind the zeros that fill up the last block.
    while file.read(1 << 20):
        pass


def _tarred(path: Path, archive: _Tar, info: tarfile.TarInfo) -> bytes:
    try:
        file = archive.extractfile(info)
        assert file is not None
        with file:
            content = file.read()
        if len(content) != info.size:
            raise EOFError("it ends too early")
        return content
    except _BROKEN as error:
        raise _broken(path, info.name, error) from error


def _safe(path: Path, name: str) -> str:
    parts = PurePosixPath(name).parts
    outside = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or ".." in PureWindowsPath(name).parts
    if outside or not parts:
        raise DataError("its path leads out of the archive; it was not read", path, f"member {name!r}")
    return "/".join(parts)


def _no_file(path: Path, name: str) -> DataError:
    return DataError("a link or device, which is not followed; pack the file itself", path, f"member {name!r}")


def _too_large(path: Path, name: str | None) -> DataError:
    return DataError(f"a file of more than {_LARGEST >> 30} GB", path, name and f"member {name!r}")


def _broken(path: Path, name: str | None, error: BaseException) -> DataError:
    return DataError(
        f"it cannot be read: {error or type(error).__name__}; get the archive anew", path, name and f"member {name!r}"
    )
