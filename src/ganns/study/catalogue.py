"""The paper's ten datasets: what they are and whom to cite."""

import difflib
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ganns.study import originals
from ganns.study.originals import Source


class Arrays(NamedTuple):
    """One dataset in memory.

    Features are float32 (rows, features) for tables and for Digits, uint8 (rows, height, width, channels) for the other
    pictures; y is float32 for regression and int64 labels from 0 for classification. Without a published split the last
    two are None. The order is as published: shuffle before splitting.
    """

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray | None = None
    test_y: np.ndarray | None = None


@dataclass(frozen=True)
class Citation:
    """Whom to cite."""

    authors: str
    title: str
    year: int
    doi: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One dataset as the paper's Table 1 has it, and what its file must hold.

    Args:
        name: the key in `DATASETS`.
        title: as the paper prints it.
        task: "regression" or "classification".
        kind: "table" or "pictures".
        rows: N of the paper; for Tiny ImageNet that is without the test pictures.
        shape: of one row of x: (features,), or (height, width, channels).
        epochs: how long the paper trains.
        classes: None for regression.
        licence: what the authors allow.
        citation: whom to cite.
        stem: the data are in `<stem>.npz`; None: scikit-learn brings them along.
        values: the least and the greatest number in x.
        targets: regression: the least and the greatest number in y.
        split: published rows for training and for test; None: no split is published.
        partial: whether the file may hold fewer training rows than published.
        dtype: of x.
        sources: the original files.
        manual: what a person has to do where nothing can be downloaded directly; the folder's path follows it.
    """

    name: str
    title: str
    task: str
    kind: str
    rows: int
    shape: tuple[int, ...]
    epochs: int
    classes: int | None
    licence: str
    citation: Citation
    stem: str | None
    values: tuple[float, float]
    targets: tuple[float, float] | None = None
    split: tuple[int, int] | None = None
    partial: bool = False
    dtype: str = "float32"
    sources: tuple[Source, ...] = ()
    manual: str | None = None

    @property
    def features(self) -> int:
        """Numbers a row, pictures flattened."""
        return math.prod(self.shape)

    @property
    def train_rows(self) -> int:
        """Published rows for training, or all rows where no split is published."""
        return self.split[0] if self.split else self.rows

    @property
    def target_dtype(self) -> str:
        """Of y."""
        return "float32" if self.classes is None else "int64"


_CC_BY = "CC BY 4.0"
_RESEARCH = "non-commercial research only"

_WINE = Dataset(
    name="wine_regression",
    title="Wine Regression",
    task="regression",
    kind="table",
    rows=6497,
    shape=(11,),
    epochs=120,
    classes=None,
    licence=_CC_BY,
    citation=Citation(
        "P. Cortez, A. Cerdeira, F. Almeida, T. Matos, J. Reis",
        "Modeling wine preferences by data mining from physicochemical properties",
        2009,
        "10.24432/C56S3T",
    ),
    stem="wine",
    values=(0, 440),
    targets=(3, 9),
    sources=originals.WINE,
)

_IN_THE_PAPERS_ORDER = (
    Dataset(
        name="airfoil",
        title="Airfoil",
        task="regression",
        kind="table",
        rows=1503,
        shape=(5,),
        epochs=3000,
        classes=None,
        licence=_CC_BY,
        citation=Citation(
            "T. F. Brooks, D. S. Pope, M. A. Marcolini",
            "Airfoil self-noise and prediction",
            1989,
            "10.24432/C5VW2C",
        ),
        stem="airfoil",
        values=(0, 20000),
        targets=(103.38, 140.987),
        sources=originals.AIRFOIL,
    ),
    Dataset(
        name="yacht",
        title="Yacht",
        task="regression",
        kind="table",
        rows=308,
        shape=(6,),
        epochs=5000,
        classes=None,
        licence=_CC_BY,
        citation=Citation(
            "J. Gerritsma, R. Onnink, A. Versluis",
            "Geometry, resistance and stability of the Delft systematic yacht hull series",
            1981,
            "10.24432/C5XG7R",
        ),
        stem="yacht",
        values=(-5, 5.35),
        targets=(0.01, 62.42),
        sources=originals.YACHT,
    ),
    Dataset(
        name="utkface",
        title="UTKFace",
        task="regression",
        kind="pictures",
        rows=23708,
        shape=(64, 64, 3),
        epochs=120,
        classes=None,
        licence=_RESEARCH,
        citation=Citation(
            "Z. Zhang, Y. Song, H. Qi",
            "Age Progression/Regression by Conditional Adversarial Autoencoder",
            2017,
            "10.1109/CVPR.2017.463",
        ),
        stem="utkface",
        values=(0, 255),
        targets=(1, 116),
        dtype="uint8",
        manual="download the aligned and cropped pictures, UTKFace.tar.gz, from https://susanqq.github.io/UTKFace/ "
        "with a browser and put the archive, or a folder UTKFace with the pictures, into",
    ),
    _WINE,
    Dataset(
        name="year_prediction_msd",
        title="YearPredictionMSD",
        task="regression",
        kind="table",
        rows=515345,
        shape=(90,),
        epochs=120,
        classes=None,
        licence=_CC_BY,
        citation=Citation("T. Bertin-Mahieux", "YearPredictionMSD", 2011, "10.24432/C50K61"),
        stem="year_prediction_msd",
        values=(-14862, 65736),
        targets=(1922, 2011),
        split=(463715, 51630),
        sources=originals.YEAR_PREDICTION_MSD,
    ),
    Dataset(
        name="cifar100",
        title="CIFAR-100",
        task="classification",
        kind="pictures",
        rows=60000,
        shape=(32, 32, 3),
        epochs=120,
        classes=100,
        licence="none stated; cite the report",
        citation=Citation("A. Krizhevsky", "Learning Multiple Layers of Features from Tiny Images", 2009),
        stem="cifar100",
        values=(0, 255),
        split=(50000, 10000),
        dtype="uint8",
        sources=originals.CIFAR100,
    ),
    Dataset(
        name="digits",
        title="Digits-MNIST",
        task="classification",
        kind="pictures",
        rows=1797,
        shape=(64,),
        epochs=120,
        classes=10,
        licence=_CC_BY,
        citation=Citation(
            "E. Alpaydin, C. Kaynak", "Optical Recognition of Handwritten Digits", 1998, "10.24432/C50P49"
        ),
        stem=None,
        values=(0, 16),
    ),
    Dataset(
        name="fashion_mnist",
        title="Fashion-MNIST",
        task="classification",
        kind="pictures",
        rows=70000,
        shape=(28, 28, 1),
        epochs=120,
        classes=10,
        licence="MIT",
        citation=Citation(
            "H. Xiao, K. Rasul, R. Vollgraf",
            "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
            2017,
            "10.48550/arXiv.1708.07747",
        ),
        stem="fashion_mnist",
        values=(0, 255),
        split=(60000, 10000),
        dtype="uint8",
        sources=originals.FASHION_MNIST,
    ),
    replace(
        _WINE, name="wine_classification", title="Wine Classification", task="classification", classes=7, targets=None
    ),
    Dataset(
        name="tiny_imagenet",
        title="Tiny ImageNet",
        task="classification",
        kind="pictures",
        rows=100000,
        shape=(64, 64, 3),
        epochs=120,
        classes=200,
        licence=_RESEARCH,
        citation=Citation("Y. Le, X. Yang", "Tiny ImageNet Visual Recognition Challenge", 2015),
        stem="tiny_imagenet",
        values=(0, 255),
        split=(100000, 10000),
        partial=True,
        dtype="uint8",
        sources=originals.TINY_IMAGENET,
    ),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _IN_THE_PAPERS_ORDER}


def find(name: str) -> Dataset:
    """The dataset of a name, or an error with the nearest names.

    >>> find("yacht").rows
    308
    """
    if name in DATASETS:
        return DATASETS[name]
    part, titles = name.lower(), {key: f"{key} {dataset.title.lower()}" for key, dataset in DATASETS.items()}
    near = [key for key in titles if part and part in titles[key]] or difflib.get_close_matches(part, DATASETS)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(DATASETS)}."
    raise ValueError(f"name={name!r} is not a dataset of the study; {hint}")
