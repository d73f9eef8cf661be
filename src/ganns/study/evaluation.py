"""What trained networks are worth on rows that they have not seen: raw and calibrated predictions, and their scores.

Two passes over the test rows at most, and a few over some validation rows: everything stays on the networks' device.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import torch
from torch import Tensor, nn

import ganns
from ganns import metrics
from ganns.calibration import fit_draws
from ganns.feeding import Scaling
from ganns.heads import split_variance
from ganns.predictive import Calibration, Classification, Regression, summarise

DRAWS = 32
CALIBRATION_ROWS = 1024  # a handful of numbers needs no more
GAMMAS = (0.0, 0.03, 0.06, 0.1, 0.17, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)  # tried for all layers alike
COVERAGE = 0.9
SCORES = {
    "regression": ("mae", "rmse", "nll", "crps", "coverage", "width"),
    "classification": ("accuracy", "nll", "auroc", "ece", "brier"),
}
_ROWS_AT_A_TIME = 2048


class Predictor(Protocol):
    """Whatever gives outputs for rows, which it takes as they are stored."""

    @property
    def task(self) -> str:
        """Either "regression" or "classification"."""
        ...

    @property
    def head(self) -> str:
        """What the outputs of a regression are: "mean", or "variance" if a variance follows each mean."""
        ...

    @property
    def noisy(self) -> bool:
        """Whether γ changes the draws."""
        ...

    @property
    def spread(self) -> bool:
        """Whether there is an uncertainty before any calibration."""
        ...

    def point(self, x: Tensor) -> Tensor:
        """The best guess without any noise: means (N, targets) or class probabilities (N, K)."""
        ...

    def draws(self, x: Tensor, gamma: float, count: int = DRAWS) -> Tensor:
        """Outputs (S, N, out), of scaled targets; S is about `count`, or 1 where all draws would be the same."""
        ...

    def scaled(self, y: Tensor) -> Tensor:
        """Targets (N, targets) as the outputs have them; labels stay as they are."""
        ...

    def rescaled(self, prediction: Regression) -> Regression:
        """A prediction of scaled targets in the targets' own units."""
        ...


@dataclass(frozen=True)
class Networks:
    """Networks whose predictions are joined: one, or an ensemble that shares its scaling.

    Args:
        networks: in evaluation mode.
        scaling: of features and targets.
        task: "regression" or "classification".
        head: of a regression: "mean" or "variance".
        priors: whether the networks have them.
        dropout: whether they drop activities, and do so in draws.
    """

    networks: Sequence[nn.Module]
    scaling: Scaling
    task: str
    head: str = "mean"
    priors: bool = True
    dropout: bool = False

    @property
    def noisy(self) -> bool:
        """Whether γ changes the draws."""
        return self.priors

    @property
    def spread(self) -> bool:
        """Whether draws differ, or a variance is predicted. Class probabilities are an uncertainty anyway."""
        several = self.priors or self.dropout or len(self.networks) > 1
        return several or self.head == "variance" or self.task == "classification"

    def point(self, x: Tensor) -> Tensor:
        """The networks' mean, without noise and dropout."""
        x = self.scaling.features(x)
        with torch.no_grad():
            outputs = torch.stack([net(x) for net in self.networks])
        if self.task == "classification":
            return outputs.softmax(-1).mean(0)
        means = split_variance(outputs)[0] if self.head == "variance" else outputs
        return means.mean(0) * self.scaling.target_scale + self.scaling.target_mean

    def draws(self, x: Tensor, gamma: float, count: int = DRAWS) -> Tensor:
        """Outputs under noise and dropout, the same number from each network; of a plain network there is one."""
        x = self.scaling.features(x)
        if not (self.priors or self.dropout):
            with torch.no_grad():
                return torch.stack([net(x) for net in self.networks])
        each = math.ceil(count / len(self.networks))
        strength = gamma if self.priors else 0.0
        chunk = len(x) if x.is_cuda else None
        return torch.cat(
            [
                ganns.sample(net, x, each, strength, seed, chunk=chunk, dropout=self.dropout)
                for seed, net in enumerate(self.networks)
            ]
        )

    def scaled(self, y: Tensor) -> Tensor:
        """Targets as the networks predict them."""
        return y if self.task == "classification" else self.scaling.targets(y)

    def rescaled(self, prediction: Regression) -> Regression:
        """In the targets' own units."""
        return prediction.rescaled(self.scaling.target_scale, self.scaling.target_mean)


@dataclass(frozen=True)
class Evaluation:
    """Predictions for test rows.

    Args:
        point: best guesses without noise, (N, targets), or class probabilities (N, K).
        raw: by the networks' own noise, γ = 1, and nothing fitted afterwards; None: they have no uncertainty.
        calibrated: with γ, and output noise or temperature, fitted on validation rows.
        calibration: what was fitted.
        y: the truth, (N, targets) or (N,).
    """

    point: Tensor
    raw: Regression | Classification | None
    calibrated: Regression | Classification
    calibration: Calibration
    y: Tensor

    def scores(self) -> tuple[dict[str, float], dict[str, float]]:
        """Raw scores, where errors are those of the best guess; and calibrated ones."""
        best = self.calibrated.mean if isinstance(self.calibrated, Regression) else self.calibrated.probabilities
        return score(self.point, self.raw, self.y), score(best, self.calibrated, self.y)


def evaluate(predictor: Predictor, validation: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> Evaluation:
    """Calibrate with validation rows and targets, and predict test rows.

    Args:
        predictor: trained.
        validation: features and targets (N, targets) or labels (N,), as they are stored.
        test: the same.
    """
    x, y = test
    calibration = calibrate(predictor, *validation)
    plain = Calibration(predictor.task, head=predictor.head)
    points, raws, calibrated = [], [], []
    for rows in x.split(_ROWS_AT_A_TIME):
        points.append(predictor.point(rows))
        draws = predictor.draws(rows, 1.0)
        raws.append(summarise(draws, plain))
        if predictor.noisy and calibration.gamma != 1.0:
            draws = predictor.draws(rows, float(calibration.gamma))  # type: ignore[arg-type]
        calibrated.append(summarise(draws, calibration))
    raw, best = _joined(raws), _joined(calibrated)
    if isinstance(raw, Regression) and isinstance(best, Regression):
        raw, best = predictor.rescaled(raw), predictor.rescaled(best)
    return Evaluation(torch.cat(points), raw if predictor.spread else None, best, calibration, y)


def calibrate(predictor: Predictor, x: Tensor, y: Tensor) -> Calibration:
    """One γ for all layers, and the output noise or temperature that goes with it: the likeliest of a few.

    Simpler than `ganns.calibrate`, which gives each layer a γ of its own: here are hundreds of networks to calibrate,
    and dropout may be on.
    """
    x, y = x[:CALIBRATION_ROWS], predictor.scaled(y[:CALIBRATION_ROWS])
    start = Calibration(predictor.task, head=predictor.head, draws=DRAWS)

    def fitted(gamma: float, count: int) -> Calibration:
        draws = predictor.draws(x, gamma, count)
        found = replace(start, gamma=gamma)
        return fit_draws(found, draws, y) if draws.isfinite().all() else replace(found, nll=math.inf)

    if not predictor.noisy:
        return fitted(1.0, DRAWS)
    best = min((fitted(gamma, DRAWS // 2) for gamma in GAMMAS), key=lambda found: found.nll)
    return fitted(float(best.gamma), DRAWS)  # type: ignore[arg-type]


def score(point: Tensor, prediction: Regression | Classification | None, y: Tensor) -> dict[str, float]:
    """The scores of `SCORES` that a prediction has; NaN throughout where it is not finite.

    Args:
        point: means or class probabilities, whose errors count.
        prediction: whose uncertainty counts; None: there is none.
        y: the truth.
    """
    task = "classification" if isinstance(prediction, Classification) else "regression"
    if not (point.isfinite().all() and (prediction is None or _finite(prediction))):
        return dict.fromkeys(SCORES[task], math.nan)
    if isinstance(prediction, Classification):
        return _classification(point, prediction, y)
    found = {"mae": metrics.mae(point, y), "rmse": metrics.rmse(point, y)}
    if prediction is not None:
        found |= _regression(prediction, y)
    return {name: float(value) for name, value in found.items()}


def _regression(prediction: Regression, y: Tensor) -> dict[str, Tensor]:
    """A row without any variance counts as one with as little as float32 can tell from none."""
    least = torch.finfo(torch.float32).tiny
    prediction = replace(prediction, activity_variance=prediction.activity_variance.double().clamp(min=least))
    lower, upper = prediction.interval(COVERAGE)
    return {
        "nll": prediction.nll(y),
        "crps": metrics.crps(prediction.mean, prediction.variance, y),
        "coverage": metrics.interval_coverage(lower, upper, y),
        "width": metrics.interval_width(lower, upper),
    }


def _classification(point: Tensor, prediction: Classification, y: Tensor) -> dict[str, float]:
    p = prediction.probabilities
    found = {"accuracy": metrics.accuracy(point, y), "nll": prediction.nll(y)}
    if 0 < int((prediction.classes != y).sum()) < len(y):
        found["auroc"] = metrics.error_auroc(p, y)
    found |= {"ece": metrics.ece(p, y), "brier": metrics.brier(p, y)}
    return {name: float(value) for name, value in found.items()}


def _finite(prediction: Regression | Classification) -> bool:
    return all(bool(getattr(prediction, field.name).isfinite().all()) for field in fields(prediction))


def _joined(parts: Sequence[Regression | Classification]) -> Regression | Classification:
    names = [field.name for field in fields(parts[0])]
    return replace(parts[0], **{name: torch.cat([getattr(part, name) for part in parts]) for name in names})
