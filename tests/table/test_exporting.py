"""What is exported needs no ganns, and says what the original says."""

import json
import logging
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from made_up_tables import fitted, flats

from ganns.table import exporting
from ganns.table.exporting import SUFFIXES, description_path, export, random_rows

TASKS = ("regression", "classification")
NEW = flats(30, seed=1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("format", SUFFIXES)
def test_the_program_says_what_the_model_says(tmp_path, task, format):
    model = fitted(task).model
    path = tmp_path / f"flats{SUFFIXES[format]}"
    assert export(model, path, format) < 0.1
    rows = model.features(NEW).astype(np.float32)
    if format == "onnx":
        (found,) = onnxruntime.InferenceSession(str(path)).run(None, {"features": rows})
    else:
        found = torch.export.load(path).module()(torch.from_numpy(rows)).detach().numpy()
    if task == "regression":
        np.testing.assert_allclose(found[:, 0], model.estimator.predict(model.features(NEW)), rtol=1e-4)
    else:
        expected = model.estimator.to_torch(torch.float64)(torch.from_numpy(model.features(NEW)))
        np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-4)
    description = json.loads((tmp_path / "flats.json").read_text())
    assert len(description["input"]) == rows.shape[1]
    assert description["input"][:2] == ["area", "floor"]
    assert description["output"].endswith(f"of {model.target!r}")
    assert description.get("classes") == (["family", "shared", "studio"] if task == "classification" else None)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([path.name, "flats.json"])


def test_random_rows_are_like_those_of_the_table():
    model = fitted("regression").model
    rows, names = random_rows(model), [name for column in model.columns for name in column.features()]
    assert rows.shape == (256, len(names))
    area = rows[:, names.index("area")]
    assert (area.min() >= model.columns[0].low) & (area.max() <= model.columns[0].high)
    district = [number for number, name in enumerate(names) if name.startswith("district is ")]
    assert (rows[:, district].sum(1) == 1).all()
    assert (rows[:, district].sum(0) > 0).all()


def test_a_program_that_deviates_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "_torch", lambda module, example, path: module(example).detach().numpy() + 1)
    with pytest.raises(ValueError, match=r"deviates by 1(\.0)? from the original .* choose the other format"):
        export(fitted("regression").model, tmp_path / "flats.pt2", "torch")
    assert list(tmp_path.iterdir()) == []


def test_a_program_with_nan_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "_torch", lambda module, example, path: module(example).detach().numpy() * np.nan)
    with pytest.raises(ValueError, match="deviates by nan"):
        export(fitted("regression").model, tmp_path / "flats.pt2", "torch")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"pip install 'ganns\[export\]'"):
        export(fitted("regression").model, tmp_path / "flats.onnx", "onnx")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="format='pickle' is unknown; choose onnx or torch"):
        export(fitted("regression").model, tmp_path / "flats.pkl", "pickle")


def test_the_description_never_takes_the_programs_place(tmp_path):
    assert description_path(tmp_path / "flats.onnx") == tmp_path / "flats.json"
    with pytest.raises(ValueError, match="is where the description would go"):
        description_path(tmp_path / "flats.json")


def test_exporters_are_quiet_and_loggers_speak_again_afterwards(tmp_path, capfd):
    export(fitted("regression").model, tmp_path / "flats.onnx", "onnx")
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("torch.onnx").isEnabledFor(logging.WARNING)
