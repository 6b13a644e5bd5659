"""Files of folders and archives, none of which may write anywhere, leave its folder or fill the memory."""

from __future__ import annotations

import gc
import gzip
import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paramixer.data.errors import DataError
from paramixer.data.formats import archives

_FILES = {"b/two.txt": b"2" * 3000, "a.txt": b"one", "b/empty": b"", "b/c/é.txt": b"three"}
_ARCHIVES = ["a.zip", "a.tar", "a.tar.gz", "a.tgz"]


def _pack(path, files=_FILES):
    """An archive of these files, with entries for folders too."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.mkdir("b")
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        archive.addfile(_entry("b", type=tarfile.DIRTYPE))
        for name, content in files.items():
            archive.addfile(_entry(name, size=len(content)), io.BytesIO(content))
    return path


def _entry(name, **fields):
    entry = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


def _read_all(path):
    return [(name, read()) for name, read in archives.walk(path)]


def _fails(path):
    with pytest.raises(DataError) as caught:
        _read_all(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


@pytest.mark.parametrize("name", _ARCHIVES)
def test_members_of_an_archive_come_in_its_order(tmp_path, name):
    path = _pack(tmp_path / name)
    assert archives.is_archive(path)
    assert _read_all(path) == list(_FILES.items())


@pytest.mark.parametrize("name", _ARCHIVES)
def test_members_can_be_read_later_in_any_order_and_the_archive_is_closed_afterwards(tmp_path, name):
    found = list(archives.walk(_pack(tmp_path / name)))
    assert {name: read() for name, read in reversed(found)} == _FILES
    del found
    gc.collect()
    held = [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.exists()]
    assert tmp_path / name not in held


def test_members_of_a_folder_are_sorted_and_links_to_folders_are_not_followed(tmp_path):
    for name, content in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "b" / "round").symlink_to(tmp_path)
    (tmp_path / "b" / "broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / "z.txt").symlink_to(tmp_path / "a.txt")
    os.mkfifo(tmp_path / "pipe")
    assert archives.is_archive(tmp_path)
    assert _read_all(tmp_path) == sorted([*_FILES.items(), ("z.txt", b"one")])


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_dots_and_double_slashes_in_names_are_cleaned(tmp_path, name):
    path = _pack(tmp_path / name, {"./x/y.txt": b"1", "x//./z.txt": b"2"})
    assert [name for name, _ in archives.walk(path)] == ["x/y.txt", "x/z.txt"]


@pytest.mark.parametrize("name", _ARCHIVES)
@pytest.mark.parametrize(
    "member",
    ["../out.txt", "a/../../out.txt", "/etc/out.txt", "..\\out.txt", "C:\\out.txt", "\\\\host\\out.txt", "a/.."],
)
def test_a_path_that_leaves_the_archive_is_refused(tmp_path, name, member):
    path = _pack(tmp_path / name, {"fine.txt": b"1", member: b"2"})
    assert _fails(path) == f", member {member!r}: its path leads out of the archive; repack it with relative paths"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(_entry("link", type=kind, linkname="/etc/passwd"))
    assert _fails(path).startswith(", member 'link': a link or device")


def test_links_in_a_zip_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert _fails(path).startswith(", member 'link': a link or device")


@pytest.mark.parametrize("name", _ARCHIVES)
def test_a_member_that_is_too_large_is_refused_before_it_is_read(tmp_path, name, monkeypatch):
    path = _pack(tmp_path / name)
    monkeypatch.setattr(archives, "_LARGEST", 2999)
    assert _fails(path) == ", member 'b/two.txt': a file of more than 0 GB"


def test_a_file_that_is_too_large_is_refused_in_a_folder_too(tmp_path):
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate((2 << 30) + 1)
    (_, read), *_ = archives.walk(tmp_path)
    with pytest.raises(DataError, match=r"a\.bin: a file of more than 2 GB"):
        read()


def test_a_zip_that_lies_about_a_size_unfolds_to_no_more_than_it_says(tmp_path):
    path = _pack(tmp_path / "a.zip", {"a": bytes(100_000)})
    whole = path.read_bytes()
    path.write_bytes(whole.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert ", member 'a': it cannot be read" in _fails(path)


@pytest.mark.parametrize("name", _ARCHIVES)
def test_an_archive_that_is_cut_off_is_an_error_wherever_it_is_cut(tmp_path, name):
    path = _pack(tmp_path / name)
    whole = path.read_bytes()
    # The zeros that fill up a tar are no part of what it holds; all but the first block may be missing.
    needed = len(whole.rstrip(b"\0")) + 512 if name == "a.tar" else len(whole)
    for length in {*range(0, needed, 97), needed - 1}:
        path.write_bytes(whole[:length])
        assert "it cannot be read" in _fails(path), length


def test_a_damaged_header_is_not_taken_for_the_end_of_a_tar(tmp_path):
    path = _pack(tmp_path / "a.tar")
    whole = bytearray(path.read_bytes())
    at = whole.index(b"b/empty")
    whole[at] ^= 1
    path.write_bytes(whole)
    assert "it is damaged" in _fails(path)


def test_an_encrypted_zip_is_an_error(tmp_path):
    path = _pack(tmp_path / "a.zip")
    whole = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = whole.index(b"b/two.txt") if mark == b"PK\x03\x04" else whole.rindex(b"b/two.txt")
        whole[whole.rindex(mark, 0, at) + flags] |= 1
    path.write_bytes(whole)
    assert ", member 'b/two.txt': it cannot be read" in _fails(path)


def test_what_is_no_archive_or_not_there_is_an_error(tmp_path):
    (tmp_path / "a.rar").write_bytes(b"")
    assert not archives.is_archive(tmp_path / "a.rar")
    assert "expected a folder or an archive" in _fails(tmp_path / "a.rar")
    assert "there is no such file" in _fails(tmp_path / "b.zip")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    contents = {name: _pack(folder / name).read_bytes() for name in _ARCHIVES}
    # A function, for Hypothesis warns of arguments that take long to print.
    return contents.__getitem__


_NAME = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\\\:"), min_size=1, max_size=9
)


@given(files=st.dictionaries(_NAME.filter(lambda name: name.strip(".")), st.binary(max_size=300), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_well_formed_archives_are_read_whole(tmp_path, name, files):
    assert _read_all(_pack(tmp_path / name, {f"b/{file}": content for file, content in files.items()})) == [
        (f"b/{file}", content) for file, content in files.items()
    ]


@given(
    edits=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4),
    cut=st.none() | st.integers(0, 4000),
    other=st.none() | st.binary(),
    squeezed=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_any_bytes_give_members_or_a_data_error(tmp_path, packed, name, edits, cut, other, squeezed):
    unpacked = packed("a.tar") if "tar" in name else packed(name)
    whole = bytearray(unpacked[: len(unpacked.rstrip(b"\0")) + 1024])
    for place, byte in edits:
        whole[place % len(whole)] = byte
    content = bytes(whole[:cut]) if other is None else other
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, 1) if name == "a.tar.gz" and squeezed else content)
    with suppress(DataError):
        for member, read in archives.walk(path):
            assert ".." not in member.split("/")
            assert isinstance(read(), bytes)
