"""Activity priors: a mean and a variance for each unit's activity, learned beside the task."""

import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from ganns import fused, tracing
from ganns.families import Family, Gaussian, as_family, choose
from ganns.tracing import State
from ganns.variance import constant_variance, dense_variance, sparse_variance


class ActivityPrior(nn.Module):
    """A prior over the activity of each unit: the identity in value, and something to be surprised by.

    Call it on an activity and it returns that activity. While `ganns.trace` watches, its state joins the trace; while
    `ganns.sample` disturbs, it adds noise of the expected variance.

    Parameters, one number a unit unless said otherwise: `mean` (μ) and `bias` (b) always; `weight` is w in the sparse
    model and W (units × in_features) in the dense one; `sigma_weight` is K (units × in_features), present only where
    a dense layer follows a layer with a prior. All start at zero except W and K, which start as in `nn.Linear`.

    Args:
        units: how many units the feature axis has.
        variance: "constant", "sparse" (Eq. 11) or "dense" (Eq. 12).
        family: "gaussian", "laplace", "student", or a `ganns.Family` such as `StudentT(df=6)`.
        floor: v, the lower bound of the variance; above 0.
        dim: the feature axis: -1 for vectors and sequences, 1 for the channels of pictures.
        in_features: dense only: the width of the previous layer.
        chained: dense only: whether that layer has a prior too, so that its σ is seen through K.

    >>> prior = ActivityPrior(4)
    >>> [name for name, _ in prior.named_parameters()]
    ['mean', 'bias', 'weight']
    """

    weight: nn.Parameter | None
    sigma_weight: nn.Parameter | None

    def __init__(
        self,
        units: int,
        variance: str = "sparse",
        family: str | Family = "gaussian",
        floor: float = 0.5,
        dim: int = -1,
        *,
        in_features: int | None = None,
        chained: bool = False,
    ):
        super().__init__()
        weights = choose("variance", variance, WEIGHT_SHAPES)(units, in_features)
        if units < 1:
            raise ValueError(f"units={units}: a prior needs at least one unit.")
        if not (floor > 0 and math.isfinite(floor)):
            raise ValueError(f"floor={floor}: the lower bound of the variance must be above 0; the paper uses 0.5.")
        if (in_features is None) == (variance == "dense"):
            raise ValueError(
                f"in_features={in_features} with variance={variance!r}: the dense variance, and only it, is computed "
                "from the previous layer. Give in_features to a dense prior and to no other."
            )
        if variance == "dense" and dim != -1:
            raise ValueError(f"dim={dim} with variance='dense': a Linear feeds a dense prior, so its units are last.")
        self.units, self.variance, self.floor, self.dim = units, variance, floor, dim
        self.family = as_family(family)
        self.chained = chained
        self.mean = nn.Parameter(torch.empty(units))
        self.bias = nn.Parameter(torch.empty(units))
        self.weight = nn.Parameter(torch.empty(weights)) if weights else None
        self.sigma_weight = nn.Parameter(torch.empty(weights)) if chained else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew: zeros, and W and K as `nn.Linear` starts its weight."""
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.kaiming_uniform_(parameter, a=math.sqrt(5))
            else:
                nn.init.zeros_(parameter)

    def extra_repr(self) -> str:
        """The arguments, as `print(net)` shows them."""
        chained = ", chained=True" if self.chained else ""
        return f"{self.units}, {self.variance!r}, {self.family}, floor={self.floor}, dim={self.dim}{chained}"

    def state(self, activity: Tensor, inputs: Tensor | None = None, previous: State | None = None) -> State:
        """The state of a layer with this activity.

        A dense prior is also told `inputs`, the previous layer's activity, and if chained its whole state, `previous`.
        """
        after = self._axes_after_units(activity)
        mean = _spread(self.mean, after)
        if self.variance == "sparse" and isinstance(self.family, Gaussian) and fused.applies(activity, self.mean):
            location, weight, bias = (p.reshape(mean.shape) for p in (self.mean, cast(Tensor, self.weight), self.bias))
            variance, energy_sum = fused.sparse_gaussian(activity, location, weight, bias, self.floor)
            return State(mean, variance, activity, self.family, energy_sum)
        bias = _spread(self.bias, after)
        if self.weight is None:
            variance = constant_variance(bias, self.floor)
        elif self.variance == "sparse":
            variance = sparse_variance(activity, _spread(self.weight, after), bias, self.floor)
        else:
            sigma = None
            if self.chained:
                if previous is None:
                    raise ValueError("previous=None: a chained dense prior needs the state of the layer before it.")
                inputs, sigma = previous.activity, previous.variance.sqrt().expand_as(previous.activity)
            if inputs is None:
                raise ValueError(
                    "inputs=None: a dense prior needs what its layer was fed; use GaussianLayer or insert."
                )
            variance = dense_variance(inputs, self.weight, bias, self.floor, sigma, self.sigma_weight)
            if not torch.compiler.is_compiling():  # a compiled graph has one backward, which waits for everything
                activity, variance = _Together.apply(activity, variance)
        return State(mean, variance, activity, self.family)

    def observe(self, activity: Tensor, inputs: Tensor | None = None, previous: State | None = None) -> State | None:
        """Show the state to the open pass and return what it answers; None where nobody trains and nobody watches.

        A training forward computes its state even when nobody watches: activation checkpointing repeats it outside the
        pass and must find the same computation.
        """
        current = tracing.current()
        if current is None and not (self.training and torch.is_grad_enabled()):
            return None
        state = self.state(activity, inputs, previous)
        return state if current is None else current.observe(self, state)

    def forward(self, activity: Tensor, inputs: Tensor | None = None) -> Tensor:
        """The same activity; with noise if `ganns.sample` asks for it."""
        state = self.observe(activity, inputs)
        return activity if state is None else state.activity

    def _axes_after_units(self, activity: Tensor) -> int:
        axis = self.dim if self.dim >= 0 else activity.ndim + self.dim
        if not 0 < axis < activity.ndim or activity.shape[axis] != self.units:
            raise ValueError(
                f"activity of shape {tuple(activity.shape)} does not have rows first and {self.units} units along "
                f"dim={self.dim}; dim names the feature axis: -1 for vectors and sequences, 1 for channels."
            )
        return activity.ndim - 1 - axis


WEIGHT_SHAPES: dict[str, Callable[[int, int | None], tuple]] = {
    "constant": lambda units, in_features: (),
    "sparse": lambda units, in_features: (units,),
    "dense": lambda units, in_features: (units, in_features or 1),
}


def _spread(parameter: Tensor, after: int) -> Tensor:
    """One number a unit, shaped to broadcast over `after` axes behind the units, in float32 at least.

    A copy, because the state outlives the layer's forward, after which FSDP takes the parameter's memory away.
    """
    copy = parameter.to(torch.promote_types(parameter.dtype, torch.float32), copy=True)
    return copy.reshape(-1, *[1] * after) if after else copy


class _Together(torch.autograd.Function):
    """The identity on (activity, variance) whose backward waits for the gradients of both.

    The backward of a dense variance needs W and K, which FSDP gathers again when the gradient of the layer's output
    arrives: not before.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(activity: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return activity.view_as(activity), variance.view_as(variance)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None: ...

    @staticmethod
    def backward(ctx, activity: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return activity, variance
