"""Frames to a file, piece by piece: whole in the end, or not there at all."""

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from ganns.files import replacing
from ganns.table.reading import SEPARATORS


def check_place(path: Path) -> None:
    """Refuse early a file that could not be written later."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} exists and is no ordinary file; choose another place for the output.")
    existing = next((folder for folder in path.absolute().parents if folder.exists()), path.parent)
    if not existing.is_dir():
        raise ValueError(f"{existing} is a file, so {path} cannot be inside it; choose another place.")
    with tempfile.TemporaryFile(dir=existing):
        pass


def write_frames(frames: Iterable[pl.DataFrame], path: Path | None, wrote: Callable[[pl.DataFrame], None]) -> None:
    """Write frames as one table.

    Args:
        frames: all with the same columns.
        path: a .csv, .tsv or .parquet file; None: CSV to the standard output.
        wrote: called with each frame that is written.
    """
    if path is None:
        _write_text(frames, sys.stdout.buffer, ",", wrote)
        return
    check_kind(path)
    with replacing(path) as temporary:
        if path.suffix.lower() in SEPARATORS:
            with open(temporary, "wb") as file:
                _write_text(frames, file, SEPARATORS[path.suffix.lower()], wrote)
        else:
            _write_parquet(frames, temporary, wrote)


def check_kind(path: Path) -> None:
    """Refuse a kind of file that cannot be written."""
    if path.suffix.lower() not in (*SEPARATORS, ".parquet"):
        raise ValueError(f"{path} is of no known kind; name a .csv, .tsv or .parquet file.")


def _write_text(frames: Iterable[pl.DataFrame], file: object, separator: str, wrote: Callable) -> None:
    for number, frame in enumerate(frames):
        text = frame.write_csv(include_header=number == 0, separator=separator)
        file.write(text.encode())  # type: ignore[attr-defined]
        wrote(frame)


def _write_parquet(frames: Iterable[pl.DataFrame], path: Path, wrote: Callable) -> None:
    from pyarrow.parquet import ParquetWriter

    writer = None
    try:
        for frame in frames:
            table = frame.to_arrow()
            writer = writer or ParquetWriter(path, table.schema)
            writer.write_table(table)
            wrote(frame)
    finally:
        if writer:
            writer.close()
