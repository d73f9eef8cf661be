"""Whether arrays are what the catalogue says: first their headers, which cost nothing to read, then their values."""

import errno
import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ganns.study.catalogue import Arrays, Dataset

Header = tuple[tuple[int, ...], np.dtype[Any]]

_DAMAGE = (LookupError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile)


@contextmanager
def only_value_errors() -> Iterator[None]:
    """Turn whatever a damaged archive raises into ValueError; what the disk itself raises passes."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"damaged: {error or type(error).__name__}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # an archive that points to before its beginning
            raise
        raise ValueError("damaged: its parts are not where it says") from error


def check_headers(dataset: Dataset, headers: Mapping[str, Header]) -> None:
    """Raise ValueError where names, shapes or types are not those of the dataset."""
    test = dataset.split[1] if dataset.split else None
    wanted = {"x": dataset.train_rows, "y": dataset.train_rows} | ({"test_x": test, "test_y": test} if test else {})
    if set(headers) != set(wanted):
        raise ValueError(f"it holds {_listed(headers)}, not {_listed(wanted)}")
    for name, rows in wanted.items():
        shape, dtype = headers[name]
        row, kind = (dataset.shape, dataset.dtype) if name.endswith("x") else ((), dataset.target_dtype)
        if dtype != np.dtype(kind):
            raise ValueError(f"{name} is {dtype}, not {kind}")
        if not shape or shape[1:] != row:
            raise ValueError(f"{name} has the shape {shape}, not {(rows, *row)}")
        if shape[0] != rows and not (dataset.partial and name in ("x", "y") and 0 < shape[0] < rows):
            raise ValueError(f"{name} has {shape[0]} rows, not {rows}")
    if headers["x"][0][0] != headers["y"][0][0]:
        raise ValueError(f"x has {headers['x'][0][0]} rows and y {headers['y'][0][0]}")


def check_values(dataset: Dataset, arrays: Arrays) -> None:
    """Raise ValueError where a value cannot belong to the dataset, or a class has no row."""
    for name, x, y in (("x", arrays.x, arrays.y), ("test_x", arrays.test_x, arrays.test_y)):
        if x is not None and y is not None:
            _within(name, x, dataset.values)
            target = name.replace("x", "y")
            if dataset.classes is None:
                _within(target, y, dataset.targets)
            else:
                _within(target, y, (0, dataset.classes - 1))
    if dataset.classes is not None and (seen := len(np.unique(arrays.y))) != dataset.classes:
        raise ValueError(f"y has {seen} classes, not {dataset.classes}")


def _within(name: str, values: np.ndarray, bounds: tuple[float, float] | None) -> None:
    if bounds is None:
        return
    low, high = (np.asarray(bound).astype(values.dtype) for bound in bounds)
    least, greatest = values.min(), values.max()
    if not (low <= least and greatest <= high):  # NaN fails both
        raise ValueError(f"{name} goes from {least} to {greatest}, not from {low} to {high}")


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "nothing"
