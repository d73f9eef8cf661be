"""Files written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside the path, which takes its place in one move once it is complete and on disk.

    Readers see what was there before or all of the new, never half of one. After an error neither the file nor the
    folders that were made for it are left. A process that is killed leaves a file whose name begins with a point and
    ends in `.part`.
    """
    new_folders = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        for folder in new_folders:
            with suppress(OSError):  # somebody else put something there
                folder.rmdir()
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Put content at a path in one move (`replacing`)."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
