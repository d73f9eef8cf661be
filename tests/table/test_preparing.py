"""Tables with a target: what is taken, and what is refused."""

import datetime as dt
import math
import re

import numpy as np
import polars as pl
import pytest

from ganns.table.columns import encode, learn
from ganns.table.preparing import check_name, prepare

ROWS = 30
X = [float(number) for number in range(ROWS)]


def table(y, **columns) -> pl.DataFrame:
    """A table whose first column is a plain number."""
    return pl.DataFrame({"x": [float(number) for number in range(len(y))], **columns, "y": y}, strict=False)


def test_features_are_those_of_all_columns_but_the_target_and_the_ignored():
    frame = table(X, colour=["red", "blue"] * 15, same=["one"] * ROWS, secret=X)
    prepared = prepare(frame, "y", ignore=["secret"])
    assert [column.name for column in prepared.columns] == ["x", "colour"]
    assert [column.name for column in prepared.left_out] == ["same"]
    np.testing.assert_array_equal(prepared.x, encode([learn(frame["x"]), learn(frame["colour"])], frame))
    np.testing.assert_array_equal(prepared.y, X)


@pytest.mark.parametrize(
    ("y", "task", "first"),
    [
        (X, "regression", 0.0),
        ([str(value) for value in X], "regression", 0.0),
        ([0, 1, 2] * 10, "regression", 0.0),
        ([dt.timedelta(minutes=number) for number in range(ROWS)], "regression", 0.0),
        ([0, 1] * 15, "classification", "0"),
        (["1.0", "2.0"] * 15, "classification", "1.0"),
        ([True, False] * 15, "classification", "true"),
        (["yes", "no", "1"] * 10, "classification", "yes"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)] * 15, "classification", "2024-01-01"),
    ],
)
def test_the_target_decides_the_task(y, task, first):
    prepared = prepare(table(y), "y")
    assert (prepared.task, prepared.y[0]) == (task, first)
    assert prepared.y.dtype.kind == {"regression": "f", "classification": "U"}[task]


def test_the_task_can_be_asked_for():
    assert prepare(table([0, 1, 2] * 10), "y", "classification").y.tolist() == ["0", "1", "2"] * 10
    assert prepare(table([0, 1] * 15), "y", "regression").y.tolist() == [0.0, 1.0] * 15


@pytest.mark.parametrize(
    ("y", "task", "sentence"),
    [
        (X[1:], "auto", "the table has 29 rows, and 30 are needed at least"),
        ([None, *X[1:]], "auto", "target 'y' has 1 gap, the first in row 1; fill them or remove those rows"),
        ([*X[2:], "", "NA"], "auto", "target 'y' has 2 gaps, the first in row 29"),
        ([7] * ROWS, "auto", "target 'y' is always 7; there is nothing to learn"),
        (["1", "1.0", "1e0"] * 10, "auto", "target 'y' is always 1;"),
        (["no"] * ROWS, "auto", "target 'y' has one class only, 'no'; there must be two or more"),
        (["a"] * 26 + ["b"] * 4, "auto", "target 'y' has 2 classes, and 'b' has 4 rows of 5 needed"),
        (["a"] * 28 + ["c", "b"], "auto", "target 'y' has 3 classes, and 'b' has 1 row of 5 needed"),
        ([*X[1:], math.inf], "auto", "target 'y' holds an infinite value in row 30; correct or remove it"),
        ([*map(str, X[1:]), "-inf"], "regression", "target 'y' holds an infinite value in row 30"),
        ([*map(str, X[1:]), "many"], "auto", "target 'y' holds 'many' in row 30, which is no number; correct it"),
        (["a", "b"] * 15, "regression", "target 'y' holds 'a' in row 1, which is no number"),
        ([True, False] * 15, "regression", "target 'y' holds 'true' in row 1, which is no number"),
        ([dt.date(2024, 1, 1)] * ROWS, "regression", "target 'y' holds '2024-01-01' in row 1, which is no number"),
        ([1e200, -1e200, 0.0] * 10, "auto", r"target 'y' goes from -1e+200 to 1e+200, too much for arithmetic"),
        ([1e-200, 2e-200, 0.0] * 10, "auto", r"target 'y' goes from 0 to 2e-200, too much for arithmetic"),
        (X, "sorting", "task='sorting' is unknown; choose auto, regression, classification"),
    ],
)
def test_a_target_of_no_use_is_refused_in_a_sentence(y, task, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        prepare(table(y), "y", task)


@pytest.mark.parametrize(
    ("columns", "ignore", "sentence"),
    [
        ({"a": ["same"] * ROWS}, ["x"], "no column can tell anything about 'y' (a: always 'same'); give more"),
        ({}, ["x"], "no column can tell anything about 'y' (there is no other)"),
        ({"a": [math.inf, *X[1:]]}, [], "column 'a' holds an infinite value in row 1"),
        ({}, ["y"], "column 'y' is the target and cannot be ignored as well"),
        ({}, ["z"], "there is no column 'z': there are 'x', 'y'."),
    ],
)
def test_columns_of_no_use_are_refused_in_a_sentence(columns, ignore, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        prepare(table(X, **columns), "y", ignore=ignore)


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("prize", "did you mean 'Price'?"),
        ("PRICE", "did you mean 'Price'?"),
        ("colr", "did you mean 'color' or 'colour'?"),
        ("target", "there are 'Price', 'color', 'colour', 'c1', 'c2', 'c3', 'c4', 'c5' …."),
    ],
)
def test_the_nearest_names_are_offered(name, offer):
    names = ["Price", "color", "colour", *(f"c{number}" for number in range(1, 9))]
    check_name("Price", names)
    with pytest.raises(ValueError, match=re.escape(f"there is no column {name!r}: {offer}")):
        check_name(name, names)
