"""What `GaNNRegressor` and `GaNNClassifier` share: parameters, checks, and their way to disk and out of the library."""

import math
import os
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from ganns.ensembles import Ensemble, from_numbers, plain, to_numbers
from ganns.recipes import Recipe
from ganns.saving import write_model
from ganns.tabular import fit_ensembles

ALPHAS = (0.0, 1.0)  # tried where alpha="auto"; 0 is the plain network
FEWEST_ROWS = 5
_PATIENCE = 40  # epochs without improvement


class TableEstimator(BaseEstimator, ABC):
    """What both estimators share; their docstrings explain the parameters."""

    _task: ClassVar[str]
    n_features_in_: int
    feature_names_in_: np.ndarray
    alpha_: float
    history_: list[dict[str, np.ndarray]]
    n_iter_: int
    _ensemble: Ensemble

    def __init__(
        self,
        *,
        hidden=(128, 128),
        variance="sparse",
        alpha="auto",
        members=5,
        dropout=0.0,
        epochs=200,
        early_stopping=True,
        batch_size="auto",
        learning_rate=3e-3,
        validation_fraction=0.2,
        device=None,
        random_state=None,
        verbose=False,
    ):
        self.hidden = hidden
        self.variance = variance
        self.alpha = alpha
        self.members = members
        self.dropout = dropout
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def surprise(self, X):
        """How unusual each row is, as a percentile of the rows that the estimator was fitted to: (N,), from 0 to 100.

        It looks at the activity that a row causes (`ganns.Typicality`), not at the prediction: 99.5 says that 99.5 % of
        those rows were less unusual.
        """
        rows = self._rows(X)
        return self._ensemble.percentile(rows).numpy()

    def to_torch(self, dtype: torch.dtype = torch.float32) -> nn.Module:
        """The ensemble as a plain PyTorch module, with the standardisation inside and nothing of this library.

        It takes raw rows (N, features) and gives the mean of the networks: what `predict` says, (N, targets), for
        regression; for classification the mean of their calibrated probabilities (N, classes), in the order of
        `classes_`, without the noise that `predict_proba` averages over.

        Args:
            dtype: of its weights, input and output; with torch.float64 it repeats `predict` to the last digits.
        """
        check_is_fitted(self)
        return plain(self._ensemble, dtype)

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator as a folder of JSON and safetensors; `ganns.load` reads it."""
        write_model(path, *self.to_numbers())

    def to_numbers(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The fitted estimator as JSON values and tensors; `from_numbers` makes it anew."""
        check_is_fitted(self)
        parameters = self._numbers()
        seed, device = parameters["random_state"], parameters["device"]
        parameters["random_state"] = seed if isinstance(seed, int) else None
        parameters["device"] = None if device is None else str(device)
        ensemble, tensors = to_numbers(self._ensemble)
        for number, history in enumerate(self.history_):
            tensors |= {f"history.{number}.{name}": torch.from_numpy(values) for name, values in history.items()}
        description = {
            "kind": type(self).__name__,
            "parameters": parameters,
            "features": self.n_features_in_,
            "feature_names": [*map(str, getattr(self, "feature_names_in_", []))],
            "ensemble": ensemble,
            "target": self._target(),
        }
        return description, tensors

    @classmethod
    def from_numbers(cls, description: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The estimator that gave these numbers."""
        estimator = cls(**{**description["parameters"], "hidden": tuple(description["parameters"]["hidden"])})
        histories = {name: tensor for name, tensor in tensors.items() if name.startswith("history.")}
        ensemble = {name: tensor for name, tensor in tensors.items() if name not in histories}
        estimator._ensemble = from_numbers(description["ensemble"], ensemble)
        estimator.history_ = [{} for _ in estimator._ensemble.joined.networks]
        for name, tensor in histories.items():
            _, number, series = name.split(".")
            estimator.history_[int(number)][series] = tensor.numpy()
        estimator._note()
        estimator.n_features_in_ = description["features"]
        if description["feature_names"]:
            estimator.feature_names_in_ = np.array(description["feature_names"], dtype=object)
        estimator._take_target(description["target"])
        return estimator

    @abstractmethod
    def _target(self) -> dict[str, Any]:
        """What was learned about y, as JSON values."""

    @abstractmethod
    def _take_target(self, target: dict[str, Any]) -> None:
        """Learn it again."""

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        """Train on checked rows: y (N, targets) in float64, or class numbers (N,)."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 2**16))
        given = self._numbers()
        if not isinstance(given["members"], int) or given["members"] < 1:
            raise ValueError(f"members={self.members!r}: give a whole number of at least 1.")
        self._ensemble, trainings = fit_ensembles(
            torch.tensor(x),  # copies: what is read-only would draw a warning
            torch.tensor(y),
            self._recipe(given, len(x)),
            self._alphas(),
            members=given["members"],
            variance=self.variance,
            hidden=self.hidden,
            seed=seed,
            device=self.device,
            progress=bool(self.verbose),
        )
        self.history_ = [training.history for training in trainings]
        self._note()

    def _note(self) -> None:
        """Attributes that follow from others."""
        self.alpha_ = self._ensemble.member.alpha or 0.0
        self.n_iter_ = max(len(history["base"]) for history in self.history_)

    def _numbers(self) -> dict[str, Any]:
        """The parameters with numbers of NumPy, which grids are often made of, as Python's."""
        numbers = {k: v.item() if isinstance(v, np.generic) else v for k, v in self.get_params().items()}
        if not np.iterable(self.hidden):
            raise ValueError(f"hidden={self.hidden!r}: give the units of each layer, such as (128, 128).")
        return {**numbers, "hidden": [int(units) for units in self.hidden]}

    def _recipe(self, given: dict[str, Any], count: int) -> Recipe:
        share = self.validation_fraction
        if not 0 < share < 1:
            raise ValueError(f"validation_fraction={share!r}: give a share between 0 and 1, such as 0.2.")
        size = given["batch_size"]
        if size != "auto" and (not isinstance(size, int) or size < 1):
            raise ValueError(f"batch_size={size!r}: give a whole number of at least 1, or 'auto'.")
        training = round(count * (1 - share))
        if not 2 <= training <= count - 2:
            raise ValueError(
                f"validation_fraction={share!r} leaves {training} of {count} samples for training; give more rows, "
                "or a share that leaves at least 2 on either side."
            )
        return replace(
            Recipe.modern(self._task),
            head="variance" if self._task == "regression" else "classes",
            beta=0.5,
            learning_rate=given["learning_rate"],
            epochs=given["epochs"],
            patience=_PATIENCE if self.early_stopping else None,
            batch_size=batch_size_for(training) if size == "auto" else min(size, training),
            split=(1 - share, share / 2, share / 2),
            dropout=given["dropout"],
        )

    def _alphas(self) -> list[float]:
        """The α to train with, the plain network's first."""
        if self.variance is None:
            return [0.0]
        if isinstance(self.alpha, str):
            if self.alpha != "auto":
                raise ValueError(f"alpha={self.alpha!r}: give a number of 0 or above, or 'auto'.")
            return list(ALPHAS)
        return [float(self.alpha)]

    def _rows(self, X) -> Tensor:
        check_is_fitted(self)
        return torch.tensor(validate_data(self, X, dtype=np.float64, reset=False))


def batch_size_for(training: int) -> int:
    """Some 32 steps an epoch, in batches of 16 to 512 rows; fewer where there are fewer."""
    return min(training, max(16, min(512, 2 ** round(math.log2(training / 32)))))
