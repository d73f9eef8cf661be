"""Columns of a table to numbers: what each holds, learned from training rows, and what is odd about others.

Every kind of column is a small value of plain numbers and texts, so that a model can be saved as JSON.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ganns.table.parsing import as_dates, as_numbers, as_text, date_format, is_date

_MOST_LEVELS = 30  # of a category that get a number of their own; rarer ones share none
_FAR = 0.5  # ranges beyond the training range, from where a number counts as far outside
_FARTHEST = 10.0  # ranges beyond the training range that a network is shown at most
_NUMBERING = ("", "__index_level_0__")  # how pandas and R head row numbers in a CSV, and pandas in Parquet
_LARGEST = 1e150  # number whose square can be summed over rows
_MOSTLY = 0.95  # share of readable values that makes a column of text one of numbers or dates


@dataclass(frozen=True)
class Column(ABC):
    """One column: how its values become numbers.

    Args:
        name: its heading.
        gaps: whether training rows had gaps in it; then whether there is one becomes a feature.
    """

    name: str
    gaps: bool
    kind: ClassVar[str]

    @abstractmethod
    def encode(self, values: pl.Series) -> np.ndarray:
        """Features (N, k), all finite."""

    @abstractmethod
    def features(self) -> list[str]:
        """Names of the k features."""

    @abstractmethod
    def odd(self, values: pl.Series) -> pl.Series:
        """What is odd about each value, in words; null where nothing is."""

    @abstractmethod
    def describe(self) -> str:
        """What it holds, in words."""


@dataclass(frozen=True)
class Number(Column):
    """Numbers; a gap is filled with the median.

    Args:
        name: see `Column`.
        gaps: see `Column`.
        low: least value of the training rows.
        high: largest.
        median: of the training rows.
    """

    low: float
    high: float
    median: float
    kind = "number"

    def encode(self, values: pl.Series) -> np.ndarray:
        """The value, at most ten ranges outside the training range, and whether there is none."""
        numbers = self._read(values)
        width = self.high - self.low
        near = numbers.clip(self.low - _FARTHEST * width, self.high + _FARTHEST * width).fill_null(self.median)
        return _with_gaps(near.to_numpy().reshape(-1, 1), numbers, self.gaps)

    def features(self) -> list[str]:
        """The column itself, and whether there is a gap."""
        return [self.name, *([f"{self.name} is a gap"] if self.gaps else [])]

    def odd(self, values: pl.Series) -> pl.Series:
        """Unreadable or missing values, and those far outside."""
        numbers = self._read(values)
        width = self.high - self.low
        outside = (numbers < self.low - _FAR * width) | (numbers > self.high + _FAR * width)
        gap = _gap(self.name, values, numbers, self.gaps)
        words = pl.concat_str(
            pl.lit(f"{self.name} "), pl.lit(as_text(values)), pl.lit(f" is far outside {self.range()}")
        )
        return pl.select(pl.when(outside).then(words).otherwise(pl.lit(gap))).to_series()

    def range(self) -> str:
        """From where to where the training rows go."""
        return f"{self.low:.4g} to {self.high:.4g}"

    def describe(self) -> str:
        """Their range."""
        return f"numbers, {self.range()}"

    def _read(self, values: pl.Series) -> pl.Series:
        numbers = as_numbers(values)
        return pl.select(pl.when(numbers.is_finite()).then(numbers)).to_series()


@dataclass(frozen=True)
class Date(Column):
    """Dates or times: days since 1970, and where in the year, the week and the day.

    Args:
        name: see `Column`.
        gaps: see `Column`.
        low: first day of the training rows, since 1970.
        high: last day.
        median: of the days.
        format: how text is read, as in strftime.
        clock: whether there are times of day.
    """

    low: float
    high: float
    median: float
    format: str | None
    clock: bool
    kind = "date"

    def encode(self, values: pl.Series) -> np.ndarray:
        """Days, and sine and cosine of each cycle."""
        read = as_dates(values, self.format)
        days = _days(read)
        width = max(self.high - self.low, 1.0)
        near = days.clip(self.low - _FARTHEST * width, self.high + _FARTHEST * width).fill_null(self.median).to_numpy()
        turns = np.stack([near / length for _, length in self._cycles()], axis=1) * 2 * math.pi
        return _with_gaps(np.column_stack([near, np.sin(turns), np.cos(turns)]), read, self.gaps)

    def features(self) -> list[str]:
        """One for the days, two for each cycle."""
        cycles = [f"{self.name} in the {cycle}, {part}" for part in ("sine", "cosine") for cycle, _ in self._cycles()]
        return [self.name, *cycles, *([f"{self.name} is a gap"] if self.gaps else [])]

    def odd(self, values: pl.Series) -> pl.Series:
        """Unreadable or missing dates, and those far from the training rows' time."""
        days = _days(as_dates(values, self.format))
        width = max(self.high - self.low, 1.0)
        outside = (days < self.low - _FAR * width) | (days > self.high + _FAR * width)
        words = pl.concat_str(
            pl.lit(f"{self.name} "), pl.lit(as_text(values)), pl.lit(f" is far outside {self.range()}")
        )
        gap = _gap(self.name, values, days, self.gaps)
        return pl.select(pl.when(outside).then(words).otherwise(pl.lit(gap))).to_series()

    def range(self) -> str:
        """First and last day."""
        first, last = (np.datetime64(math.floor(day), "D") for day in (self.low, self.high))
        return f"{first} to {last}"

    def describe(self) -> str:
        """Their range."""
        return f"{'times' if self.clock else 'dates'}, {self.range()}"

    def _cycles(self) -> list[tuple[str, float]]:
        return [("year", 365.2425), ("week", 7.0), *([("day", 1.0)] if self.clock else [])]


@dataclass(frozen=True)
class Category(Column):
    """Categories, and booleans as two of them.

    Args:
        name: see `Column`.
        gaps: see `Column`.
        levels: those with a feature of their own, the most frequent first.
        rare: those seen in training without one; they look like one another.
    """

    levels: tuple[str, ...]
    rare: tuple[str, ...]
    kind = "category"

    def __post_init__(self):
        object.__setattr__(self, "levels", tuple(self.levels))
        object.__setattr__(self, "rare", tuple(self.rare))

    def encode(self, values: pl.Series) -> np.ndarray:
        """One-hot over the levels; rare and unknown ones have no 1."""
        from sklearn.preprocessing import OneHotEncoder

        text = as_text(values)
        levels: Any = [list(self.levels)]
        encoder = OneHotEncoder(categories=levels, handle_unknown="ignore", sparse_output=False)
        encoder.fit([[self.levels[0]]])
        known = text.fill_null("").to_numpy().astype(object).reshape(-1, 1)
        found = encoder.transform(known) if len(known) else np.zeros((0, len(self.levels)))
        return _with_gaps(np.asarray(found), text, self.gaps)

    def features(self) -> list[str]:
        """One for each level."""
        levels = [f"{self.name} is {level}" for level in self.levels]
        return [*levels, *([f"{self.name} is a gap"] if self.gaps else [])]

    def odd(self, values: pl.Series) -> pl.Series:
        """Categories that training rows did not have, and gaps."""
        text = as_text(values)
        unknown = text.is_not_null() & ~text.is_in([*self.levels, *self.rare])
        words = pl.concat_str(pl.lit(f"{self.name} "), pl.lit(text), pl.lit(" is unknown"))
        gap = _gap(self.name, text, text, self.gaps)
        return pl.select(pl.when(unknown).then(words).otherwise(pl.lit(gap))).to_series()

    def describe(self) -> str:
        """The most frequent ones."""
        all_levels = [*self.levels, *self.rare]
        shown = ", ".join(level[:20] for level in all_levels[:4])
        noun = "category" if len(all_levels) == 1 else "categories"
        return f"{len(all_levels)} {noun}: {shown}{' …' if len(all_levels) > 4 else ''}"


@dataclass(frozen=True)
class LeftOut:
    """A column that the model does not use, and why."""

    name: str
    reason: str


KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Date, Category)}


def learn(values: pl.Series) -> Column | LeftOut:
    """What a column of training rows holds."""
    name, text = values.name, as_text(values)
    if name in _NUMBERING:
        return LeftOut(name, "without a name, like the row numbers of data frames")
    present = text.drop_nulls()
    if present.n_unique() < 2 and (present.is_empty() or len(present) == len(text)):
        return LeftOut(name, "all gaps" if present.is_empty() else f"always {present[0]!r}")
    gaps = bool(text.null_count())
    if (column := _learn_dates(values, gaps) or _learn_numbers(values, gaps)) is not None:
        return column
    counts = present.rename("level").value_counts().sort(["count", "level"], descending=[True, False])
    if len(counts) > max(20, 0.5 * len(present)):
        return LeftOut(name, "text of which nearly every row has its own")
    names = counts["level"].to_list()
    common = max(1, min(_MOST_LEVELS, counts.filter(pl.col("count") >= 2).height))
    return Category(name, gaps, tuple(names[:common]), tuple(names[common:]))


def encode(columns: Sequence[Column], frame: pl.DataFrame) -> np.ndarray:
    """All features of a frame, (N, features) in float64."""
    return np.hstack([column.encode(frame[column.name]) for column in columns]).astype(np.float64)


def oddities(columns: Sequence[Column], frame: pl.DataFrame) -> list[str]:
    """What is odd about each row, in words; empty where nothing is."""
    words = [column.odd(frame[column.name]).rename(str(number)) for number, column in enumerate(columns)]
    return pl.DataFrame(words).select(pl.concat_str(pl.all(), separator="; ", ignore_nulls=True)).to_series().to_list()


def to_json(column: Column) -> dict[str, Any]:
    """A column as JSON values; `from_json` reads it back."""
    return {"kind": column.kind, **asdict(column)}


def from_json(given: dict[str, Any]) -> Column:
    """The column that `to_json` wrote."""
    return KINDS[given["kind"]](**{name: value for name, value in given.items() if name != "kind"})


def _learn_numbers(values: pl.Series, gaps: bool) -> Column | LeftOut | None:
    numbers, present = as_numbers(values), as_text(values).drop_nulls()
    readable = numbers.drop_nulls()
    if values.dtype == pl.Boolean or len(readable) < _MOSTLY * len(present):
        return None
    if (infinite := numbers.is_infinite().fill_null(False)).any():
        row = int(infinite.arg_max() or 0) + 1
        raise ValueError(f"column {values.name!r} holds an infinite value in row {row}; correct or remove it.")
    low, high, median = (float(value) for value in (readable.min(), readable.max(), readable.median()))  # type: ignore[arg-type]
    if max(-low, high) > _LARGEST:
        raise ValueError(f"column {values.name!r} spans {low:.3g} to {high:.3g}, too much for arithmetic; correct it.")
    gaps = gaps or len(readable) < len(numbers)
    return (
        Number(values.name, gaps, low, high, median) if low < high or gaps else LeftOut(values.name, f"always {low:g}")
    )


def _learn_dates(values: pl.Series, gaps: bool) -> Column | None:
    text = as_text(values).drop_nulls()
    found = None if is_date(values.dtype) else date_format(text, _MOSTLY)
    if not is_date(values.dtype) and found is None:
        return None
    read = as_dates(values, found)
    days = _days(read).drop_nulls()
    low, high, median = (float(value) for value in (days.min(), days.max(), days.median()))  # type: ignore[arg-type]
    return Date(values.name, gaps or read.null_count() > 0, low, high, median, found, bool((days % 1 != 0).any()))


def _days(dates: pl.Series) -> pl.Series:
    return dates.dt.epoch("us").cast(pl.Float64) / 86_400e6


def _with_gaps(features: np.ndarray, values: pl.Series, gaps: bool) -> np.ndarray:
    return np.column_stack([features, values.is_null().to_numpy()]) if gaps else features


def _gap(name: str, values: pl.Series, read: pl.Series, expected: bool) -> pl.Series:
    """Words for values that could not be read, and for gaps where training rows had none."""
    text = as_text(values)
    unreadable = pl.concat_str(pl.lit(f"{name} "), pl.lit(text), pl.lit(" cannot be read"))
    missing = pl.lit(None if expected else f"{name} is a gap", dtype=pl.String)
    lost = read.is_null()
    return pl.select(
        pl.when(lost & text.is_not_null()).then(unreadable).when(lost).then(missing).otherwise(None)
    ).to_series()
