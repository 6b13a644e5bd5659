"""Ctrl-C and SIGTERM stop training between two steps, so that what is saved is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from paramixer.training.loop import Loop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupt_on_signal(loop: Loop) -> Iterator[None]:
    """Interrupt the loop on the first signal; the second one stops at once. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if loop.interruption is not None:
            raise KeyboardInterrupt
        loop.interrupt(signal.Signals(number).name)

    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
