"""A model for a table as a program that needs no ganns, checked before it is handed over."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ganns.files import replacing
from ganns.table.columns import Category, Date, Number, to_json
from ganns.table.model import TableModel

SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}
_ROWS = 256
_CLOSE = 1e-4  # of the outputs' spread


def export(model: TableModel, path: Path, format: str) -> float:
    """Write the network and, beside it as JSON, how rows become its features; the largest deviation on random rows.

    Args:
        model: to export; what leaves is the mean, or the probabilities, of its networks.
        path: the file; the description goes to `description_path`.
        format: "onnx" or "torch".
    """
    check_format(format)
    rows = random_rows(model)
    expected = model.estimator.to_torch(torch.float64)(torch.from_numpy(rows)).detach().numpy()
    plain, example = model.estimator.to_torch().eval(), torch.from_numpy(rows).float()
    description = json.dumps(_description(model), indent=1).encode()
    with replacing(path) as temporary, replacing(description_path(path)) as beside:
        beside.write_bytes(description)
        with _quiet():
            found = {"onnx": _onnx, "torch": _torch}[format](plain, example, temporary)
        deviation = float(np.abs(found - expected).max())
        if not deviation <= _CLOSE * max(float(np.ptp(expected)), 1e-3):
            raise ValueError(
                f"the exported model deviates by {deviation:.2g} from the original on random rows, and was not "
                "written; choose the other format."
            )
    return deviation


def check_format(format: str) -> str:
    """The ending of files of a format; an unknown one is refused."""
    if format not in SUFFIXES:
        raise ValueError(f"format={format!r} is unknown; choose {' or '.join(SUFFIXES)}.")
    return SUFFIXES[format]


def description_path(path: Path) -> Path:
    """Where the description of an exported file goes: the same name with .json."""
    if path.suffix.lower() == ".json":
        raise ValueError(f"{path} is where the description would go; choose another name for the program.")
    return path.with_suffix(".json")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what exporters say about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def random_rows(model: TableModel) -> np.ndarray:
    """Features of rows that are drawn at random from the ranges and categories of the training rows."""
    random = np.random.default_rng(0)
    parts = []
    for column in model.columns:
        if isinstance(column, Category):
            features = np.eye(len(column.levels))[random.integers(len(column.levels), size=_ROWS)]
        else:
            assert isinstance(column, Number | Date)
            features = random.uniform(column.low, column.high, (_ROWS, 1))
        missing = len(column.features()) - features.shape[1]
        parts += [features, random.uniform(0, 1, (_ROWS, missing))]
    return np.hstack(parts)


def _description(model: TableModel) -> dict[str, Any]:
    output = {"output": f"mean of {model.target!r}"}
    if model.task == "classification":
        output = {"output": f"probabilities of {model.target!r}", "classes": model.estimator.classes_.tolist()}  # type: ignore[union-attr]
    features = [name for column in model.columns for name in column.features()]
    return {"input": features, **output, "columns": [to_json(column) for column in model.columns]}


def _torch(module: nn.Module, example: torch.Tensor, path: Path) -> np.ndarray:
    program = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("rows", min=1)},))
    with open(path, "wb") as file:
        torch.export.save(program, file)
    with open(path, "rb") as file:
        return torch.export.load(file).module()(example).detach().numpy()


def _onnx(module: nn.Module, example: torch.Tensor, path: Path) -> np.ndarray:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(f"ONNX needs {error.name}; pip install 'ganns[export]'.") from error
    rows = torch.export.Dim("rows", min=1)
    program = torch.onnx.export(
        module,
        (example,),
        input_names=["features"],
        output_names=["prediction"],
        dynamic_shapes=({0: rows},),
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(str(path))
    session = onnxruntime.InferenceSession(str(path))
    return np.asarray(session.run(None, {"features": example.numpy()})[0])
