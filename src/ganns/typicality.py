"""How unusual a row is to a network: from how unexpected the activity is that it causes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ganns.calling import Input, batches, call, check_finite, evaluating, row_count
from ganns.tracing import trace


def surprise(model: nn.Module, x: Input, *, per_layer: bool = False) -> Tensor:
    """The inner loss of each row, shape (N,): Eq. 7 without the mean over rows, in evaluation mode.

    Args:
        model: a network with priors.
        x: rows, as the model takes them.
        per_layer: give one number for each prior, shape (N, L), which sum up to the row's.
    """
    check_finite("x", x)
    rows = row_count(x)
    with evaluating(model):
        states = trace(call, model, x).states
    if not states:
        raise ValueError("the model ran no prior; build a GaussianMLP or use ganns.insert first.")
    for number, state in enumerate(states):
        if state.activity.shape[0] != rows:
            raise ValueError(
                f"the activity of prior {number} has shape {tuple(state.activity.shape)}, but x has {rows} "
                "rows; surprise needs rows first in every activity (batch_first=True in PyTorch's sequence modules)."
            )
    layers = torch.stack([state.energy().flatten(1).sum(1) / state.positions for state in states], dim=1)
    return layers if per_layer else layers.sum(1)


@dataclass(frozen=True)
class Scores:
    """How unusual rows are, each shape (N,): raw, and as percentile of training rows (0 to 100).

    A percentile of 99.5 says that 99.5 % of the training rows were less unusual.
    """

    surprise: Tensor
    typicality: Tensor
    surprise_percentile: Tensor
    typicality_percentile: Tensor


_ROUNDING = 1e-9  # relative
_TENSORS = ("mean", "scale", "precision", "training_surprise", "training_typicality")


class Typicality:
    """How far a row's surprise is from what training rows cause, in either direction.

    The score is the Mahalanobis distance of the row's surprises, one a layer, from their mean over training rows:
    activity that is too quiet is unusual too. Fitting takes one pass and keeps two numbers a row.

    >>> import ganns
    >>> net, rows = ganns.GaussianMLP(3, 1, hidden=(8, 4)), torch.randn(100, 3)
    >>> typical = Typicality.fit(net, rows)
    >>> typical(torch.full((1, 3), 50.0)) > typical(rows).max()
    tensor([True])
    """

    def __init__(self, model: nn.Module, layers: Tensor):
        if len(layers) < 2:
            raise ValueError(f"data holds {len(layers)} rows; typicality needs at least 2, better hundreds.")
        self.model = model
        layers = layers.double()
        self.mean = layers.mean(0)
        self.scale = layers.std(0).clamp(min=torch.finfo(layers.dtype).eps)
        correlation = ((layers - self.mean) / self.scale).T.cov().reshape(len(self.mean), -1)
        # Layers that move together leave directions in which training rows hardly differ: do not divide by nothing.
        self.precision = torch.linalg.inv(correlation + 1e-6 * torch.eye(len(correlation)).to(correlation))
        self.training_surprise = layers.sum(1).sort().values
        self.training_typicality = self._distance(layers).sort().values

    @classmethod
    def fit(cls, model: nn.Module, data: Tensor | Iterable[Any]) -> "Typicality":
        """Learn what is typical from training rows: a loader of x, or of tuples that begin with x; or one tensor."""
        layers = [surprise(model, x, per_layer=True) for x in batches(model, data)]
        if not layers:
            raise ValueError("data is empty; typicality needs at least 2 rows, better hundreds.")
        return cls(model, torch.cat(layers))

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the model, by name; `from_tensors` puts it together again."""
        return {name: getattr(self, name) for name in _TENSORS}

    @classmethod
    def from_tensors(cls, model: nn.Module, tensors: dict[str, Tensor]) -> "Typicality":
        """The same typicality with its model, from what `tensors` gave."""
        typicality = cls.__new__(cls)
        typicality.model = model
        for name in _TENSORS:
            setattr(typicality, name, tensors[name])
        return typicality

    def __call__(self, x: Input) -> Tensor:
        """The typicality score of each row, shape (N,): 0 is the most usual, and it grows without bound."""
        return self._distance(surprise(self.model, x, per_layer=True))

    def scores(self, x: Input) -> Scores:
        """Surprise and typicality of each row, raw and as percentiles of the training rows, from one forward pass."""
        layers = surprise(self.model, x, per_layer=True)
        raw, distance = layers.sum(1), self._distance(layers)
        return Scores(
            raw,
            distance,
            _percentile(raw.double(), self.training_surprise),
            _percentile(distance, self.training_typicality),
        )

    def _distance(self, layers: Tensor) -> Tensor:
        z = (layers.double() - self.mean) / self.scale
        return torch.einsum("ni,ij,nj->n", z, self.precision, z).clamp(min=0).sqrt()


def _percentile(values: Tensor, reference: Tensor) -> Tensor:
    """Share of the sorted reference below each value, ties half, in percent.

    What differs by rounding alone is a tie, so that percentiles do not depend on how many rows are scored at a time.
    """
    rounding = _ROUNDING * values.abs()
    below = torch.searchsorted(reference, values - rounding, right=False)
    up_to = torch.searchsorted(reference, values + rounding, right=True)
    return 50.0 * (below + up_to) / len(reference)
