"""Cleaning up to its end: Ctrl-C and termination wait until what was started is stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_DELAYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay the first signal until the block has ended; a second one interrupts it after all.

    Signals reach the main thread alone, so elsewhere there is nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def delay(number: int, frame: FrameType | None) -> None:
        if waiting:
            raise KeyboardInterrupt
        waiting.append(number)

    before = {number: signal.signal(number, delay) for number in _DELAYED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(signal.Signals(waiting[0]))
