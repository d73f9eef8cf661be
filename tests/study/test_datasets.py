"""The folder of datasets: what is taken from it, what is refused, and what is said about what is missing."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from ganns.study import datasets
from ganns.study.catalogue import DATASETS, Arrays, find
from ganns.study.datasets import MissingDataset, fingerprint, folder, load, status, synthetic
from ganns.study.originals import Source


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GANNS_DATA", str(tmp_path))
    return tmp_path


def small(monkeypatch, name, rows, **changes):
    """The catalogue's entry with fewer rows, so that files stay small."""
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], rows=rows, **changes))
    return DATASETS[name]


def save(home, dataset, arrays):
    given = {name: array for name, array in arrays._asdict().items() if array is not None}
    np.savez(home / f"{dataset.stem}.npz", **given)


def test_catalogue_is_the_papers_table():
    assert len(DATASETS) == 10
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert dataset.split is None or dataset.partial or sum(dataset.split) == dataset.rows
        assert (dataset.targets is None) == (dataset.task == "classification") == (dataset.classes is not None)
        assert dataset.stem is None or bool(dataset.sources) != bool(dataset.manual)
        for source in dataset.sources:
            assert source.url.startswith("https://")
            assert source.checksum or source.members
    assert {name: dataset.features for name, dataset in DATASETS.items()} == {
        "airfoil": 5,
        "yacht": 6,
        "utkface": 12288,
        "wine_regression": 11,
        "year_prediction_msd": 90,
        "cifar100": 3072,
        "digits": 64,
        "fashion_mnist": 784,
        "wine_classification": 11,
        "tiny_imagenet": 12288,
    }


@pytest.mark.parametrize(
    ("name", "kind", "rows", "epochs"),
    [
        ("airfoil", "table", 1503, 3000),
        ("yacht", "table", 308, 5000),
        ("utkface", "pictures", 23708, 120),
        ("wine_regression", "table", 6497, 120),
        ("year_prediction_msd", "table", 515345, 120),
        ("cifar100", "pictures", 60000, 120),
        ("digits", "pictures", 1797, 120),
        ("fashion_mnist", "pictures", 70000, 120),
        ("wine_classification", "table", 6497, 120),
        ("tiny_imagenet", "pictures", 100000, 120),
    ],
)
def test_rows_and_epochs_are_the_papers(name, kind, rows, epochs):
    dataset = DATASETS[name]
    assert (dataset.kind, dataset.rows, dataset.epochs) == (kind, rows, epochs)
    assert dataset.licence
    assert dataset.citation.authors
    assert dataset.citation.title


def test_downloads_have_names_of_their_own():
    files = {source.file: source for dataset in DATASETS.values() for source in dataset.sources}
    assert all(files[source.file] is source for dataset in DATASETS.values() for source in dataset.sources)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("airfoyl", "did you mean airfoil?"),
        ("CIFAR-100", "did you mean cifar100?"),
        ("wine", "did you mean wine_regression or wine_classification?"),
        ("", "choose from airfoil, yacht"),
        ("imagenet", "did you mean tiny_imagenet?"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(wrong, hint):
    for function in (find, load, status, datasets.fetch):
        with pytest.raises(ValueError, match="is not a dataset of the study") as caught:
            function(wrong)
        assert hint in str(caught.value)


def test_folder(monkeypatch):
    monkeypatch.setenv("GANNS_DATA", "~/data")
    assert folder() == Path.home() / "data"
    monkeypatch.delenv("GANNS_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setattr(sys, "platform", "linux")
    assert folder() == Path("/cache/ganns")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder() == Path.home() / ".cache" / "ganns"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert folder() == Path.home() / "Library" / "Caches" / "ganns"


def test_digits_are_scikit_learns():
    arrays = load("digits")
    data = sklearn_datasets.load_digits()
    np.testing.assert_array_equal(arrays.x, data.data)
    np.testing.assert_array_equal(arrays.y, data.target)
    assert (arrays.x.dtype, arrays.y.dtype, arrays.test_x) == (np.float32, np.int64, None)
    assert status("digits") == datasets.Status("digits", None, train=1797)
    assert datasets.fetch("digits").present


def test_missing_datasets_say_what_to_do(home):
    with pytest.raises(MissingDataset, match=r"YearPredictionMSD is missing: .*run `ganns datasets fetch year_pred"):
        load("year_prediction_msd")
    with pytest.raises(
        LookupError, match=r"browser and put .* into .*, then run `ganns datasets fetch utkface`"
    ) as caught:
        datasets.fetch("utkface")
    assert str(home) in str(caught.value)
    for name in set(DATASETS) - {"digits"}:
        said = status(name)
        assert not said.present
        assert (said.train, said.test) == (0, 0)
        assert said.reason
        assert f"ganns datasets fetch {name}" in said.reason


def test_without_scikit_learn_digits_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingDataset, match=r"install ganns\[estimators\]"):
        load("digits")


def test_published_split_is_kept(home, monkeypatch):
    dataset = small(monkeypatch, "cifar100", 250, split=(200, 50))
    given = synthetic(dataset)
    save(home, dataset, given)
    loaded = load("cifar100")
    for mine, theirs in zip(loaded, given, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    said = status("cifar100")
    assert (said.present, said.train, said.test, said.path) == (True, 200, 50, home / "cifar100.npz")


def test_part_of_tiny_imagenet_is_accepted_and_counted(home, monkeypatch):
    dataset = small(monkeypatch, "tiny_imagenet", 500, split=(500, 10), shape=(2, 2, 3))
    arrays = synthetic(dataset, 300)
    assert len(arrays.test_x) == 6
    enough = synthetic(dataset)
    save(home, dataset, arrays._replace(test_x=enough.test_x, test_y=enough.test_y))
    assert (status("tiny_imagenet").train, status("tiny_imagenet").test) == (300, 10)
    assert load("tiny_imagenet").x.shape == (300, 2, 2, 3)
    save(home, dataset, Arrays(arrays.x, arrays.y[:299], enough.test_x, enough.test_y))
    with pytest.raises(ValueError, match="x has 300 rows and y 299"):
        load("tiny_imagenet")
    save(home, dataset, arrays._replace(test_x=enough.test_x, test_y=enough.test_y))
    monkeypatch.setitem(DATASETS, "tiny_imagenet", replace(dataset, partial=False))
    with pytest.raises(ValueError, match="x has 300 rows, not 500"):
        load("tiny_imagenet")


def test_both_wines_come_from_one_file(home, monkeypatch):
    dataset = small(monkeypatch, "wine_regression", 14)
    small(monkeypatch, "wine_classification", 14)
    x = synthetic(dataset).x
    quality = np.array([3, 4, 5, 6, 7, 8, 9] * 2, np.float32)
    save(home, dataset, Arrays(x, quality))
    np.testing.assert_array_equal(load("wine_regression").y, quality)
    classes = load("wine_classification")
    np.testing.assert_array_equal(classes.y, quality - 3)
    assert classes.y.dtype == np.int64
    assert fingerprint(classes) != fingerprint(load("wine_regression"))


def spoiled(arrays, how):
    x, y = arrays.x, arrays.y
    match how:
        case "rows":
            return Arrays(x[:-1], y[:-1])
        case "unequal":
            return Arrays(x, y[:-1])
        case "features":
            return Arrays(x[:, :-1], y)
        case "targets":
            return Arrays(x, y[:, None])
        case "type":
            return Arrays(x.astype(np.float64), y)
        case "labels":
            return Arrays(x, y.astype(np.int64))
        case "split":
            return Arrays(x, y, x, y)
        case "nan":
            return Arrays(np.where(x == x.max(), np.float32("nan"), x), y)
        case "large":
            return Arrays(np.where(x == x.max(), np.float32(20001), x), y)
        case "small":
            return Arrays(x, np.where(y == y.min(), np.float32(0), y))
    raise ValueError(how)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("rows", r"x has 9 rows, not 10"),
        ("unequal", r"y has 9 rows, not 10"),
        ("features", r"x has the shape \(10, 4\), not \(10, 5\)"),
        ("targets", r"y has the shape \(10, 1\), not \(10,\)"),
        ("type", r"x is float64, not float32"),
        ("labels", r"y is int64, not float32"),
        ("split", r"it holds test_x, test_y, x, y, not x, y"),
    ],
)
def test_wrong_headers_are_refused(home, monkeypatch, how, words):
    dataset = small(monkeypatch, "airfoil", 10)
    save(home, dataset, spoiled(synthetic(dataset), how))
    with pytest.raises(ValueError, match=words) as caught:
        load("airfoil")
    assert "airfoil.npz is not Airfoil (" in str(caught.value)
    assert "delete it and run `ganns datasets fetch airfoil`" in str(caught.value)
    assert status("airfoil").reason == str(caught.value)


@pytest.mark.parametrize(
    ("how", "words"),
    [("nan", r"x goes from .* to nan"), ("large", r"x goes from .* to 20001"), ("small", "y goes from 0.0 to")],
)
def test_wrong_values_are_refused(home, monkeypatch, how, words):
    dataset = small(monkeypatch, "airfoil", 10)
    save(home, dataset, spoiled(synthetic(dataset), how))
    assert status("airfoil").present
    with pytest.raises(ValueError, match=words):
        load("airfoil")


@pytest.mark.parametrize(
    ("labels", "words"),
    [([0, 1, 2, 0], "y has 3 classes, not 4"), ([0, 1, 2, 4], "y goes from 0 to 4, not from 0 to 3")],
)
def test_wrong_classes_are_refused(home, monkeypatch, labels, words):
    dataset = small(monkeypatch, "cifar100", 6, split=(4, 2), classes=4)
    arrays = synthetic(dataset)
    save(home, dataset, arrays)
    load("cifar100")
    save(home, dataset, arrays._replace(y=np.array(labels)))
    with pytest.raises(ValueError, match=words):
        load("cifar100")
    save(home, dataset, arrays._replace(test_y=np.array([0, -1])))
    with pytest.raises(ValueError, match="test_y goes from -1 to 0"):
        load("cifar100")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\3\4 cut", b"\x93NUMPY"])
def test_damaged_files_are_refused(home, content):
    (home / "yacht.npz").write_bytes(content)
    assert "yacht.npz is not Yacht" in (status("yacht").reason or "")
    with pytest.raises(ValueError, match=r"yacht\.npz is not Yacht"):
        load("yacht")


def test_altered_file_never_loads_as_something_else(home, monkeypatch):
    dataset = small(monkeypatch, "airfoil", 10)
    save(home, dataset, synthetic(dataset))
    path, source = home / "airfoil.npz", random.Random(0)
    whole, good = path.read_bytes(), fingerprint(load("airfoil"))
    refused = 0
    for _ in range(200):
        data = bytearray(whole[: source.randrange(len(whole))] if source.random() < 0.2 else whole)
        for _ in range(source.randrange(1, 20) if data else 0):
            data[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(data)
        told = status("airfoil")
        try:
            loaded = load("airfoil")
        except ValueError:
            refused += 1
        else:
            assert told.present
            assert fingerprint(loaded) == good
    assert refused > 100


def test_unreadable_file_is_told_and_not_called_damaged(home, monkeypatch):
    (home / "airfoil.npz").mkdir()
    assert "Airfoil cannot be read" in (status("airfoil").reason or "")
    with pytest.raises(IsADirectoryError):
        load("airfoil")


def test_pickles_are_never_opened(home, monkeypatch):
    dataset = small(monkeypatch, "airfoil", 10)
    np.savez(home / "airfoil.npz", x=np.array([print] * 10), y=synthetic(dataset).y)
    with pytest.raises(ValueError, match="x is object, not float32"):
        load("airfoil")


def test_truncated_or_altered_file_is_refused(home, monkeypatch):
    dataset = small(monkeypatch, "airfoil", 10)
    save(home, dataset, synthetic(dataset))
    path = home / "airfoil.npz"
    whole = path.read_bytes()
    middle = whole.index(synthetic(dataset).x.tobytes()) + 50
    for damaged in (whole[:-30], whole[:middle], whole[:middle] + b"\xff" + whole[middle + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"airfoil\.npz is not Airfoil"):
            load("airfoil")


@pytest.mark.parametrize("name", DATASETS)
def test_synthetic_data_have_the_shape_and_the_bounds(name):
    dataset = DATASETS[name]
    arrays = synthetic(dataset, 400)
    assert arrays.x.shape == (400, *dataset.shape)
    assert (arrays.x.dtype, arrays.y.dtype) == (dataset.dtype, dataset.target_dtype)
    low, high = dataset.values
    assert low <= arrays.x.min() < arrays.x.max() <= high
    if dataset.classes:
        assert set(arrays.y) == set(range(dataset.classes))
    else:
        least, greatest = np.float32(dataset.targets)
        assert least <= arrays.y.min() < arrays.y.max() <= greatest
    if dataset.split is None:
        assert arrays.test_x is None
    else:
        assert len(arrays.test_x) == len(arrays.test_y) == round(400 * dataset.split[1] / dataset.split[0])
    assert fingerprint(arrays) == fingerprint(synthetic(dataset, 400)) != fingerprint(synthetic(dataset, 400, seed=1))


def test_fingerprint_tells_every_difference():
    arrays = Arrays(*(np.arange(6.0).reshape(shape) for shape in ((3, 2), 6, (3, 2), 6)))
    others = [
        arrays,
        Arrays(arrays.x, arrays.y),
        arrays._replace(x=arrays.x.reshape(2, 3)),
        arrays._replace(x=arrays.x.astype(np.float32)),
        arrays._replace(y=arrays.y + np.eye(6)[5] * 1e-9),
        arrays._replace(test_y=arrays.test_y[::-1]),
        Arrays(arrays.test_x, arrays.y, arrays.x[:1], arrays.test_y),
    ]
    assert len({fingerprint(other) for other in others}) == len(others)
    assert len(fingerprint(arrays)) == 16
    assert fingerprint(Arrays(*(array.copy() for array in arrays))) == fingerprint(arrays)


def test_faces_put_there_by_hand_are_unpacked_and_kept(home, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    small(monkeypatch, "utkface", 2)
    (home / "UTKFace").mkdir()
    for age in (7, 61):
        image.new("RGB", (200, 200), (age, 0, 255)).save(home / "UTKFace" / f"{age}_1_0_2017.jpg.chip.jpg")
    assert datasets.fetch("utkface").train == 2
    np.testing.assert_array_equal(load("utkface").y, [61, 7])
    assert len(list((home / "UTKFace").iterdir())) == 2


def test_faces_without_pillow(home, monkeypatch):
    small(monkeypatch, "utkface", 1)
    (home / "UTKFace").mkdir()
    (home / "UTKFace" / "7_1_0_2017.jpg.chip.jpg").write_bytes(b"picture")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"install ganns\[study\]"):
        datasets.fetch("utkface")


def test_sources_name_their_files():
    assert Source("https://example.org/a%20b/data+set.zip?x=1").file == "data+set.zip"
