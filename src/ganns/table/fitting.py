"""A model for a table, and what rows say about it that it has not seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ganns.estimators import GaNNClassifier, GaNNRegressor, distance
from ganns.predictive import Classification, Regression
from ganns.table.columns import Number
from ganns.table.model import TableModel
from ganns.table.preparing import Prepared
from ganns.table.scoring import COVERAGES, blind, coverage, reliability, score
from ganns.table.wording import fixed

HELD_OUT = 0.2
_SHOWN = 10  # most surprising rows
_USUAL = (0.01, 0.99)  # between these quantiles a value is nothing to talk about


@dataclass(frozen=True)
class Surprising:
    """A row that the model finds unusual.

    Args:
        row: its number, from 1 without the header.
        percentile: share of the rows fitted to that are less unusual, in percent.
        truth: its target.
        prediction: what the model says.
        why: values that stand out, in words.
    """

    row: int
    percentile: float
    truth: str
    prediction: str
    why: str


@dataclass(frozen=True)
class Fitted:
    """A model and what was measured.

    Args:
        model: fitted to all rows but those held out.
        prepared: the table.
        held_out: numbers of the rows held out, from 0.
        prediction: for the rows held out.
        truth: their targets: (N, 1), or class numbers (N,).
        intervals: regression: their bounds, each (N, 1), by nominal coverage.
        scores: by measure.
        blind: the scores of a prediction that looks at no row.
        surprising: the most surprising rows of the table.
        repeated: rows that are equal to an earlier one.
    """

    model: TableModel
    prepared: Prepared
    held_out: np.ndarray
    prediction: Regression | Classification
    truth: Tensor
    intervals: dict[float, tuple[Tensor, Tensor]]
    scores: dict[str, float]
    blind: dict[str, float]
    surprising: list[Surprising]
    repeated: int

    @property
    def coverage(self) -> list[tuple[float, float, float]]:
        """Regression: nominal and observed coverage, and the mean width of intervals."""
        return [(nominal, *coverage(*bounds, self.truth)) for nominal, bounds in self.intervals.items()]

    @property
    def reliability(self) -> list[tuple[float, float, int]]:
        """Classification: confidence, accuracy and rows of groups."""
        return reliability(self.prediction, self.truth) if isinstance(self.prediction, Classification) else []


def fit_table(prepared: Prepared, seed: int = 0, **parameters: Any) -> Fitted:
    """Fit an estimator to four fifths of the rows and measure it on the rest.

    Args:
        prepared: the table.
        seed: decides which rows are held out, and the fit.
        parameters: of the estimator.
    """
    from sklearn.model_selection import train_test_split

    x, y, task = prepared.x, prepared.y, prepared.task
    strata = y if task == "classification" else None
    size = HELD_OUT if strata is None else max(len(np.unique(y)), round(HELD_OUT * len(y)))
    parts = train_test_split(np.arange(len(y)), test_size=size, random_state=seed, stratify=strata)
    known, held_out = (np.asarray(part) for part in parts)
    kind = GaNNRegressor if task == "regression" else GaNNClassifier
    estimator = kind(random_state=seed, **parameters).fit(x[known], y[known])
    prediction = estimator.predict_dist(x[held_out])
    truth = numbers(estimator, y)
    scores = score(prediction, truth[held_out])
    without = score(blind(task, truth[known], len(held_out)), truth[held_out])
    facts = {"task": task, "rows": len(known), "held_out": len(held_out), "scores": scores, "seed": seed}
    model = TableModel(prepared.target, prepared.columns, estimator, facts)
    return Fitted(
        model,
        prepared,
        held_out,
        prediction,
        truth[held_out],
        _intervals(estimator, x[held_out]),
        scores,
        without,
        surprising_rows(model, prepared),
        prepared.frame.height - prepared.frame.n_unique(),
    )


def _intervals(estimator: GaNNRegressor | GaNNClassifier, x: np.ndarray) -> dict[float, tuple[Tensor, Tensor]]:
    if not isinstance(estimator, GaNNRegressor):
        return {}
    bounds = {nominal: estimator.predict_interval(x, nominal) for nominal in COVERAGES}
    return {
        nominal: (torch.from_numpy(low).reshape(-1, 1), torch.from_numpy(high).reshape(-1, 1))
        for nominal, (low, high) in bounds.items()
    }


def numbers(estimator: GaNNRegressor | GaNNClassifier, y: np.ndarray) -> Tensor:
    """Targets as (N, 1), labels as class numbers (N,)."""
    if isinstance(estimator, GaNNRegressor):
        return torch.from_numpy(y).reshape(-1, 1)
    return torch.from_numpy(np.searchsorted(estimator.classes_, y))


def surprising_rows(model: TableModel, prepared: Prepared) -> list[Surprising]:
    """The most surprising rows of the whole table, with the values that stand out."""
    percentile = model.estimator.surprise(prepared.x)
    rows = np.argsort(-distance(model.estimator, prepared.x), kind="stable")[:_SHOWN]
    predicted = model.predict(prepared.frame[rows.tolist()])
    stand_out = _standing_out(prepared, rows)
    found = []
    for place, row in enumerate(rows):
        one = predicted.row(place, named=True)
        if model.task == "regression":
            words = f"{fixed(one['prediction'], 10 * one['sd'])} ± {fixed(one['sd'], 10 * one['sd'])}"
            truth = f"{prepared.y[row]:.4g}"
        else:
            words, truth = f"{one['prediction']} ({one['probability']:.0%})", str(prepared.y[row])
        found.append(Surprising(int(row) + 1, float(percentile[row]), truth, words, stand_out[place]))
    return found


def _standing_out(prepared: Prepared, rows: np.ndarray) -> list[str]:
    """For each row its most extreme values, with the range in which most of the column lies."""
    far: list[list[tuple[float, str]]] = [[] for _ in rows]
    for column in (column for column in prepared.columns if isinstance(column, Number)):
        values = column.encode(prepared.frame[column.name])[:, 0]
        low, high = np.quantile(values, _USUAL)
        scale = values.std() or 1.0
        for place, value in enumerate(values[rows]):
            beyond = max(low - value, value - high)
            if beyond > 0:
                words = f"{column.name} {value:.4g} (mostly {low:.4g} to {high:.4g})"
                far[place].append((beyond / scale, words))
    return [", ".join(words for _, words in sorted(each, reverse=True)[:2]) or "an unusual combination" for each in far]
