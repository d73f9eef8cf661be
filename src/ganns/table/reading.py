"""Files to frames, a bounded number of rows at a time: CSV and TSV as text, Parquet with its types."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_ROWS = 65_536
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def read(path: Path, separator: str | None = None) -> pl.DataFrame:
    """The whole table.

    Args:
        path: a .csv, .tsv or .parquet file with a header.
        separator: between columns; None: a comma in .csv, a tab in .tsv.
    """
    frame = pl.concat(list(batches(path, separator)))
    if frame.height == 0:
        raise ValueError(f"{path} has a header but no rows; give a table with some.")
    return frame


def batches(path: Path, separator: str | None = None, rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """The table in pieces of so many rows, at least one, which may be empty; only one piece is in memory."""
    suffix = path.suffix.lower()
    if separator is not None and len(separator) != 1:
        raise ValueError(f"separator={separator!r}: give one character, such as ';'.")
    if suffix not in (*SEPARATORS, *_PARQUET):
        raise ValueError(f"{path} is of no known kind; give a .csv, .tsv or .parquet file.")
    with open(path, "rb") as file:  # a missing or unreadable file is told apart from a broken one
        if not file.read(1):
            raise ValueError(f"{path} is empty; give a table with a header and rows.")
    if suffix in _PARQUET:
        return _parquet_batches(path, rows)
    return _text_batches(path, separator or SEPARATORS[suffix], rows)


def _text_batches(path: Path, separator: str, rows: int) -> Iterator[pl.DataFrame]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            records = csv.reader(_without_nul(path, file), delimiter=separator, strict=True)
            try:
                yield from _frames(path, records, separator, rows)
            except csv.Error as error:
                raise ValueError(
                    f"{path}, line {records.line_num}: {error}; look for a quotation mark that is not closed."
                ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte 0x{error.object[error.start]:02x}); save it with that encoding."
        ) from error


def _without_nul(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise ValueError(f"{path}, line {number} holds a zero byte; save it as UTF-8 text.")
        yield line


def _frames(path: Path, records: Any, separator: str, rows: int) -> Iterator[pl.DataFrame]:
    header = _header(path, next((record for record in records if record), []), separator)
    held: list[list[str]] = []
    yielded = False
    for record in records:
        if not record and len(header) > 1:
            continue  # a blank line
        record = record or [""]
        if len(record) != len(header):
            raise ValueError(
                f"{path}, line {records.line_num} has {len(record)} values for {len(header)} columns; correct that "
                "line, or its quotation marks."
            )
        held.append(record)
        if len(held) == rows:
            yield _frame(header, held)
            held, yielded = [], True
    if held or not yielded:
        yield _frame(header, held)


def _frame(header: list[str], records: list[list[str]]) -> pl.DataFrame:
    columns = zip(*records, strict=True) if records else ([] for _ in header)
    schema = dict.fromkeys(header, pl.String)
    return pl.DataFrame(dict(zip(header, map(list, columns), strict=True)), schema=schema)


def _header(path: Path, names: list[str], separator: str) -> list[str]:
    names = [name.strip() for name in names]
    if len(names) == 1:
        for other, word in _NAMES.items():
            if other != separator and other in names[0]:
                raise ValueError(
                    f"{path} seems to be separated by {word}: its header is one column, {names[0][:60]!r}; give "
                    f"--separator {other!r}."
                )
    _check_names(path, names)
    return names


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise ValueError(f"{path} is empty; give a table with a header and rows.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path} has more than one column {', '.join(map(repr, twice[:3]))}; give each its own name.")


def _parquet_batches(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            _check_names(path, file.schema_arrow.names)
            yielded = False
            for batch in file.iter_batches(rows):
                yield _from_arrow(path, batch)
                yielded = True
            if not yielded:
                yield _from_arrow(path, file.schema_arrow.empty_table())
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a whole Parquet file ({reason}); write it again.") from error


def _from_arrow(path: Path, batch: object) -> pl.DataFrame:
    frame = pl.from_arrow(batch)  # type: ignore[arg-type]
    assert isinstance(frame, pl.DataFrame)
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise ValueError(f"{path}: column {name!r} holds {kind}; give numbers, text, dates or booleans.")
    return frame
