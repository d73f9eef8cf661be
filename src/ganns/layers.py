"""The paper's own networks: Gaussian layers and the multilayer perceptron made of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import torch.nn.functional as F
from torch import Tensor, nn

from ganns.families import Family
from ganns.priors import ActivityPrior
from ganns.tracing import State


class GaussianLayer(nn.Module):
    """A Linear and a ReLU whose activity has a prior.

    Args:
        in_features: width of the previous layer.
        out_features: units of this one.
        variance: "constant", "sparse" or "dense".
        family: see `ganns.ActivityPrior`.
        floor: v, the lower bound of the variance.
        chained: dense only: whether the previous layer has a prior too.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        variance: str = "sparse",
        family: str | Family = "gaussian",
        floor: float = 0.5,
        *,
        chained: bool = False,
    ):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.prior = ActivityPrior(
            out_features,
            variance,
            family,
            floor,
            in_features=in_features if variance == "dense" else None,
            chained=chained and variance == "dense",
        )

    if TYPE_CHECKING:

        @overload
        def __call__(self, x: Tensor, previous: State | None = None) -> Tensor: ...
        @overload
        def __call__(
            self, x: Tensor, previous: State | None = None, *, with_state: Literal[True]
        ) -> tuple[Tensor, State | None]: ...
        def __call__(self, *args, **kwargs) -> Any:
            """See `forward`."""

    def forward(self, x: Tensor, previous: State | None = None, *, with_state: bool = False):
        """The activity for input x: (..., in_features) to (..., out_features).

        Args:
            x: what the activities see, possibly after dropout.
            previous: state of the layer before, which a chained dense variance sees.
            with_state: return (activity, state); the state is None where nobody trains and nobody watches.
        """
        activity = F.relu(self.linear(x))
        state = self.prior.observe(activity, x, previous)
        if state is not None:
            activity = state.activity
        return (activity, state) if with_state else activity

    def plain(self) -> nn.Sequential:
        """The same layer without its prior, sharing the weights."""
        return nn.Sequential(self.linear, nn.ReLU())


class GaussianMLP(nn.Module):
    """The paper's network: Gaussian hidden layers and a linear head without a prior.

    Dropout, if any, acts on what the next layer's activities see, never on what its variances see.

    Args:
        in_features: features of a row.
        out_features: outputs of a row.
        hidden: units of each hidden layer; the paper's are 1024, 512 and 256.
        variance: "constant", "sparse" or "dense".
        dropout: probability of dropping an activity in training.
        family: see `ganns.ActivityPrior`.
        floor: v, the lower bound of the variance.

    >>> net = GaussianMLP(5, 1, hidden=(8, 4))
    >>> plain = sum(p.numel() for p in net.plain().parameters())
    >>> sum(p.numel() for p in net.parameters()) - plain  # three a hidden unit
    36
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: Sequence[int] = (1024, 512, 256),
        variance: str = "sparse",
        dropout: float = 0.0,
        family: str | Family = "gaussian",
        floor: float = 0.5,
    ):
        super().__init__()
        if not hidden or min(in_features, out_features, *hidden) < 1:
            raise ValueError(
                f"in_features={in_features}, out_features={out_features}, hidden={tuple(hidden)}: "
                "every layer needs at least one unit, and there must be a hidden one."
            )
        widths = [in_features, *hidden]
        self.in_features = in_features
        layers = nn.ModuleList(
            GaussianLayer(width, units, variance, family, floor, chained=depth > 0)
            for depth, (width, units) in enumerate(pairwise(widths))
        )
        self.layers = cast("Sequence[GaussianLayer]", layers)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs for rows x: (..., in_features) to (..., out_features)."""
        self.check_features(x)
        state = None
        for layer in self.layers:
            activity, state = layer(x, state, with_state=True)
            x = self.dropout(activity)
        return self.head(x)

    def check_features(self, x: Tensor) -> None:
        """Refuse rows of another width."""
        if x.shape[-1] != self.in_features:
            raise ValueError(
                f"x has {x.shape[-1]} features (shape {tuple(x.shape)}), but this network was built for "
                f"in_features={self.in_features}."
            )

    def plain(self) -> nn.Sequential:
        """The same network without priors: Linear, ReLU, Dropout, …, Linear.

        It shares the weights; `copy.deepcopy(net.plain())` is a network of its own.
        """
        modules: list[nn.Module] = []
        for layer in self.layers:
            modules += [*layer.plain(), *([nn.Dropout(self.dropout.p)] if self.dropout.p else [])]
        plain = nn.Sequential(*modules, self.head)
        return plain.train(self.training)
