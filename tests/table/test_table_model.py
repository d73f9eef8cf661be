"""A model for a table finds its columns, says what is odd, and comes back from disk as it was."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest
from made_up_tables import fitted, flats

import ganns
from ganns.saving import _checksum
from ganns.table import model as model_module
from ganns.table.model import TableModel, predict_file
from ganns.table.reading import batches

TASKS = ("regression", "classification")
NEW = flats(30, seed=1).drop("rent", "kind")


def assert_same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    """But for rounding: how many rows are predicted at a time changes the last digits."""
    assert found.schema == expected.schema
    for name in expected.columns:
        if expected[name].dtype.is_float():
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
        else:
            assert found[name].to_list() == expected[name].to_list()


def with_model(task: str, **values: object) -> dict:
    """The first new row with other values, predicted."""
    row = NEW[:1].with_columns(pl.lit(value).alias(name) for name, value in values.items())
    return fitted(task).model.predict(row).row(0, named=True)


def test_numbers_come_with_their_uncertainty():
    model = fitted("regression").model
    found = model.predict(NEW, coverage=0.9)
    assert found.columns == ["prediction", "sd", "lower", "upper", "surprise", "notes"]
    mean, sd = model.estimator.predict(model.features(NEW), return_std=True)
    np.testing.assert_allclose(found["prediction"], mean)
    np.testing.assert_allclose(found["sd"], sd)
    assert ((found["lower"] < found["prediction"]) & (found["prediction"] < found["upper"])).all()
    assert (model.predict(NEW, coverage=0.5)["upper"] < found["upper"]).all()
    assert found["surprise"].is_between(0, 100).all()


def test_classes_come_with_the_probability_of_each():
    found = fitted("classification").model.predict(NEW)
    each = ["p(family)", "p(shared)", "p(studio)"]
    assert found.columns == ["prediction", "probability", *each, "surprise", "notes"]
    np.testing.assert_allclose(found.select(pl.sum_horizontal(each)).to_series(), 1.0)
    assert (found["probability"] == found.select(pl.max_horizontal(each)).to_series()).all()
    assert all(row[f"p({row['prediction']})"] == row["probability"] for row in found.to_dicts())


@pytest.mark.parametrize("task", TASKS)
def test_columns_are_found_by_name_in_any_order(task):
    model = fitted(task).model
    shuffled = NEW.select(reversed(NEW.columns)).with_columns(more=pl.lit("ignored"))
    assert_same(model.predict(shuffled), model.predict(NEW))


def test_a_column_that_is_missing_is_named_with_those_that_are_near():
    with pytest.raises(ValueError, match=r"no column 'area': did you mean 'Areas'\?"):
        fitted("regression").model.predict(NEW.rename({"area": "Areas"}))


@pytest.mark.parametrize(
    ("values", "notes"),
    [
        ({}, ""),
        ({"district": "Moon"}, "district Moon is unknown"),
        ({"area": 5000.0}, "area 5000 is far outside 20."),
        ({"area": None}, "area is a gap"),
        ({"floor": None}, ""),  # as training rows had
        ({"area": "large", "district": "Moon"}, "area large cannot be read; district Moon is unknown"),
    ],
)
def test_what_is_odd_is_flagged_and_predicted_all_the_same(values, notes):
    for task in TASKS:
        found = with_model(task, **values)
        assert found["notes"].startswith(notes)
        assert bool(found["notes"]) == bool(notes)
        numbers = [value for value in found.values() if isinstance(value, float)]
        assert np.isfinite(numbers).all()


def test_rows_far_outside_are_more_surprising():
    far = with_model("regression", area=5000.0)["surprise"]
    assert far > 99
    assert far > with_model("regression")["surprise"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_a_file_is_predicted_in_pieces_as_in_one(tmp_path, monkeypatch, task, name):
    path = tmp_path / name
    NEW.write_csv(path) if name.endswith("csv") else NEW.write_parquet(path)
    (whole,) = predict_file(fitted(task).model, path)
    assert whole["row"].to_list() == list(range(1, 31))
    assert_same(whole.drop("row"), fitted(task).model.predict(NEW))
    monkeypatch.setattr(model_module, "batches", partial(batches, rows=7))
    pieces = list(predict_file(fitted(task).model, path))
    assert [piece.height for piece in pieces] == [7, 7, 7, 7, 2]
    assert_same(pl.concat(pieces), whole)


def test_a_file_without_rows_is_refused(tmp_path):
    NEW[:0].write_csv(tmp_path / "new.csv")
    with pytest.raises(ValueError, match="has a header but no rows"):
        list(predict_file(fitted("regression").model, tmp_path / "new.csv"))


@pytest.mark.parametrize("task", TASKS)
def test_a_model_comes_back_from_disk_as_it_was(tmp_path, task):
    model = fitted(task).model
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert (again.target, again.task, again.columns, again.facts) == (
        model.target,
        model.task,
        model.columns,
        model.facts,
    )
    assert again.predict(NEW).equals(model.predict(NEW))


def test_a_model_of_another_kind_is_refused(tmp_path):
    model = fitted("regression").model
    model.save(tmp_path / "table")
    model.estimator.save(tmp_path / "estimator")
    with pytest.raises(ValueError, match="holds a 'GaNNRegressor', but 'table' is needed here"):
        TableModel.load(tmp_path / "estimator")
    with pytest.raises(ValueError, match="holds a 'table', but 'GaNNRegressor'"):
        ganns.load(tmp_path / "table")


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": [{"kind": "smell", "name": "area"}]},
        {"columns": [{"kind": "number", "name": "area"}]},
        {"columns": None},
        {"estimator": {"kind": "GaNNRegressor"}},
        {"target": ...},
    ],
)
def test_a_model_whose_parts_do_not_fit_is_refused(tmp_path, changes):
    fitted("regression").model.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    content = {**json.loads(file.read_text()), **changes}
    content = {name: value for name, value in content.items() if value is not ...}
    content["sha256"] = _checksum(content)
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="do not fit together"):
        TableModel.load(tmp_path / "model")
