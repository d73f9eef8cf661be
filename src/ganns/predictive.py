"""What a network predicts, and how sure it is."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ganns import metrics
from ganns.calling import Input, check_finite, row_count, take_rows
from ganns.heads import split_variance
from ganns.sampling import sample

_ROWS_AT_A_TIME = 4096
TASKS = ("regression", "classification")


@dataclass(frozen=True)
class Calibration:
    """How the noise of a network turns into predictions; `ganns.calibrate` fits it, and the defaults are the raw noise.

    Args:
        task: "regression" or "classification".
        gamma: γ, one number or one for each prior.
        head: regression: "mean", outputs are means; or "variance", outputs are means and then what softplus turns into
            variances (`Recipe.head`).
        output_variance: regression: variance of the noise that the network does not explain, one for each target.
        output_scale: variance head: multiplies the variances that the network predicts, one number for each target.
        temperature: classification: divides the logits.
        draws: how many draws a prediction takes.
        seed: names the draws.
        nll_before: mean negative log-likelihood of the validation rows at γ = 1 without output noise or temperature.
        nll: the same, calibrated.
    """

    task: str
    gamma: float | tuple[float, ...] = 1.0
    head: str = "mean"
    output_variance: tuple[float, ...] = (0.0,)
    output_scale: tuple[float, ...] = (1.0,)
    temperature: float = 1.0
    draws: int = 64
    seed: int = 0
    nll_before: float = math.nan
    nll: float = math.nan

    def __post_init__(self):
        if self.task not in TASKS:
            raise ValueError(f"task={self.task!r} is unknown; choose 'regression' or 'classification'.")
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature}: it divides the logits and must be above 0.")
        if self.head not in ("mean", "variance"):
            raise ValueError(f"head={self.head!r} is unknown; choose 'mean' or 'variance'.")
        for name in ("output_variance", "output_scale"):
            if not min(getattr(self, name)) >= 0:
                raise ValueError(f"{name}={getattr(self, name)}: give numbers of 0 or above.")


class Predictive(ABC):
    """A predictive distribution for each row; `Regression` or `Classification`."""

    @property
    @abstractmethod
    def entropy(self) -> Tensor:
        """Uncertainty in nats: of each output (regression) or each row (classification)."""

    @abstractmethod
    def nll(self, y: Tensor) -> Tensor:
        """Mean negative log-likelihood of targets y."""


@dataclass(frozen=True)
class Regression(Predictive):
    """A Gaussian for each output, shapes (N, out): its variance is the sum of two parts.

    Args:
        mean: mean over the draws.
        activity_variance: what noise in the activities explains, the variance over the draws.
        output_variance: what it does not explain: the same for all rows, or what a variance head predicts.
    """

    mean: Tensor
    activity_variance: Tensor
    output_variance: Tensor

    @property
    def variance(self) -> Tensor:
        """The whole variance of each output."""
        return self.activity_variance + self.output_variance

    @property
    def entropy(self) -> Tensor:
        """½ ln(2πe σ²) of each output."""
        return 0.5 * (2 * math.pi * math.e * self.variance).log()

    def interval(self, coverage: float = 0.9) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds that hold this share of targets, with as many expected below as above."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage}: give a share between 0 and 1, such as 0.9.")
        half = math.sqrt(2) * torch.erfinv(torch.tensor(coverage, dtype=torch.float64)).item() * self.variance.sqrt()
        return self.mean - half, self.mean + half

    def nll(self, y: Tensor) -> Tensor:
        """Mean Gaussian negative log-likelihood of y, Eq. 3 with its ½ ln 2π."""
        return metrics.gaussian_nll(self.mean, self.variance, as_targets(y, self.mean))

    def rescaled(self, scale: Tensor, shift: Tensor) -> "Regression":
        """The prediction of y · scale + shift, one number a target each: standardised targets in their own units."""
        return Regression(self.mean * scale + shift, self.activity_variance * scale**2, self.output_variance * scale**2)


@dataclass(frozen=True)
class Classification(Predictive):
    """Class probabilities for each row, shape (N, K): the mean over draws of the softmax of the logits.

    Args:
        probabilities: of each class.
        output_entropy: mean over the draws of each draw's entropy, shape (N,): what stays uncertain when the activities
            are known.
    """

    probabilities: Tensor
    output_entropy: Tensor

    @property
    def classes(self) -> Tensor:
        """The most probable class of each row, shape (N,)."""
        return self.probabilities.argmax(-1)

    @property
    def entropy(self) -> Tensor:
        """Uncertainty of each row, Eq. 15."""
        return metrics.entropy(self.probabilities)

    @property
    def activity_entropy(self) -> Tensor:
        """What noise in the activities explains: how much the draws disagree (their mutual information)."""
        return (self.entropy - self.output_entropy).clamp(min=0)

    def nll(self, y: Tensor) -> Tensor:
        """Mean negative log-likelihood of the true classes, Eq. 14."""
        return metrics.nll(self.probabilities, y)


def predict(model: nn.Module, x: Input, calibration: Calibration) -> Regression | Classification:
    """What the model predicts for each row, with its uncertainty.

    Args:
        model: a network with priors; outputs of shape (N, out), logits for classification.
        x: rows, as the model takes them.
        calibration: from `calibrate`; `Calibration("regression")` for the raw noise.
    """
    check_finite("x", x)
    parts: list[Regression | Classification] = []
    for start in range(0, row_count(x), _ROWS_AT_A_TIME):
        draws = sample(
            model, take_rows(x, start, _ROWS_AT_A_TIME), calibration.draws, calibration.gamma, calibration.seed
        )
        parts.append(summarise(draws, calibration))
    fields = parts[0].__dataclass_fields__
    return replace(parts[0], **{name: torch.cat([getattr(part, name) for part in parts]) for name in fields})


def summarise(draws: Tensor, calibration: Calibration) -> Regression | Classification:
    """The predictive distribution behind draws of shape (S, N, out)."""
    if draws.ndim != 3:
        raise ValueError(f"the model's outputs have shape {tuple(draws.shape[1:])}; predictions need (rows, outputs).")
    if calibration.task == "regression":
        means, predicted = split_variance(draws) if calibration.head == "variance" else (draws, torch.zeros_like(draws))
        rest = draws.new_tensor(calibration.output_variance) + draws.new_tensor(calibration.output_scale) * predicted
        return Regression(means.mean(0), spread(means), rest.mean(0))
    probabilities = (draws / calibration.temperature).softmax(-1)
    each_entropy = metrics.entropy(probabilities.flatten(0, 1)).unflatten(0, draws.shape[:2])
    return Classification(probabilities.mean(0), each_entropy.mean(0))


def spread(draws: Tensor) -> Tensor:
    """Variance over the draws (S, ...); zero for a single one."""
    return draws.var(0) if len(draws) > 1 else torch.zeros_like(draws[0])


def as_targets(y: Tensor, prediction: Tensor) -> Tensor:
    """Targets in the shape of the predictions: (N,) stands for (N, 1), and nothing else is stretched."""
    if y.ndim == 1 and prediction.shape == (len(y), 1):
        y = y.unsqueeze(1)
    if y.shape != prediction.shape:
        raise ValueError(f"y has shape {tuple(y.shape)}, but the predictions have {tuple(prediction.shape)}.")
    return y.to(prediction.dtype)
