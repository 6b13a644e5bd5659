"""Ctrl-C at any moment: one line and exit code 130, also while packages are imported."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handle_interrupts(*, until_exit: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, and end the process at once where an import would swallow or disguise it.

    Args:
        until_exit: whether the process ends with this context. If so, an import is cut short, and Ctrl-C after the
            context does nothing; if not, the handler from before is restored.
    """
    handler = signal.getsignal(signal.SIGINT)
    # A caller's own handler stays, and so does SIG_IGN, which nohup and background jobs set.
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _leave_or_raise if until_exit else handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if until_exit else handler)


def _leave_or_raise(number: int, frame: FrameType | None) -> None:
    # An extension module that is being initialized may turn the exception into an ImportError, or ignore it.
    if _importing(frame):
        # No finally is reached from here. Before this module is imported, nothing has been written.
        if files := sys.modules.get("paramixer.files"):
            files.remove_unfinished()
        print("paramixer: interrupted", file=sys.stderr, flush=True)
        os._exit(130)
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
