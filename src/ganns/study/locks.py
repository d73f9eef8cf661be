"""Locks between processes that share a folder; a process that dies lets go of its own."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock that a file stands for, or learn that somebody else does: True or False. Nobody waits.

    The file is gone when nobody holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR)
    try:
        mine = _take(handle) and _still(handle, path)
        try:
            yield mine
        finally:
            if mine:
                path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still(handle: int, path: Path) -> bool:
    """Whether the path is still this very file: its last holder may have deleted it in the meantime."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
