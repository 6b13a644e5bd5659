"""Work shared between processes. Results come in the order of the jobs, for any number of processes."""

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

# A process takes seconds to start, so fewer jobs than this run in this process.
_FEW_JOBS = 6


def map_in_order(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int | None = None) -> Iterator[Result]:
    """Yield ``work(job)`` for every job, in order.

    Args:
        work: a function at the top level of a module, so that another process can import it.
        jobs: about half a second of work each. Few of them run in this process.
        workers: number of processes; by default one per core. The results do not depend on it.
    """
    if workers is None:
        workers = 1 if len(jobs) < _FEW_JOBS else count_cores()
    workers = min(workers, len(jobs))
    # A data loader's worker may not start processes.
    if workers < 2 or multiprocessing.current_process().daemon:
        yield from map(work, jobs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker)
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            with _isolate():
                waiting.append(pool.submit(work, job))
            # Results that are not read yet must not fill the memory.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _isolate() -> Iterator[None]:
    """Hide the user's script and Ctrl-C from processes that are started in this context.

    They would import the script again, though they need nothing from it. The parent handles an interrupt, also before
    a new process could set a handler.
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


def _start_worker() -> None:
    """Ignore Ctrl-C, and end when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
