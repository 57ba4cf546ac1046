"""One pgdyno at a time works on a run: the folder is locked while trials are added to it.

The kernel drops the lock with the process that holds it, so a killed one never leaves it behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import Run


@contextmanager
def sole_runner(run: Run) -> Iterator[None]:
    """Hold the run alone; raises `PgdynoError` where another process does."""
    folder = os.open(run.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PgdynoError(
                f"run '{run.id}' is under way in another process",
                hint="wait for its end, or stop it; pgdyno experiment show says how far it is",
            ) from error
        yield
    finally:
        os.close(folder)
