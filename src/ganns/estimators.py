"""Estimators for tables, in the manner of scikit-learn: `GaNNRegressor` and `GaNNClassifier`."""

import os
from typing import Any, cast

try:
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError as error:
    raise ImportError("the estimators need scikit-learn: pip install 'ganns[estimators]'.") from error

import numpy as np
import torch
from torch import Tensor

from ganns.estimating import FEWEST_ROWS, TableEstimator
from ganns.predictive import Classification, Regression
from ganns.saving import read_model

_Arrays = tuple[np.ndarray, np.ndarray]


class GaNNRegressor(RegressorMixin, TableEstimator):
    """Gaussian neural networks for regression: an ensemble that says how sure it is, and is surprised by odd rows.

    Features and targets are standardised inside. Networks are trained together (`ganns.fit_fleet`) with AdamW; part of
    the rows is held back to stop in time, to choose α, and to calibrate how sure predictions are.

    Args:
        hidden: units of each hidden layer.
        variance: of the activity priors: "sparse", "constant" or "dense"; None: plain networks, which cannot be
            surprised.
        alpha: strength of the priors in training (Eq. 9); "auto" tries several, 0 among them, which is the plain
            network, and takes the one under which the rows held back are likeliest without a clearly larger error.
        members: networks in the ensemble.
        dropout: probability of dropping an activity in training.
        epochs: passes over the training rows, at most.
        early_stopping: whether networks that no longer improve on the rows held back stop.
        batch_size: rows a step, at most; "auto": some 32 steps an epoch, in batches of 16 to 512 rows.
        learning_rate: AdamW's, before its schedule.
        validation_fraction: share of rows that are held back.
        device: where to train; None: a GPU if there is one. Predictions are made on the CPU, in float64.
        random_state: a number makes results repeatable.
        verbose: whether to show a live line in a terminal.

    Attributes:
        alpha_: α of the networks that were chosen.
        history_: of each network, arrays of one value an epoch by name ("base", "inner", "coefficient", "norm",
            "validation"), in standardised units.
        n_iter_: epochs of the longest.

    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = GaNNRegressor(hidden=(8,), members=2, alpha=0.1, epochs=3, random_state=0).fit(x, x.sum(1))
    >>> mean, std = model.predict(x, return_std=True)
    >>> lower, upper = model.predict_interval(x, coverage=0.9)
    """

    _task = "regression"

    def fit(self, X, y):
        """Train, choose and calibrate.

        Args:
            X: features (N, features), array or data frame.
            y: targets, (N,) or (N, targets).
        """
        checks: dict[str, Any] = {"multi_output": True, "y_numeric": True, "ensure_min_samples": FEWEST_ROWS}
        x, y = cast("_Arrays", validate_data(self, X, y, dtype=np.float64, **checks))
        self._flat = y.ndim == 1
        self._fit(x, y.astype(np.float64).reshape(len(y), -1))
        return self

    def predict(self, X, return_std: bool = False):
        """The mean of the networks, in the shape of y; with `return_std` also the standard deviation."""
        rows = self._rows(X)
        mean = self._shaped(self._ensemble.center(rows))
        return (mean, self._shaped(self.predict_dist(X).variance.sqrt())) if return_std else mean

    def predict_dist(self, X) -> Regression:
        """The predictive distribution: `ganns.Regression`, whose tensors are (N, targets), in the units of y."""
        rows = self._rows(X)
        return cast("Regression", self._ensemble.distribution(rows))

    def predict_interval(self, X, coverage: float = 0.9):
        """Lower and upper bounds that hold this share of targets, each in the shape of y.

        They count on no Gaussian errors, as `predict_dist(X).interval(coverage)` does: how many standard deviations it
        takes was counted on the rows held back (split conformal prediction).
        """
        rows = self._rows(X)
        return tuple(self._shaped(bound) for bound in self._ensemble.interval(rows, coverage))

    def sample(self, X, draws: int = 100, random_state=None):
        """Random targets of the predictive distribution, (draws, ...) in the shape of y."""
        prediction = self.predict_dist(X)
        noise = check_random_state(random_state).standard_normal((draws, *prediction.mean.shape))
        return self._shaped(prediction.mean + prediction.variance.sqrt() * torch.from_numpy(noise))

    def _shaped(self, values: Tensor) -> np.ndarray:
        """(..., targets) as y was."""
        return (values.squeeze(-1) if self._flat else values).numpy()

    def _target(self) -> dict[str, Any]:
        return {"flat": self._flat}

    def _take_target(self, target: dict[str, Any]) -> None:
        self._flat = target["flat"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class GaNNClassifier(ClassifierMixin, TableEstimator):
    """Gaussian neural networks for classification: an ensemble that says how sure it is, and is surprised by odd rows.

    Features are standardised inside. Networks are trained together (`ganns.fit_fleet`) with AdamW; part of the rows is
    held back to stop in time, to choose α, and to calibrate the probabilities.

    Args:
        hidden: units of each hidden layer.
        variance: of the activity priors: "sparse", "constant" or "dense"; None: plain networks, which cannot be
            surprised.
        alpha: strength of the priors in training (Eq. 9); "auto" tries several, 0 among them, which is the plain
            network, and takes the one under which the rows held back are likeliest without clearly more errors.
        members: networks in the ensemble.
        dropout: probability of dropping an activity in training.
        epochs: passes over the training rows, at most.
        early_stopping: whether networks that no longer improve on the rows held back stop.
        batch_size: rows a step, at most; "auto": some 32 steps an epoch, in batches of 16 to 512 rows.
        learning_rate: AdamW's, before its schedule.
        validation_fraction: share of rows that are held back.
        device: where to train; None: a GPU if there is one. Predictions are made on the CPU, in float64.
        random_state: a number makes results repeatable.
        verbose: whether to show a live line in a terminal.

    Attributes:
        classes_: labels, in the order of probabilities.
        alpha_: α of the networks that were chosen.
        history_: of each network, arrays of one value an epoch by name ("base", "inner", "coefficient", "norm",
            "validation").
        n_iter_: epochs of the longest.

    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> labels = np.where(x[:, 0] > 0, "warm", "cold")
    >>> model = GaNNClassifier(hidden=(8,), members=2, alpha=0.1, epochs=3, random_state=0).fit(x, labels)
    >>> model.predict_proba(x).shape
    (60, 2)
    """

    _task = "classification"

    def fit(self, X, y):
        """Train, choose and calibrate.

        Args:
            X: features (N, features), array or data frame.
            y: labels (N,): numbers or strings.
        """
        x, y = cast("_Arrays", validate_data(self, X, y, dtype=np.float64, ensure_min_samples=FEWEST_ROWS))
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()[0]!r}; there must be two or more.")
        self._fit(x, numbers.astype(np.int64))
        return self

    def predict(self, X):
        """The most probable label of each row."""
        numbers = self.predict_dist(X).classes.numpy()
        return self.classes_[numbers]

    def predict_proba(self, X):
        """Calibrated probabilities (N, classes), in the order of `classes_`."""
        return self.predict_dist(X).probabilities.numpy()

    def predict_dist(self, X) -> Classification:
        """The predictive distribution: `ganns.Classification`, whose classes are numbers into `classes_`."""
        rows = self._rows(X)
        return cast("Classification", self._ensemble.distribution(rows))

    def sample(self, X, draws: int = 100, random_state=None):
        """Random labels of the predictive distribution, (draws, N)."""
        below = self.predict_proba(X).cumsum(1)
        level = check_random_state(random_state).random_sample((draws, len(below), 1))
        return self.classes_[(level > below[:, :-1]).sum(2)]

    def _target(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "type": self.classes_.dtype.str}

    def _take_target(self, target: dict[str, Any]) -> None:
        self.classes_ = np.array(target["classes"], dtype=target["type"])


_KINDS = {kind.__name__: kind for kind in (GaNNRegressor, GaNNClassifier)}


def describe(estimator: GaNNRegressor | GaNNClassifier) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A fitted estimator as JSON values, with its class's name as "kind", and tensors."""
    return estimator.to_numbers()


def restore(description: dict[str, Any], tensors: dict[str, Tensor]) -> GaNNRegressor | GaNNClassifier:
    """The estimator that `describe` was given."""
    try:
        return _KINDS[description["kind"]].from_numbers(description, tensors)
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"the parts of this model do not fit together ({error}); save it anew.") from error


def distance(estimator: GaNNRegressor | GaNNClassifier, x: np.ndarray) -> np.ndarray:
    """How unusual rows are, without bound, (N,): it tells apart those that are all beyond the 100th percentile."""
    return estimator._ensemble.distance(torch.tensor(x)).numpy()


def load(path: str | os.PathLike) -> GaNNRegressor | GaNNClassifier:
    """The estimator that `save` wrote.

    A folder that is incomplete, altered, of another kind or of a later version is refused; nothing in it is executed.
    """
    return restore(*read_model(path, *_KINDS))
