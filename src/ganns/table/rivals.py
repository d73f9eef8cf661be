"""The methods that `ganns compare` lets compete, each with as many settings to choose from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ganns.calibration import fit_draws
from ganns.ensembles import Joined, noisy
from ganns.feeding import Scaling
from ganns.heads import make_head
from ganns.predictive import Calibration, Classification, Regression, summarise
from ganns.sampling import sample
from ganns.training import Fleet

Setting = dict[str, float]

_GAMMAS = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_DRAWS = 16
_MOST_TREES = 300  # as many of them as suit the rows to stop by best
_LEAST = 1e-6  # probability of a class that no training row had
_RATES = (1e-3, 3e-3)
_DECAYS = tuple({"learning_rate": rate, "weight_decay": decay} for rate in _RATES for decay in (0.01, 0.3))
_DROPOUTS = tuple({"learning_rate": rate, "dropout": share} for rate in _RATES for share in (0.1, 0.3))
_ALPHAS = tuple({"learning_rate": rate, "alpha": alpha} for rate in _RATES for alpha in (0.1, 1.0))
_TREES = tuple({"learning_rate": rate, "max_leaf_nodes": leaves} for rate in (0.05, 0.1) for leaves in (15, 31))


@dataclass(frozen=True, eq=False)
class Method:
    """One competitor.

    Args:
        key: short name.
        title: what it is called.
        settings: to choose from by the NLL of rows held back.
        variance: of its activity priors; None: none.
        networks: that predict together.
        of: whose choice among the settings it takes over, if not one of its own.
    """

    key: str
    title: str
    settings: tuple[Setting, ...]
    variance: str | None = None
    networks: int = 1
    of: str | None = None

    @property
    def gann(self) -> bool:
        """Whether it is one of ours."""
        return self.variance is not None

    @property
    def name(self) -> str:
        """Within a sentence."""
        return self.title if self.key == "boosting" else f"the {self.title}"


HEADS = {"regression": "variance", "classification": "classes"}
"""What networks put out; gradient boosting has means only."""

METHODS = (
    Method("plain", "plain network", _DECAYS),
    Method("dropout", "network with dropout", _DROPOUTS),
    Method("ensemble", "ensemble of five", _DECAYS, networks=5, of="plain"),
    Method("sparse", "sparse GaNN", _ALPHAS, "sparse"),
    Method("dense", "dense GaNN", _ALPHAS, "dense"),
    Method("boosting", "gradient boosting", _TREES),
)


@dataclass(frozen=True)
class Candidate:
    """A trained method under one setting.

    Args:
        draw: from rows of features and a calibration to outputs (S, N, out).
        scaled: from targets to the units of those outputs.
        rescaled: from a prediction in those units to the table's.
        priors: how many γ a calibration has; 0 without noise.
        head: as in `Calibration`.
        calibration: once it is calibrated.
    """

    draw: Callable[[Tensor, Calibration], Tensor]
    scaled: Callable[[Tensor], Tensor]
    rescaled: Callable[[Regression], Regression]
    priors: int = 0
    head: str = "mean"
    calibration: Calibration | None = None

    def calibrated(self, task: str, x: Tensor, y: Tensor) -> "Candidate":
        """The same with the γ and the output noise (or temperature) under which rows held back are likeliest."""
        raw = Calibration(task, gamma=0.0, head=self.head, draws=_DRAWS)
        tried = [replace(raw, gamma=(gamma,) * self.priors) for gamma in _GAMMAS] if self.priors else [raw]
        fitted = [fit_draws(each, self.draw(x, each), self.scaled(y)) for each in tried]
        return replace(self, calibration=min(fitted, key=lambda each: each.nll))

    def predict(self, x: Tensor) -> Regression | Classification:
        """What it predicts, in the table's units."""
        assert self.calibration is not None
        prediction = summarise(self.draw(x, self.calibration), self.calibration)
        return self.rescaled(prediction) if isinstance(prediction, Regression) else prediction

    def nll(self, x: Tensor, y: Tensor) -> float:
        """Of rows held back, in the scaled units: what candidates are chosen by."""
        return float(self.predict(x).nll(y))


def of_networks(fleet: Fleet, *, dropout: bool) -> Candidate:
    """A candidate of one network or several that share their split; with dropout, draws leave it on."""
    joined = Joined([network.cpu().double() for network in fleet]).eval()
    scaling = Scaling(*(part.cpu().double() for part in fleet.trainings[0].scaling))
    priors = len(fleet) * len(fleet.shape.hidden) if fleet.shape.variance else 0

    def draw(x: Tensor, calibration: Calibration) -> Tensor:
        rows = scaling.features(x)
        if not dropout:
            return noisy(joined, rows, calibration)
        return sample(joined, rows, calibration.draws, gamma=0.0, seed=calibration.seed, dropout=True).squeeze(2)

    if fleet.recipe.task == "classification":
        return Candidate(draw, _as_they_are, _as_they_are, priors)
    units = scaling.target_scale, scaling.target_mean
    return Candidate(draw, scaling.targets, lambda prediction: prediction.rescaled(*units), priors, fleet.recipe.head)


def of_boosting(
    task: str,
    setting: Setting,
    seed: int,
    train: tuple[Tensor, Tensor],
    stop: tuple[Tensor, Tensor],
    classes: int,
) -> Candidate:
    """Histogram gradient boosting with as many trees as suit the rows to stop by best."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make: Any = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    rate, leaves = setting["learning_rate"], int(setting["max_leaf_nodes"])
    model = make(
        learning_rate=rate, max_leaf_nodes=leaves, max_iter=_MOST_TREES, early_stopping=False, random_state=seed
    ).fit(train[0].numpy(), train[1].numpy().reshape(-1))
    losses = make_head("mean" if task == "regression" else "classes")

    def outputs(answer: np.ndarray) -> Tensor:
        if task == "regression":
            return torch.from_numpy(answer).reshape(1, -1, 1)
        known = np.full((len(answer), classes), _LEAST)
        known[:, model.classes_] = np.maximum(answer, _LEAST)
        return torch.from_numpy(known / known.sum(1, keepdims=True)).log().unsqueeze(0)

    def stages(x: Tensor) -> Any:
        return (model.staged_predict if task == "regression" else model.staged_predict_proba)(x.numpy())

    target = stop[1].unsqueeze(0)
    each = [float(losses.loss(outputs(answer), target)) for answer in stages(stop[0])]
    best = int(np.argmin(each))

    def draw(x: Tensor, calibration: Calibration) -> Tensor:
        return outputs(next(answer for number, answer in enumerate(stages(x)) if number == best))

    return Candidate(draw, _as_they_are, _as_they_are)


def _as_they_are(given: Any) -> Any:
    return given
