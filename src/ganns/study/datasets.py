"""The datasets at hand: one plain .npz each in one folder, fetched from their authors, and checked whenever loaded."""

import hashlib
import importlib.util
import io
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy

from ganns import checkpoints
from ganns.feeding import Rows
from ganns.study.catalogue import DATASETS, Arrays, Dataset, find
from ganns.study.checking import Header, check_headers, check_values, only_value_errors
from ganns.study.fetching import Listener, download
from ganns.study.locks import locked
from ganns.study.records import write_atomically
from ganns.study.unpacking import unpack


class MissingDataset(LookupError):
    """A dataset is not at hand; the message says what is missing and what to do."""


@dataclass(frozen=True)
class Status:
    """Whether a dataset is at hand.

    Args:
        name: of the dataset.
        path: where it lies, or would lie; None for Digits, which scikit-learn has.
        train: rows for training at hand, or all rows where no split is published. Fewer than the dataset's
            `train_rows` if the file holds a part.
        test: published test rows at hand.
        reason: what is missing and what to do; None: it is there.
    """

    name: str
    path: Path | None
    train: int = 0
    test: int = 0
    reason: str | None = None

    @property
    def present(self) -> bool:
        """Whether it can be loaded, as far as the file's headers tell."""
        return self.reason is None


def folder() -> Path:
    """Where the datasets lie: $GANNS_DATA, else `ganns` in the user's cache folder."""
    if chosen := os.environ.get("GANNS_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        cache = "~/Library/Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "ganns"


def load(name: str) -> Arrays:
    """A dataset's arrays, checked against the catalogue.

    Args:
        name: a key of `ganns.study.catalogue.DATASETS`.

    Raises:
        MissingDataset: if it is not at hand.
        ValueError: if there is no such dataset, or its file is not what it should be.
    """
    dataset = find(name)
    if dataset.stem is None:
        return _digits(dataset)
    path, stored = _path(dataset), _stored(dataset)
    if not path.exists():
        raise MissingDataset(_missing(dataset))
    try:
        check_headers(stored, _headers(path))
        arrays = _read(path)
        check_values(stored, arrays)
    except ValueError as error:
        raise ValueError(_damaged(dataset, error)) from error
    return _graded(arrays) if dataset.task != stored.task else arrays


def status(name: str) -> Status:
    """Whether a dataset is at hand, from its file's headers alone."""
    dataset = find(name)
    if dataset.stem is None:
        reason = None if importlib.util.find_spec("sklearn") else _missing(dataset)
        return Status(name, None, reason=reason) if reason else Status(name, None, train=dataset.rows)
    path = _path(dataset)
    if not path.exists():
        return Status(name, path, reason=_missing(dataset))
    try:
        headers = _headers(path)
        check_headers(_stored(dataset), headers)
    except ValueError as error:
        return Status(name, path, reason=_damaged(dataset, error))
    except OSError as error:
        return Status(name, path, reason=f"{dataset.title} cannot be read: {error}.")
    rows = {key: shape[0] for key, (shape, _) in headers.items()}
    return Status(name, path, train=rows["x"], test=rows.get("test_x", 0))


def fetch(name: str, listener: Listener | None = None) -> Status:
    """Put a dataset into the folder from its original files, unless all of it is there.

    Downloads are resumed: after an interruption, call it again.

    Args:
        name: a key of `ganns.study.catalogue.DATASETS`.
        listener: called with the bytes done and the bytes in all (None: unknown) of one original file after the other.

    Raises:
        MissingDataset: if it cannot be downloaded directly; the message says what to do.
        ConnectionError: if the network fails.
        BlockingIOError: if another process is fetching it.
        ValueError: if an original is not what it should be; it is deleted then.
    """
    dataset, found = find(name), status(name)
    if found.present and found.train == dataset.train_rows:
        return found
    with locked(folder() / f".{dataset.stem}.lock") as mine:
        if not mine:
            raise BlockingIOError(f"{dataset.title} is being fetched by another process; wait for that one.")
        _fetch(dataset, listener)
    return status(name)


def synthetic(dataset: Dataset, rows: int | None = None, seed: int = 0) -> Arrays:
    """Random numbers in the dataset's shape: they tell how long a training takes, and nothing else.

    Args:
        dataset: an entry of the catalogue.
        rows: for training, or all where no split is published; None: as many as published. Test rows keep their share.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    rows = dataset.train_rows if rows is None else rows
    train = _random(dataset, rows, random)
    if dataset.split is None:
        return Arrays(*train)
    published, test = dataset.split
    return Arrays(*train, *_random(dataset, max(1, round(test * rows / published)), random))


def fingerprint(arrays: Arrays) -> str:
    """Short name of the arrays' content; another for every difference in a value, a shape or a type."""
    digest = hashlib.blake2b(digest_size=8)
    for x, y in ((arrays.x, arrays.y), (arrays.test_x, arrays.test_y)):
        if x is not None and y is not None:
            rows = Rows(*(torch.as_tensor(np.ascontiguousarray(array)) for array in (x, y)))
            digest.update(checkpoints.fingerprint(rows).encode())
    return digest.hexdigest()


def _fetch(dataset: Dataset, listener: Listener | None) -> None:
    if dataset.stem is None or not dataset.sources:
        originals = [_by_hand(dataset)]
    else:
        originals = [download(source, folder() / "downloads", listener) for source in dataset.sources]
    stored = _stored(dataset)
    try:
        arrays = unpack(stored, originals)
        given = _given(arrays)
        check_headers(stored, {key: (array.shape, array.dtype) for key, array in given.items()})
        check_values(stored, arrays)
    except ValueError as error:
        _discard(dataset, originals)
        raise ValueError(
            f"the original of {dataset.name} is not what it should be: {error}; download it again."
        ) from error
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    write_atomically(_path(dataset), buffer.getvalue())
    _discard(dataset, originals)


def _path(dataset: Dataset) -> Path:
    return folder() / f"{dataset.stem}.npz"


def _stored(dataset: Dataset) -> Dataset:
    """The entry that the file's arrays are of: both wine datasets are one file, with the quality as y."""
    return next(entry for entry in DATASETS.values() if entry.stem == dataset.stem)


def _graded(arrays: Arrays) -> Arrays:
    """Wine's qualities 3 to 9 as classes 0 to 6."""
    return arrays._replace(y=arrays.y.astype(np.int64) - 3)


def _digits(dataset: Dataset) -> Arrays:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingDataset(_missing(dataset)) from error
    data: Any = load_digits()
    return Arrays(data.data.astype(np.float32), data.target.astype(np.int64))


def _headers(path: Path) -> dict[str, Header]:
    """Shape and type of each array in a .npz, without the arrays."""
    headers = {}
    with only_value_errors(), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                old = npy.read_magic(file) == (1, 0)
                shape, _, dtype = npy.read_array_header_1_0(file) if old else npy.read_array_header_2_0(file)
                headers[name.removesuffix(".npy")] = shape, dtype
    return headers


def _read(path: Path) -> Arrays:
    with only_value_errors(), np.load(path, allow_pickle=False) as file:
        return Arrays(**{name: file[name] for name in file.files})


def _given(arrays: Arrays) -> dict[str, Any]:
    return {name: array for name, array in arrays._asdict().items() if array is not None}


def _missing(dataset: Dataset) -> str:
    if dataset.stem is None:
        return f"{dataset.title} is missing: it comes with scikit-learn; install ganns[estimators]."
    path, command = _path(dataset), f"`ganns datasets fetch {dataset.name}`"
    if dataset.manual:
        return f"{dataset.title} is missing: {path} does not exist; {dataset.manual} {path.parent}, then run {command}."
    return (
        f"{dataset.title} is missing: {path} does not exist; run {command}, or set GANNS_DATA to the folder that "
        f"has {path.name}."
    )


def _damaged(dataset: Dataset, error: Exception) -> str:
    return (
        f"{_path(dataset)} is not {dataset.title} ({error}); delete it and run `ganns datasets fetch {dataset.name}`."
    )


def _by_hand(dataset: Dataset) -> Path:
    """The original that a person put into the folder."""
    for path in (folder() / "UTKFace.tar.gz", folder() / "UTKFace"):
        if dataset.manual and path.exists():
            return path
    raise MissingDataset(_missing(dataset))


def _discard(dataset: Dataset, originals: list[Path]) -> None:
    """Delete what was downloaded, but nothing that a person put there."""
    if dataset.sources:
        for original in originals:
            original.unlink(missing_ok=True)


def _random(dataset: Dataset, rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    shape, (low, high) = (rows, *dataset.shape), dataset.values
    if dataset.dtype == "uint8":
        x = random.integers(int(low), int(high), shape, np.uint8, endpoint=True)
    else:
        x = random.random(shape, np.float32) * np.float32(high - low) + np.float32(low)
    if dataset.classes is not None:
        return x, random.permutation(rows) % dataset.classes
    least, greatest = dataset.targets or (0.0, 1.0)
    return x, random.uniform(least, greatest, rows).astype(np.float32)
