"""How processes know whether one that opened a run still lives.

Each writer holds a lock on a hidden file of its own in the run's folder. The system takes the lock away when the
process ends, however it ends: there are no process numbers that may be used again, no clocks, no leases. The lock is as
good as those that the database itself rests on.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path


class Hold:
    """A lock in ``folder`` that lasts until it is released or this process ends.

    A forked child shares it, and keeps it for as long as it lives; processes that are spawned do not.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f".writer-{secrets.token_hex(8)}"
        self._path = folder / self.name
        self._file = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Lets go."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def held(folder: Path, name: str) -> bool:
    """Whether the process that made the lock called ``name`` still holds it."""
    try:
        file = os.open(folder / name, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
