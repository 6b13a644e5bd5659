"""Work shared between processes: in order, without the user's script, and ended with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from paramixer.data.workers import map_in_order

# Without the usual guard for __main__: a process that ran the script again would fail, or never end.
SCRIPT = """
from paramixer.data.tasks.listops import Job, grow_trees
from paramixer.data.workers import map_in_order
print("begun", flush=True)
jobs = [Job("train", first, first + 100, 0, 2000) for first in range(0, 100 * {jobs}, 100)]
for number, trees in enumerate(map_in_order(grow_trees, jobs, 2)):
    print(number, trees.tokens.sum(), flush=True)
"""


@pytest.fixture
def script(tmp_path):
    """Starts the script in a process group of its own."""
    started = []

    def start(jobs: int) -> subprocess.Popen:
        file = tmp_path / "script.py"
        file.write_text(SCRIPT.format(jobs=jobs))
        process = subprocess.Popen(
            [sys.executable, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Whoever runs the tests in the background has told them to ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def gone_within(group: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive(group) and time.monotonic() < end:
        time.sleep(0.1)
    return not alive(group)


def test_results_come_in_the_order_of_the_jobs():
    assert list(map_in_order(str, range(50), 1)) == list(map(str, range(50)))
    assert list(map_in_order(str, [], 2)) == []


def test_an_error_of_a_job_is_raised_at_its_place():
    found = map_in_order(int, ["1", "2", "x", "4"], 1)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="x"):
        next(found)


def test_a_script_without_a_guard_is_not_run_again_by_its_processes(script):
    process = script(4)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = out.splitlines()
    assert lines[0] == "begun"
    assert [line.split()[0] for line in lines[1:]] == ["0", "1", "2", "3"]
    assert err == ""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while processes start", "while they work"])
def test_ctrl_c_ends_all_processes_without_a_word_from_them(script, when):
    process = script(5000)
    assert process.stdout.readline() == "begun\n"
    if when == "while they work":
        assert process.stdout.readline().startswith("0 ")
    else:
        time.sleep(0.7)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert err.count("KeyboardInterrupt") == 1
    assert gone_within(process.pid, 10)


@pytest.mark.slow
def test_processes_end_when_their_parent_is_killed(script):
    process = script(5000)
    assert process.stdout.readline() == "begun\n"
    assert process.stdout.readline().startswith("0 ")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone_within(process.pid, 20)
