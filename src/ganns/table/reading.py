"""Files to frames, a bounded number of rows at a time: CSV and TSV as text, Parquet with its types."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ganns.table.parsing import is_date

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_ROWS = 65_536
_COMMA = r"^(\s*[+-]?\d+),(\d+(?:[eE][+-]?\d+)?\s*)$"  # a number as spreadsheets write it that separate by semicolons
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def read(path: Path, separator: str | None = None) -> pl.DataFrame:
    """The whole table.

    Args:
        path: a .csv, .tsv or .parquet file with a header.
        separator: between columns; None: a comma in .csv, a tab in .tsv. With ";" numbers may have a decimal comma.
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
                f"{path}, line {records.line_num} has {len(record)} value{'s' * (len(record) > 1)} for {len(header)} "
                f"column{'s' * (len(header) > 1)}; correct that line, or its quotation marks."
            )
        held.append(record)
        if len(held) == rows:
            yield _frame(header, held, separator)
            held, yielded = [], True
    if held or not yielded:
        yield _frame(header, held, separator)


def _frame(header: list[str], records: list[list[str]], separator: str) -> pl.DataFrame:
    columns = zip(*records, strict=True) if records else ([] for _ in header)
    schema = dict.fromkeys(header, pl.String)
    frame = pl.DataFrame(dict(zip(header, map(list, columns), strict=True)), schema=schema)
    return frame.with_columns(pl.all().str.replace(_COMMA, "$1.$2")) if separator == ";" else frame


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
    if not any(names):
        raise ValueError(f"{path} is empty; give a table with a header and rows.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path} has more than one column {', '.join(map(repr, twice[:3]))}; give each its own name.")


def _parquet_batches(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            _check_names(path, file.schema_arrow.names)
            _check_kinds(path, file.schema_arrow)
            yielded = False
            for batch in file.iter_batches(rows):
                yield _from_arrow(batch)
                yielded = True
            if not yielded:
                yield _from_arrow(file.schema_arrow.empty_table())
    except (ArrowException, pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a whole Parquet file ({reason}); write it again.") from error


def _check_kinds(path: Path, schema: Any) -> None:
    """Refuse columns of kinds that cannot be features; polars takes some of them for an occasion to abort."""
    from pyarrow import types

    usable = (
        *(types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null),
        *(types.is_string, types.is_large_string, types.is_string_view),
        *(types.is_date, types.is_timestamp, types.is_time, types.is_duration),
    )
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_decimal256(kind) or not any(is_kind(kind) for is_kind in usable):
            raise ValueError(f"{path}: column {field.name!r} holds {kind}; give numbers, text, dates or booleans.")


def _from_arrow(batch: Any) -> pl.DataFrame:
    """A batch as a frame, once it is sure that nothing in it can make polars abort."""
    from pyarrow import table

    batch.validate(full=True)
    frame = pl.from_arrow(table(batch.columns, names=batch.schema.names))  # without metadata, which may be broken
    assert isinstance(frame, pl.DataFrame)
    # Beyond these years there are no words for a date.
    dates = pl.col(name for name, kind in frame.schema.items() if is_date(kind))
    return frame.with_columns(pl.when(dates.dt.year().is_between(1, 9999)).then(dates))
