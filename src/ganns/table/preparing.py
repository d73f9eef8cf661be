"""A table with a target, checked and ready for an estimator."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ganns.table.columns import Column, LeftOut, encode, learn
from ganns.table.parsing import as_numbers, as_text, is_date

TASKS = ("auto", "regression", "classification")
FEWEST_ROWS = 30
_FEWEST_OF_A_CLASS = 5
_ALMOST = 0.8  # share of numbers from which a target of text is taken for numbers with mistakes


@dataclass(frozen=True)
class Prepared:
    """Rows with their target.

    Args:
        frame: the table as it was read.
        target: name of the target column.
        task: "regression" or "classification".
        columns: what the others hold.
        left_out: those that are of no use, and why.
        x: features (N, k).
        y: targets (N,): float64, or labels as text.
    """

    frame: pl.DataFrame
    target: str
    task: str
    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...]
    x: np.ndarray
    y: np.ndarray


def prepare(frame: pl.DataFrame, target: str, task: str = "auto", ignore: Sequence[str] = ()) -> Prepared:
    """Check a table and learn its columns.

    Args:
        frame: as `ganns.table.reading.read` gives it.
        target: the column to predict.
        task: "auto" takes a target of numbers for regression, unless there are only two, and other targets for
            classification.
        ignore: columns that the model must not see.
    """
    if task not in TASKS:
        raise ValueError(f"task={task!r} is unknown; choose {', '.join(TASKS)}.")
    for name in (target, *ignore):
        check_name(name, frame.columns)
    if target in ignore:
        raise ValueError(f"column {target!r} is the target and cannot be ignored as well; choose another target.")
    if frame.height < FEWEST_ROWS:
        raise ValueError(f"the table has {frame.height} rows, and {FEWEST_ROWS} are needed at least; give more.")
    found, y = _target(frame[target], task)
    learned = [learn(frame[name]) for name in frame.columns if name != target and name not in ignore]
    columns = tuple(column for column in learned if isinstance(column, Column))
    left_out = tuple(column for column in learned if isinstance(column, LeftOut))
    if not columns:
        reasons = "; ".join(f"{column.name}: {column.reason}" for column in left_out[:3])
        raise ValueError(f"no column can tell anything about {target!r} ({reasons or 'there is no other'}); give more.")
    return Prepared(frame, target, found, columns, left_out, encode(columns, frame), y)


def check_name(name: str, names: Sequence[str]) -> None:
    """Refuse a column that is not there, and offer the nearest names."""
    if name in names:
        return
    small = {other.lower(): other for other in names}
    near = [small[other] for other in difflib.get_close_matches(name.lower(), list(small), n=3, cutoff=0.5)]
    offer = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_listed(names)}."
    raise ValueError(f"there is no column {name!r}: {offer}")


def _target(values: pl.Series, task: str) -> tuple[str, np.ndarray]:
    """The task and the targets."""
    name, text, numbers = values.name, as_text(values), as_numbers(values)
    if gaps := text.null_count():
        raise ValueError(
            f"target {name!r} has {gaps} gap{'s' * (gaps > 1)}, the first in row {_first(text.is_null())}; fill them "
            "or remove those rows."
        )
    readable = numbers.drop_nulls()
    textual = len(readable) < len(text) or values.dtype == pl.Boolean or is_date(values.dtype)
    if task == "auto":
        if textual and len(readable) >= _ALMOST * len(text) and values.dtype == pl.String:
            _refuse_text(text, numbers)
        task = "classification" if textual or readable.n_unique() == 2 else "regression"
    return task, _labels(text) if task == "classification" else _numbers(text, numbers, textual)


def _numbers(text: pl.Series, numbers: pl.Series, textual: bool) -> np.ndarray:
    name = text.name
    if textual:
        _refuse_text(text, numbers)
    if numbers.is_infinite().any():
        raise ValueError(
            f"target {name!r} holds an infinite value in row {_first(numbers.is_infinite())}; correct or remove it."
        )
    if numbers.n_unique() == 1:
        raise ValueError(f"target {name!r} is always {text[0]}; there is nothing to learn.")
    y = numbers.to_numpy().astype(np.float64)
    with np.errstate(over="ignore"):
        variance = y.var()
    if not np.isfinite(variance) or variance == 0:
        raise ValueError(
            f"target {name!r} goes from {y.min():.3g} to {y.max():.3g}, too much for arithmetic; correct it."
        )
    return y


def _refuse_text(text: pl.Series, numbers: pl.Series) -> None:
    wrong = numbers.is_null() if numbers.null_count() else text.is_not_null()
    row = _first(wrong)
    raise ValueError(
        f"target {text.name!r} holds {text[row - 1]!r} in row {row}, which is no number; correct it, or predict "
        "classes with --task classification."
    )


def _labels(text: pl.Series) -> np.ndarray:
    counts = text.rename("label").value_counts().sort(["count", "label"])
    if counts.height == 1:
        raise ValueError(f"target {text.name!r} has one class only, {text[0]!r}; there must be two or more.")
    label, least = counts["label"][0], counts["count"][0]
    if least < _FEWEST_OF_A_CLASS:
        raise ValueError(
            f"target {text.name!r} has {counts.height} classes, and {label!r} has {least} row{'s' * (least > 1)} of "
            f"{_FEWEST_OF_A_CLASS} needed; join or remove rare classes, or use --task regression for numbers."
        )
    return text.to_numpy().astype(str)


def _first(rows: pl.Series) -> int:
    """Number of the first row, counted from 1 without the header."""
    return int(rows.arg_max() or 0) + 1


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")
