"""Prepared data is made once, completely or not at all, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from paramixer.data import registry
from paramixer.data.errors import DataError
from paramixer.data.storage import cache


def _seen(folder):
    """What is in the cache beside locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def _python(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_second_preparation_does_nothing(cache_folder):
    calls = []

    def build(folder):
        calls.append(folder)
        (folder / "data").write_text("x")

    first = cache.prepare("name", {"a": 1}, build)
    assert cache.prepare("name", {"a": 1}, build) == first
    assert len(calls) == 1
    assert (first / "data").read_text() == "x"
    assert _seen(cache_folder) == [first.name]
    assert first.name.startswith("name-")


def test_another_key_or_format_is_another_preparation(cache_folder, monkeypatch):
    def build(folder):
        (folder / "data").write_text("x")

    cache.prepare("name", {"a": 1}, build)
    cache.prepare("name", {"a": 2}, build)
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    cache.prepare("name", {"a": 1}, build)
    assert len(_seen(cache_folder)) == 3


@pytest.mark.parametrize(
    "error", [RuntimeError("broken"), KeyboardInterrupt(), DataError("bad row", "a.csv", "line 3")]
)
def test_a_preparation_that_fails_leaves_nothing_and_can_be_repeated(cache_folder, error):
    def fail(folder):
        (folder / "data").write_text("half")
        raise error

    with pytest.raises(type(error)):
        cache.prepare("name", {}, fail)
    assert _seen(cache_folder) == []
    made = cache.prepare("name", {}, lambda folder: (folder / "data").write_text("whole") and None)
    assert (made / "data").read_text() == "whole"


def test_a_killed_preparation_leaves_nothing_half_made_and_the_next_one_clears_up(cache_folder):
    process = _python(
        """
        import sys, time
        from paramixer.data.storage import cache

        def build(folder):
            (folder / "data").write_text("half")
            print("begun", flush=True)
            time.sleep(60)

        cache.prepare("name", {}, build)
        """
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = _seen(cache_folder)
    assert left.startswith(".name-"), "what is half made must not look like prepared data"
    made = cache.prepare("name", {}, lambda folder: (folder / "data").write_text("whole") and None)
    assert (made / "data").read_text() == "whole"
    assert _seen(cache_folder) == [made.name]


def test_two_processes_prepare_once_and_both_get_it(cache_folder):
    process = _python(
        """
        import os, sys, time
        from paramixer.data.storage import cache

        def build(folder):
            print("building", flush=True)
            time.sleep(0.5)
            (folder / "data").write_text("whole")

        other = os.fork()
        made = cache.prepare("name", {}, build)
        print((made / "data").read_text(), flush=True)
        if other:
            os.waitpid(other, 0)
        """
    )
    assert process.communicate()[0].split() == ["building", "whole", "whole"]
    assert len(_seen(cache_folder)) == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_said_with_the_remedy(cache_folder, number):
    def build(folder):
        (folder / "data").write_text("half")
        raise OSError(number, os.strerror(number))

    with pytest.raises(DataError, match=f"{cache_folder}: no space left .* PARAMIXER_CACHE"):
        cache.prepare("name", {}, build)
    assert _seen(cache_folder) == []


def test_other_faults_of_the_system_are_not_called_a_full_disk():
    def build(folder):
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        cache.prepare("name", {}, build)


def test_a_file_that_outgrows_its_limit_leaves_nothing(tmp_path, cache_folder):
    """The system refuses to write on, first at a file's very beginning and then in the middle of it."""
    source = tmp_path / "own.csv"
    source.write_text("text,label\n" + "".join(f"{'ab' * 500} {i},{i % 2}\n" for i in range(300)))
    process = _python(
        """
        import resource, sys
        from paramixer.data import DataError, load
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        for limit in (200, 50_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
            try:
                load(sys.argv[1])
            except DataError as error:
                print(error)
        """,
        source,
    )
    answers = process.communicate()[0].splitlines()
    assert [answer.split(";")[0] for answer in answers] == [
        f"{cache_folder}: no space left while writing (File too large)"
    ] * 2
    assert _seen(cache_folder) == []
    assert len(registry.load(str(source)).train) == 240


def test_the_identity_of_a_folder_sees_every_file(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("1")
    first = cache.identify(tmp_path)
    assert cache.identify(tmp_path) == first
    (tmp_path / "sub" / "a").write_text("12")
    second = cache.identify(tmp_path)
    (tmp_path / "sub" / "b").write_text("")
    assert len({str(found) for found in (first, second, cache.identify(tmp_path))}) == 3
    with pytest.raises(DataError, match="there is no such file or folder"):
        cache.identify(tmp_path / "nothing")


def test_the_folder_is_the_one_named_or_the_users_cache(monkeypatch, cache_folder):
    assert cache.find_folder() == cache_folder
    monkeypatch.delenv("PARAMIXER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.find_folder() == Path("/somewhere/paramixer")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.find_folder() == Path.home() / ".cache" / "paramixer"
