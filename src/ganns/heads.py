"""What the outputs of a network mean, and the base loss L_B that follows, for many networks at once.

Outputs are (M, B, outputs) for M members and B rows, targets (M, B, targets) or class labels (M, B). Gradients are in
closed form, as the fleet needs them; tests hold them against autograd.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_LEAST_VARIANCE = 1e-6


class Head(ABC):
    """A base loss, its gradient, and the metric that validation goes by."""

    higher_is_better = False

    @abstractmethod
    def outputs(self, targets: int) -> int:
        """How many numbers a network puts out for so many targets (or classes)."""

    @abstractmethod
    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The base loss of each network, (M,): a mean over rows."""

    @abstractmethod
    def delta(self, output: Tensor, y: Tensor) -> Tensor:
        """Its gradient with respect to the output, (M, B, outputs)."""

    @abstractmethod
    def metrics(self, output: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """The validation metric of each row, (M, B); `scale` (M, 1, targets) turns errors into the targets' units."""


@dataclass(frozen=True)
class Mean(Head):
    """One output for each target, trained by its squared error."""

    def outputs(self, targets: int) -> int:
        """One for each."""
        return targets

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Squared error, averaged over targets as well."""
        error = (output - y).flatten(1)
        return (error * error).mean(1)

    def delta(self, output: Tensor, y: Tensor) -> Tensor:
        """2 (o − y) / n."""
        return (output - y).mul_(2 / (y.shape[-2] * y.shape[-1]))

    def metrics(self, output: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """Absolute error."""
        return ((output - y) * scale).abs().mean(-1)


def split_variance(output: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each target from the outputs (..., 2 targets) of a variance head."""
    mean, raw = output.chunk(2, dim=-1)
    return mean, F.softplus(raw, threshold=40.0) + _LEAST_VARIANCE


@dataclass(frozen=True)
class Variance(Head):
    """A mean and a variance for each target, trained by Eq. 3; with β, rows weigh σ^2β (β-NLL)."""

    beta: float = 0.0

    def outputs(self, targets: int) -> int:
        """Means first, then what softplus turns into variances."""
        return 2 * targets

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """½ ((y − m)²/σ² + ln σ²), averaged over targets as well."""
        mean, variance = split_variance(output)
        return 0.5 * ((y - mean).square() / variance + variance.log()).mul(variance**self.beta).mean((1, 2))

    def delta(self, output: Tensor, y: Tensor) -> Tensor:
        """By the mean (m − y)/σ², by the raw variance ½ (1/σ² − (m − y)²/σ⁴) ζ', each times σ^2β."""
        mean, variance = split_variance(output)
        by_mean = (mean - y) / variance
        by_raw = 0.5 * (1 / variance - by_mean.square()) * output.chunk(2, dim=-1)[1].sigmoid()
        weight = variance**self.beta / (y.shape[-2] * y.shape[-1])
        return torch.cat([by_mean * weight, by_raw * weight], dim=-1)

    def metrics(self, output: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """Absolute error of the mean."""
        return ((output.chunk(2, dim=-1)[0] - y) * scale).abs().mean(-1)


@dataclass(frozen=True)
class Classes(Head):
    """A logit for each class, trained by cross-entropy."""

    higher_is_better = True

    def outputs(self, targets: int) -> int:
        """One for each class."""
        return targets

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """−ln p of the true class."""
        return (output.logsumexp(-1) - output.gather(-1, y.unsqueeze(-1)).squeeze(-1)).mean(1)

    def delta(self, output: Tensor, y: Tensor) -> Tensor:
        """Gradient p − 1 for the true class, p for the others."""
        classes = torch.arange(output.shape[-1], device=output.device)
        return (output.softmax(-1) - (y.unsqueeze(-1) == classes).to(output.dtype)) / y.shape[-1]

    def metrics(self, output: Tensor, y: Tensor, scale: Tensor) -> Tensor:
        """1 where the most probable class is the true one; NaN where the output is no number."""
        right = (output.argmax(-1) == y).to(output.dtype)
        return torch.where(output.isfinite().all(-1), right, torch.nan)


def make_head(name: str, beta: float = 0.0) -> Head:
    """The head that a recipe names."""
    return {"mean": Mean(), "variance": Variance(beta), "classes": Classes()}[name]
