"""Mean and variance of a network's output under its priors' noise, followed layer by layer in one pass."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ganns.calling import check_finite, evaluating
from ganns.layers import GaussianLayer, GaussianMLP
from ganns.priors import ActivityPrior
from ganns.sampling import layer_gammas
from ganns.tracing import State

_SAME = (nn.Identity, nn.Dropout, nn.Flatten, nn.Unflatten)


def moments(model: nn.Module, x: Tensor, gamma: float | Sequence[float] = 1.0) -> tuple[Tensor, Tensor]:
    """Mean and variance of the outputs under noise of strength γ, without drawing: two tensors of the output's shape.

    The units of a layer are taken as independent and Gaussian, and each variance prior as what it is at the mean. That
    is exact where noise enters only after the last hidden layer (γ = 0 elsewhere, or one hidden layer) and an
    approximation otherwise: a ReLU passes on the mean and variance of a rectified Gaussian.

    Follows `GaussianMLP`, `GaussianLayer` and `nn.Sequential` of Linear, ReLU, BatchNorm1d, Dropout, Flatten and
    Identity, with inserted priors; use `ganns.sample` for anything else.

    Args:
        model: a network with priors.
        x: rows.
        gamma: one number, or one for each prior in forward order.
    """
    priors = sum(isinstance(module, ActivityPrior) for module in model.modules())
    if not priors:
        raise ValueError("the model has no priors; build a GaussianMLP or use ganns.insert first.")
    check_finite("x", x)
    follower = _Follower(layer_gammas(gamma, priors))
    with evaluating(model):
        mean, variance = follower.through(model, x, None)
    return mean, torch.zeros_like(mean) if variance is None else variance


class _Follower:
    """Carries (mean, variance) through modules; a variance of None stands for zero."""

    def __init__(self, gammas: list[float]):
        self.gammas = iter(gammas)
        self.fed: Tensor | None = None  # what the latest Linear was fed, for dense priors
        self.previous: State | None = None

    def through(self, module: nn.Module, mean: Tensor, variance: Tensor | None) -> tuple[Tensor, Tensor | None]:
        match module:
            case nn.Sequential():
                for child in module:
                    mean, variance = self.through(child, mean, variance)
            case GaussianMLP():
                module.check_features(mean)
                for layer in module.layers:
                    mean, variance = self.through(layer, mean, variance)
                mean, variance = self.through(module.head, mean, variance)
            case GaussianLayer():
                mean, variance = self.through(module.linear, mean, variance)
                mean, variance = self.through_prior(module.prior, *_rectified(mean, variance))
            case nn.Linear():
                self.fed = mean
                mean = module(mean)
                variance = None if variance is None else F.linear(variance, module.weight.square())
            case nn.ReLU():
                mean, variance = _rectified(mean, variance)
            case nn.BatchNorm1d() if module.running_var is not None and mean.ndim == 2:
                slope = (1.0 if module.weight is None else module.weight) * (module.running_var + module.eps).rsqrt()
                mean, variance = module(mean), None if variance is None else variance * slope**2
            case _ if isinstance(module, _SAME):
                mean, variance = module(mean), None if variance is None else module(variance)
            case _:
                raise TypeError(
                    f"cannot follow {type(module).__name__}; moments knows GaussianMLP, GaussianLayer and Sequentials "
                    "of Linear, ReLU, BatchNorm1d, Dropout, Flatten and Identity. Use ganns.sample for this network."
                )
        prior = getattr(module, "activity_prior", None)
        return (mean, variance) if prior is None else self.through_prior(prior, mean, variance)

    def through_prior(
        self, prior: ActivityPrior, mean: Tensor, variance: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        gamma = next(self.gammas)
        if gamma or prior.variance == "dense":
            self.previous = prior.state(mean, self.fed, self.previous)
        if gamma and self.previous:
            noise = (gamma**2 * self.previous.variance).expand_as(mean)
            variance = noise if variance is None else variance + noise
        return mean, variance


def _rectified(mean: Tensor, variance: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Mean and variance of max(0, a) for a ~ N(mean, variance)."""
    if variance is None:
        return F.relu(mean), None
    sd = variance.sqrt().clamp(min=torch.finfo(mean.dtype).tiny)
    z = mean / sd
    above = torch.special.ndtr(z)
    density = (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
    first = mean * above + sd * density
    second = (mean.square() + variance) * above + mean * sd * density
    return first, (second - first.square()).clamp(min=0)
