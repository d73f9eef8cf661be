"""Gradient boosting as scikit-learn has it, with its defaults: the reference that people with tables know."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ganns.predictive import Regression

_LEAST = 1e-7  # probability of a class that no training row had


class Boosting:
    """A fitted model as `ganns.study.evaluation.Predictor`.

    A regressor gives means; its uncertainty is what calibration adds, an interval of one width for all rows.
    """

    head, noisy = "mean", False

    def __init__(self, task: str, seed: int, x: Tensor, y: Tensor, classes: int):
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        self.task, self.classes = task, classes
        make: Any = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
        self.model = make(random_state=seed).fit(_numbers(x), y.cpu().numpy().reshape(-1))

    @property
    def spread(self) -> bool:
        """A classifier has probabilities."""
        return self.task == "classification"

    @property
    def iterations(self) -> int:
        """Trees, one after another."""
        return int(self.model.n_iter_)

    def point(self, x: Tensor) -> Tensor:
        """Means (N, 1) or class probabilities (N, K)."""
        if self.task == "regression":
            return torch.from_numpy(self.model.predict(_numbers(x))).unsqueeze(1)
        known = self.model.predict_proba(_numbers(x))
        probabilities = np.full((len(known), self.classes), _LEAST)
        probabilities[:, self.model.classes_] = np.maximum(known, _LEAST)
        return torch.from_numpy(probabilities / probabilities.sum(1, keepdims=True))

    def draws(self, x: Tensor, gamma: float, count: int = 1) -> Tensor:
        """The one answer that it has: means, or logarithms of probabilities as logits."""
        point = self.point(x)
        return (point if self.task == "regression" else point.log()).unsqueeze(0)

    def scaled(self, y: Tensor) -> Tensor:
        """Targets are not scaled."""
        return y

    def rescaled(self, prediction: Regression) -> Regression:
        """Nor are predictions."""
        return prediction


def _numbers(x: Tensor) -> np.ndarray:
    return x.flatten(1).cpu().numpy()
