"""Values of a column as text, numbers or dates, whatever the file gave."""

import polars as pl

_GAPS = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "?", "-")
_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
)
_TRIED = 1000  # values by which a format is looked for
_FIRST_YEAR = 1000  # of a year with four digits; otherwise 24 would be one too


def as_text(values: pl.Series) -> pl.Series:
    """Text without the blanks around it, null for gaps; whole numbers without a point, booleans in small letters.

    >>> as_text(pl.Series([" red", "", "TRUE", "n/a"])).to_list()
    ['red', None, 'true', None]
    """
    if values.dtype == pl.Duration or values.dtype.is_decimal():
        values = as_numbers(values)
    if values.dtype.is_float():
        whole = values.is_finite() & (values == values.round()) & (values.abs() < 2**53)
        exact = (
            pl.when(whole).then(values.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(values.cast(pl.String))
        )
        values = pl.select(pl.when(values.is_not_nan()).then(exact)).to_series().rename(values.name)
    text = values.cast(pl.String).str.strip_chars()
    small = text.str.to_lowercase()
    kept = pl.when(small.is_in(["true", "false"])).then(small).otherwise(text)
    return pl.select(pl.when(~small.is_in(_GAPS)).then(kept)).to_series().rename(values.name)


def as_numbers(values: pl.Series) -> pl.Series:
    """Float64; null for gaps and for what is no number.

    >>> as_numbers(pl.Series(["1.5", " 2", "NA", "x"])).to_list()
    [1.5, 2.0, None, None]
    """
    if values.dtype == pl.Time or values.dtype == pl.Duration:
        seconds = 1e-9 if values.dtype == pl.Time else {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}[values.dtype.time_unit]  # type: ignore[attr-defined]
        return values.cast(pl.Int64).cast(pl.Float64) * seconds
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        return values.cast(pl.Float64, strict=False).fill_nan(None)
    if is_date(values.dtype):
        return values.dt.epoch("us").cast(pl.Float64) / 86_400e6
    return as_text(values).cast(pl.Float64, strict=False).fill_nan(None)


def as_dates(values: pl.Series, format: str | None) -> pl.Series:
    """Times in UTC to the microsecond, without a zone; null for gaps and for what is no date.

    >>> as_dates(pl.Series(["24.12.2024", "soon"]), "%d.%m.%Y").to_list()
    [datetime.datetime(2024, 12, 24, 0, 0), None]
    """
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone:
        values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if is_date(values.dtype):
        return values.cast(pl.Datetime("us"), strict=False)
    text = as_text(values)
    found = format or date_format(text.drop_nulls(), 0.0)
    if found is None:
        return pl.Series(values.name, [None] * len(values), dtype=pl.Datetime("us"))
    return _read(text, found)


def is_date(kind: pl.DataType) -> bool:
    """Whether a column of this type holds dates or times."""
    return kind == pl.Date or kind == pl.Datetime


def date_format(text: pl.Series, share: float) -> str | None:
    """The format that reads most values, at least this share and one; None if there is none.

    Where days and months cannot be told apart, the month comes first.

    >>> date_format(pl.Series(["12/24/2024", "01/02/2025"]), 0.9)
    '%m/%d/%Y'
    """
    # From the whole length: the first rows of a log may all be of one day, which is a month as well.
    tried = text.gather_every(max(1, len(text) // _TRIED))
    counts = {format: len(tried) - _read(tried, format).null_count() for format in _FORMATS}
    best = max(counts, key=lambda format: counts[format])
    return best if counts[best] and counts[best] >= share * len(tried) else None


def _read(text: pl.Series, format: str) -> pl.Series:
    times = text.str.to_datetime(format, strict=False, time_unit="us", time_zone="UTC").dt.replace_time_zone(None)
    return pl.select(pl.when(times.dt.year() >= _FIRST_YEAR).then(times)).to_series().rename(text.name)
