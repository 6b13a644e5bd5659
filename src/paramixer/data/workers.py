"""Work shared between processes: results come in the order of the jobs, whatever the number of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from threading import Thread
from types import ModuleType
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

# A process takes seconds to start; fewer jobs than this are sooner done without one.
_FEW_JOBS = 6


def in_order(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int | None = None) -> Iterator[Result]:
    """``work`` of every job, one after the other.

    Args:
        work: a function of a module, so that another process can find it.
        jobs: of half a second or so each; few of them are done in this process.
        workers: how many processes; by default one a core. What comes out does not depend on it.
    """
    if workers is None:
        workers = 1 if len(jobs) < _FEW_JOBS else cores()
    workers = min(workers, len(jobs))
    # A worker of a data loader may not have children of its own.
    if workers < 2 or multiprocessing.current_process().daemon:
        yield from map(work, jobs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_prepare)
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            with _apart():
                waiting.append(pool.submit(work, job))
            # Results that nobody has asked for yet must not fill the memory.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _apart() -> Iterator[None]:
    """Processes that are started in here know nothing of the user's script, nor of Ctrl-C.

    They would run the script again, to have its definitions, of which they need none; and an interrupt is the parent's
    business, also before they could say so themselves.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if masked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _prepare() -> None:
    """Where the parent was killed, nobody would end this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
