"""Signals that come while something is cleaned up: the first waits, the second does not."""

from __future__ import annotations

import signal

import pytest

from pgdyno.servers.shielding import uninterrupted

pytestmark = pytest.mark.unit


def test_the_first_signal_waits_for_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("cleaned")
    assert done == ["cleaned"]


def test_the_second_signal_does_not_wait() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("cleaned")
    assert done == []


def test_nothing_is_left_of_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with uninterrupted():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
