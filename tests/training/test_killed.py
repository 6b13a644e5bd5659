"""Killed in the middle of any write, sync or rename, or at any time: a resumed run ends as if nothing had happened."""

from __future__ import annotations

import dataclasses
import io
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

from paramixer.training.options import TrainingOptions
from training import tiny
from training.test_fit import timeless

# A forked process must not have threads of its own to wait for.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def forked(action) -> int:
    """Run in a process of its own; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return status


class Dying:
    """Counts writes, syncs, renames and removals below a folder, and dies in the one of the given number."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.left = str(folder), number

    def here(self) -> bool:
        self.left -= 1
        return self.left == 0

    def install(self) -> None:
        real_open, real_fsync, real_rename, real_replace = io.open, os.fsync, os.rename, os.replace
        real_rmdir = os.rmdir

        def die() -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def opened(file, mode="r", *rest, **more):
            found = real_open(file, mode, *rest, **more)
            if any(letter in mode for letter in "wax") and str(file).startswith(self.folder):
                real_write = found.write

                def write(content):
                    if self.here():
                        real_write(content[: len(content) // 2])
                        found.flush()
                        die()
                    return real_write(content)

                return Written(found, write)
            return found

        def dying(real):
            def call(*arguments, **more):
                if self.here():
                    die()
                return real(*arguments, **more)

            return call

        io.open = opened
        os.fsync, os.rename, os.replace, os.rmdir = map(dying, (real_fsync, real_rename, real_replace, real_rmdir))


class Written:
    """A file whose write is watched."""

    def __init__(self, file, write) -> None:
        self._file, self.write = file, write

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


def finished_like(whole: Path, folder: Path) -> bool:
    """The same weights, the same best model, the same metrics."""
    tensors = [next((run / "state").iterdir()) / "tensors.safetensors" for run in (whole, folder)]
    models = [run / "model" / "model.safetensors" for run in (whole, folder)]
    return (
        tensors[0].read_bytes() == tensors[1].read_bytes()
        and models[0].read_bytes() == models[1].read_bytes()
        and timeless(whole) == timeless(folder)
    )


def resumed(folder: Path, options: TrainingOptions = tiny.OPTIONS) -> None:
    """Go on, or begin again where the run was killed before it had a record."""
    resume = (folder / "record.json").exists()
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    assert forked(lambda: tiny.run(folder, options, resume)) == 0


# One checkpoint in the middle, one at the end, and everything before and after them.
SHORT = dataclasses.replace(tiny.OPTIONS, steps=4, evaluate_every=3, log_every=2)


# A prime stride meets writes, syncs and renames of all files in turn.
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "every"])
def test_killed_at_writes_syncs_and_renames(stride, tmp_path):
    assert forked(lambda: tiny.run(tmp_path / "whole", SHORT)) == 0
    number, killed = 0, 0
    while True:
        number += stride
        folder = tmp_path / f"run-{number}"

        def action(folder=folder, number=number):
            Dying(folder, number).install()
            tiny.run(folder, SHORT)

        status = forked(action)
        if status == 0:
            break
        assert os.WIFSIGNALED(status), f"failed by itself at {number}"
        killed += 1
        resumed(folder, SHORT)
        assert finished_like(tmp_path / "whole", folder), f"killed at {number}"
        shutil.rmtree(folder)
    assert killed > 30 // stride, "a run has at least so many moments to die in"


@pytest.mark.slow
def test_killed_at_random_times(tmp_path):
    start = time.monotonic()
    assert forked(lambda: tiny.run(tmp_path / "whole")) == 0
    took = time.monotonic() - start
    chances = random.Random(0)
    for number in range(5):
        folder = tmp_path / f"run-{number}"
        child = os.fork()
        if child == 0:
            tiny.run(folder)
            os._exit(0)
        time.sleep(chances.uniform(0, took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        resumed(folder)
        assert finished_like(tmp_path / "whole", folder)
