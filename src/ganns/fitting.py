"""Priors for a network that is already trained."""

import math
from collections.abc import Iterable, Sized
from typing import Any

import torch
from torch import Tensor, nn

from ganns.calling import batches, call, evaluating
from ganns.objective import inner_loss
from ganns.priors import ActivityPrior
from ganns.tracing import Recording, State, opened


def fit_priors(
    model: nn.Module, data: Tensor | Iterable[Any], *, updates: int = 300, learning_rate: float = 0.1
) -> nn.Module:
    """Fit the priors of a trained network in one pass over data and return it; its own weights are not touched.

    Means and variances start at the moments of the first batch. Then Adam minimises Eq. 7 in the priors alone, while
    its step size falls linearly to zero (it stays where the number of batches is unknown).

    Args:
        model: a network with priors.
        data: a loader of x, or of tuples that begin with x; or one tensor of rows.
        updates: how many steps to spread over the pass; at least one a batch.
        learning_rate: Adam's first step size.
    """
    priors = [module for module in model.modules() if isinstance(module, ActivityPrior)]
    if not priors:
        raise ValueError("the model has no priors; build a GaussianMLP or use ganns.insert first.")
    learned = [parameter for prior in priors for parameter in prior.parameters()]
    frozen = {parameter: parameter.requires_grad for parameter in model.parameters()}
    count = len(data) if isinstance(data, Sized) else None
    if isinstance(data, Tensor):
        data = data.split(max(1, min(1024, len(data) // 8)))
        count = len(data)
    repeats = math.ceil(updates / count) if count else 10
    optimizer = torch.optim.Adam(learned, learning_rate)
    fade = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, repeats * count) if count else None
    settled = False
    model.requires_grad_(False)
    try:
        with evaluating(model):
            for x in batches(model, data):
                if not settled:
                    with opened(_Settling()):
                        call(model, x)
                    settled = True
                for parameter in learned:
                    parameter.requires_grad_(True)
                for _ in range(repeats):
                    optimizer.zero_grad()
                    with torch.enable_grad(), opened(Recording()) as recording:
                        call(model, x)
                        inner_loss(recording.states).backward()
                    optimizer.step()
                    if fade:
                        fade.step()
    finally:
        for parameter, flag in frozen.items():
            parameter.requires_grad_(flag)
    if not settled:
        raise ValueError("data is empty: fitting priors needs at least one batch.")
    optimizer.zero_grad()
    return model


class _Settling(Recording):
    """Sets each prior to the moments of the activity it sees, the same variance for every input."""

    def observe(self, prior: nn.Module, state: State) -> State:
        """Set mean and bias, and take out what depends on the input."""
        assert isinstance(prior, ActivityPrior)
        units_last = state.activity.movedim(prior.dim, -1).reshape(-1, prior.units).double()
        above_floor = (units_last.var(0, correction=0) - prior.floor).clamp(min=1e-3)
        prior.mean.copy_(units_last.mean(0))
        prior.bias.copy_(above_floor + (-(-above_floor).expm1()).log())
        for weight in (prior.weight, prior.sigma_weight):
            if weight is not None:
                weight.zero_()
        return super().observe(prior, state)
