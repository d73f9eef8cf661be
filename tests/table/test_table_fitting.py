"""A fit is measured on rows that no part of it saw, and points at the rows that are odd."""

import numpy as np
import polars as pl
import pytest
import torch
from made_up_tables import SMALL, fitted, flats
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, root_mean_squared_error

from ganns.table.fitting import fit_table, numbers
from ganns.table.preparing import prepare


def test_a_fifth_of_the_rows_is_held_out_and_measured():
    fit = fitted("regression")
    assert len(set(fit.held_out.tolist())) == len(fit.held_out) == 24
    x, y = fit.prepared.x[fit.held_out], fit.prepared.y[fit.held_out]
    predicted = fit.model.estimator.predict_dist(x).mean[:, 0]
    assert fit.scores["mae"] == pytest.approx(mean_absolute_error(y, predicted))
    assert fit.scores["rmse"] == pytest.approx(root_mean_squared_error(y, predicted))
    known = np.delete(fit.prepared.y, fit.held_out)
    assert fit.blind["mae"] == pytest.approx(np.abs(y - known.mean()).mean())
    assert fit.model.facts == {"task": "regression", "rows": 96, "held_out": 24, "scores": fit.scores, "seed": 0}


def test_rows_held_out_leave_no_trace_in_the_model():
    fit = fitted("regression")
    y = fit.prepared.y.copy()
    y[fit.held_out] += 1e6
    frame = fit.prepared.frame.with_columns(rent=pl.Series(y))
    other = fit_table(prepare(frame, "rent", ignore=["kind"]), **SMALL)
    assert (other.held_out == fit.held_out).all()
    x = fit.prepared.x
    np.testing.assert_array_equal(other.model.estimator.predict(x), fit.model.estimator.predict(x))
    assert other.scores["mae"] > 1e5


def test_classes_are_held_out_in_their_shares():
    fit = fitted("classification")
    labels = fit.prepared.y
    for label in np.unique(labels):
        held = (labels[fit.held_out] == label).sum()
        assert abs(held - 0.2 * (labels == label).sum()) < 1
    probabilities = fit.model.estimator.predict_proba(fit.prepared.x[fit.held_out])
    assert fit.scores["accuracy"] == accuracy_score(
        labels[fit.held_out], fit.model.estimator.classes_[probabilities.argmax(1)]
    )
    assert fit.scores["nll"] == pytest.approx(log_loss(labels[fit.held_out], probabilities))
    shares = [(np.delete(labels, fit.held_out) == label).mean() for label in np.unique(labels)]
    expected = log_loss(labels[fit.held_out], np.tile(shares, (len(fit.held_out), 1)))
    assert fit.blind["nll"] == pytest.approx(expected)
    assert sum(rows for _, _, rows in fit.reliability) == len(fit.held_out)
    assert fit.coverage == []


def test_a_class_of_five_rows_is_held_out_as_well():
    frame = flats(40).with_columns(kind=pl.Series(["rare"] * 5 + ["usual"] * 35))
    fit = fit_table(prepare(frame, "kind", ignore=["rent"]), **SMALL)
    assert (fit.prepared.y[fit.held_out] == "rare").sum() == 1


def test_intervals_are_wider_for_more_coverage():
    fit = fitted("regression")
    assert [nominal for nominal, _, _ in fit.coverage] == [0.5, 0.8, 0.9, 0.95]
    for (_, held, width), (_, more, wider) in zip(fit.coverage, fit.coverage[1:], strict=False):
        assert held <= more
        assert width <= wider
    assert fit.coverage[0][2] < fit.coverage[1][2]
    low, high = fit.intervals[0.9]
    assert fit.coverage[2][1] == ((low <= fit.truth) & (fit.truth <= high)).double().mean()
    assert fit.reliability == []


def test_the_oddest_row_comes_first_with_what_stands_out():
    """Even where two are odder than all rows fitted to, and so of one percentile."""
    odd, odder = sorted(fitted("regression").held_out.tolist())[:2]
    area = flats()["area"].to_list()
    area[odd], area[odder] = 600.0, 2500.0
    frame = flats().with_columns(area=pl.Series(area))
    fit = fit_table(prepare(frame, "rent", ignore=["kind"]), **SMALL)
    first, second, *rest = fit.surprising
    assert (first.row, second.row) == (odder + 1, odd + 1)
    assert first.percentile == second.percentile == 100
    assert first.why.startswith("area 2500 (mostly 2")
    assert first.truth == f"{frame['rent'][odder]:.4g}"
    assert " ± " in first.prediction
    assert len(rest) == 8
    assert rest[-1].percentile > 80


def test_surprising_rows_of_classes_name_them():
    for each in fitted("classification").surprising:
        assert each.truth in ("studio", "shared", "family")
        assert each.prediction.split(" (")[0] in ("studio", "shared", "family")
        assert each.prediction.endswith("%)")


def test_rows_that_repeat_others_are_counted():
    assert fitted("regression").repeated == 1


def test_labels_become_numbers_in_their_order():
    estimator = fitted("classification").model.estimator
    assert numbers(estimator, np.array(["studio", "family"])).tolist() == [2, 0]
    assert numbers(fitted("regression").model.estimator, np.array([1.5])).equal(torch.tensor([[1.5]]).double())
