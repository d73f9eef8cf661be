"""A fitted model for a table: the columns it learned, an estimator, and what was measured; saved as one folder."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ganns.estimators import GaNNClassifier, GaNNRegressor, describe, restore
from ganns.saving import read_model, write_model
from ganns.table.columns import Column, encode, from_json, oddities, to_json
from ganns.table.preparing import check_name
from ganns.table.reading import batches

_KIND = "table"
_PREFIX = "estimator"


@dataclass(frozen=True)
class TableModel:
    """A model that takes rows as they stand in files.

    Args:
        target: the column that it predicts.
        columns: those that it looks at.
        estimator: fitted to their features.
        facts: JSON values about the fit, for whoever asks later.
    """

    target: str
    columns: tuple[Column, ...]
    estimator: GaNNRegressor | GaNNClassifier
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """What it predicts: "regression" (numbers) or "classification"."""
        return "regression" if isinstance(self.estimator, GaNNRegressor) else "classification"

    def features(self, frame: pl.DataFrame) -> np.ndarray:
        """Features (N, k) of rows whose columns are found by name, in any order."""
        for column in self.columns:
            check_name(column.name, frame.columns)
        return encode(self.columns, frame)

    def predict(self, frame: pl.DataFrame, coverage: float = 0.9) -> pl.DataFrame:
        """A prediction for each row, how sure it is, how unusual the row, and what is odd about it."""
        x = self.features(frame)
        sure = _numbers(self.estimator, x, coverage) if self.task == "regression" else _classes(self.estimator, x)
        notes = pl.Series("notes", oddities(self.columns, frame), dtype=pl.String)
        return pl.DataFrame({**sure, "surprise": self.estimator.surprise(x)}).with_columns(notes)

    def save(self, path: str | os.PathLike) -> None:
        """Write the model as a folder of JSON and safetensors; `TableModel.load` reads it."""
        description, tensors = describe(self.estimator)
        content = {
            "kind": _KIND,
            "target": self.target,
            "columns": [to_json(column) for column in self.columns],
            "facts": self.facts,
            _PREFIX: description,
        }
        write_model(path, content, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TableModel":
        """The model that `save` wrote; a folder that is incomplete or altered is refused."""
        content, tensors = read_model(path, _KIND)
        try:
            columns = tuple(from_json(column) for column in content["columns"])
            return cls(content["target"], columns, restore(content[_PREFIX], tensors), content["facts"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: the parts of the model do not fit together ({error}); fit it anew.") from error


def predict_file(
    model: TableModel, path: Path, coverage: float = 0.9, separator: str | None = None
) -> Iterator[pl.DataFrame]:
    """Predictions for a file of any length, one piece after another, with the number of each row."""
    done = 0
    for frame in batches(path, separator):
        rows = pl.Series("row", np.arange(done + 1, done + frame.height + 1))
        if frame.height:
            yield model.predict(frame, coverage).insert_column(0, rows)
        done += frame.height
    if not done:
        raise ValueError(f"{path} has a header but no rows; give a table with some.")


def _numbers(estimator: Any, x: np.ndarray, coverage: float) -> dict[str, np.ndarray]:
    mean, sd = estimator.predict(x, return_std=True)
    lower, upper = estimator.predict_interval(x, coverage)
    return {"prediction": mean, "sd": sd, "lower": lower, "upper": upper}


def _classes(estimator: Any, x: np.ndarray) -> dict[str, np.ndarray]:
    """The likeliest class, and the probability of each."""
    probabilities = estimator.predict_proba(x)
    best = probabilities.argmax(1)
    each = {f"p({name})": column for name, column in zip(estimator.classes_, probabilities.T, strict=True)}
    return {"prediction": estimator.classes_[best], "probability": probabilities.max(1), **each}
