"""Prepared data is made once, completely or not at all, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from paramixer.data import registry
from paramixer.data.errors import DataError
from paramixer.data.samples import Row
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import open_prepared, prepare
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary


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


def _prepared(source):
    vocabulary = Vocabulary(symbols=("<pad>", "a", "b"))

    def build(preparation):
        text = source.read_text()
        rows = [(split, Row(vocabulary.encode(text), 1, len(text))) for split in ("train", "validation", "test")]
        preparation.write(preparation.track(rows, "rows"), "uint8")
        return TaskInfo(
            name="t",
            preset="text",
            metric="accuracy",
            target="class",
            length=4,
            classes=("x", "y"),
            vocabulary=vocabulary,
        )

    return prepare("t", {"source": cache.identify(source)}, build)


def test_a_changed_source_is_prepared_anew(tmp_path, cache_folder):
    source = tmp_path / "a.txt"
    source.write_text("ab")
    first = _prepared(source)
    assert _prepared(source).fingerprint == first.fingerprint
    source.write_text("ba")
    # The same size; only the time tells.
    os.utime(source, ns=(1, 1))
    second = _prepared(source)
    assert second.train[0].inputs.tolist() == [2, 1]
    assert second.fingerprint != first.fingerprint
    assert len(_seen(cache_folder)) == 2


def test_the_fingerprint_follows_from_data_and_settings_and_not_from_places(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "b.txt").write_text("ab")
    first = _prepared(tmp_path / "a.txt")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "elsewhere"))
    second = _prepared(tmp_path / "b.txt")
    assert first.train.path.parent != second.train.path.parent
    assert first.fingerprint == second.fingerprint


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


def test_facts_are_read_back_as_they_were_written(tmp_path):
    (tmp_path / "a.txt").write_text("ab")
    first = _prepared(tmp_path / "a.txt")
    again = open_prepared(first.train.path.parent)
    for part in (
        "name",
        "preset",
        "metric",
        "target",
        "length",
        "classes",
        "vocabulary",
        "features",
        "settings",
        "notes",
    ):
        assert getattr(again, part) == getattr(first, part)
    assert again.fingerprint == first.fingerprint
    assert np.array_equal(again.test[0].inputs, first.test[0].inputs)
