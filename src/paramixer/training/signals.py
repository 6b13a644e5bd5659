"""Ctrl-C and SIGTERM as a wish, heard between two steps, so that what is saved is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_WISHES = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def asked_to_stop() -> Iterator[dict[str, str]]:
    """A dictionary that gets an entry when somebody asks to stop; a second Ctrl-C stops at once."""
    wish: dict[str, str] = {}

    def heard(number: int, frame: FrameType | None) -> None:
        if wish:
            raise KeyboardInterrupt
        wish["signal"] = signal.Signals(number).name

    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = {number: signal.signal(number, heard) for number in _WISHES}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
