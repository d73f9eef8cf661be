"""Networks side by side as one predictor for rows of a table: their scaling, calibration and typicality with them."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from ganns.feeding import Scaling
from ganns.heads import split_variance
from ganns.layers import GaussianMLP
from ganns.predictive import Calibration, Classification, Regression, summarise
from ganns.recipes import Member
from ganns.sampling import sample
from ganns.stacked import Shape, initial_state, member_network
from ganns.typicality import Typicality

_ROWS_AT_A_TIME = 4096


class Joined(nn.Module):
    """Networks side by side: (N, features) to (N, networks, outputs)."""

    def __init__(self, networks: Sequence[nn.Module]):
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        """Every network's answer."""
        return torch.stack([network(x) for network in self.networks], dim=1)


@dataclass(frozen=True)
class Ensemble:
    """Trained networks, and what turns their outputs into predictions.

    Args:
        shape: of each network.
        member: the numbers that they were trained with; only their seeds differ.
        joined: the networks, in float64 on the CPU.
        scaling: of features and targets, the same for all.
        calibration: in scaled units, with a γ for each prior of each network.
        scores: regression: |y − mean| / σ of the rows held back, each target's from small to large, (rows, targets).
        typicality: of the rows they were fitted to; None without priors.
    """

    shape: Shape
    member: Member
    joined: Joined
    scaling: Scaling
    calibration: Calibration
    scores: Tensor | None = None
    typicality: Typicality | None = None

    def center(self, x: Tensor) -> Tensor:
        """Regression: the undisturbed mean over the networks for raw rows, in the targets' units, (N, targets)."""
        means = torch.cat([_clean(self.joined, scaled).mean(0) for scaled in self._parts(x)])
        if self.calibration.head == "variance":
            means, _ = split_variance(means)
        return means * self.scaling.target_scale + self.scaling.target_mean

    def distribution(self, x: Tensor) -> Regression | Classification:
        """The predictive distribution of raw rows, in the targets' units."""
        parts = [summarise(noisy(self.joined, part, self.calibration), self.calibration) for part in self._parts(x)]
        names = [field.name for field in fields(parts[0])]
        whole = replace(parts[0], **{name: torch.cat([getattr(part, name) for part in parts]) for name in names})
        if isinstance(whole, Classification):
            return whole
        return whole.rescaled(self.scaling.target_scale, self.scaling.target_mean)

    def interval(self, x: Tensor, coverage: float) -> tuple[Tensor, Tensor]:
        """Bounds of raw rows: as many σ from the mean as it takes to hold this share of new rows (split conformal).

        Of n scores that is the one of rank ⌈(n + 1) coverage⌉, whatever shape the errors have; where there is no such
        rank, the largest, and no less than a Gaussian would take.
        """
        prediction = self.distribution(x)
        assert isinstance(prediction, Regression)
        assert self.scores is not None
        lower, upper = prediction.interval(coverage)
        rank = math.ceil((len(self.scores) + 1) * coverage)
        half = self.scores[min(rank, len(self.scores)) - 1] * prediction.variance.sqrt()
        if rank > len(self.scores):
            half = torch.maximum(half, (upper - lower) / 2)
        return prediction.mean - half, prediction.mean + half

    def percentile(self, x: Tensor) -> Tensor:
        """How unusual raw rows are, as a percentile of the rows fitted to, (N,)."""
        return self._typicality(x, "typicality_percentile")

    def distance(self, x: Tensor) -> Tensor:
        """How unusual raw rows are, without bound, (N,): what percentiles are counted by."""
        return self._typicality(x, "typicality")

    def _typicality(self, x: Tensor, score: str) -> Tensor:
        if self.typicality is None:
            raise ValueError("variance=None: plain networks expect nothing; fit with variance='sparse' for surprise.")
        return torch.cat([getattr(self.typicality.scores(scaled), score) for scaled in self._parts(x)])

    def _parts(self, x: Tensor) -> Iterator[Tensor]:
        return (self.scaling.features(part) for part in x.split(_ROWS_AT_A_TIME))


def noisy(joined: Joined, scaled: Tensor, calibration: Calibration) -> Tensor:
    """Outputs of scaled rows under noise, those of all networks one after another: (S, N, outputs).

    Those of a regression are moved so that their mean is the undisturbed one: noise is to say how sure a prediction is,
    not to change it.
    """
    clean = _clean(joined, scaled)
    gamma = calibration.gamma if isinstance(calibration.gamma, tuple) else (calibration.gamma,)
    if not any(gamma):
        return clean
    drawn = sample(joined, scaled, calibration.draws, gamma, calibration.seed).movedim(2, 1).flatten(0, 1)
    return drawn if calibration.task == "classification" else drawn + (clean.mean(0) - drawn.mean(0))


def _clean(joined: Joined, scaled: Tensor) -> Tensor:
    """Undisturbed outputs (networks, N, outputs)."""
    with torch.no_grad():
        return joined(scaled).movedim(1, 0)


def to_numbers(ensemble: Ensemble) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """JSON values and tensors that hold all of an ensemble."""
    calibration = {name: value for name, value in asdict(ensemble.calibration).items() if not name.startswith("nll")}
    description = {
        "shape": asdict(ensemble.shape),
        "member": asdict(ensemble.member),
        "networks": len(ensemble.joined.networks),
        "calibration": calibration,
    }
    tensors = dict(ensemble.joined.state_dict())
    tensors |= {f"scaling.{name}": value for name, value in ensemble.scaling._asdict().items()}
    if ensemble.scores is not None:
        tensors["scores.sorted"] = ensemble.scores
    if ensemble.typicality is not None:
        tensors |= {f"typicality.{name}": value for name, value in ensemble.typicality.tensors().items()}
    return description, tensors


def from_numbers(description: dict[str, Any], tensors: dict[str, Tensor]) -> Ensemble:
    """The ensemble that `to_numbers` was given."""
    parts: dict[str, dict[str, Tensor]] = {"networks": {}, "scaling": {}, "scores": {}, "typicality": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    shape = Shape(**{**description["shape"], "hidden": tuple(description["shape"]["hidden"])})
    member = Member(**description["member"])
    numbers = member.floor or 0.5, member.dropout or 0.0
    new = [member_network(shape, initial_state(shape, 0), *numbers).double() for _ in range(description["networks"])]
    joined = Joined(new).eval()
    joined.networks.load_state_dict(parts["networks"])
    calibration = description["calibration"].items()
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in calibration}
    typicality = Typicality.from_tensors(joined, parts["typicality"]) if parts["typicality"] else None
    scaling, scores = Scaling(**parts["scaling"]), parts["scores"].get("sorted")
    return Ensemble(shape, member, joined, scaling, Calibration(**given), scores, typicality)


class _Plain(nn.Module):
    """What `plain` traces, and leaves behind."""

    mean: Tensor
    scale: Tensor
    target_mean: Tensor
    target_scale: Tensor

    def __init__(self, ensemble: Ensemble):
        super().__init__()
        networks = ensemble.joined.networks
        self.networks = nn.ModuleList(net.plain() if isinstance(net, GaussianMLP) else net for net in networks)
        for name, value in ensemble.scaling._asdict().items():
            self.register_buffer(name, value)
        self.calibration = ensemble.calibration

    def forward(self, x: Tensor) -> Tensor:
        """Raw rows to the mean of the networks: targets in their units, or probabilities."""
        scaled = (x - self.mean) / self.scale
        outputs = [network(scaled) for network in self.networks]
        if self.calibration.task == "classification":
            outputs = [(output / self.calibration.temperature).softmax(-1) for output in outputs]
            return torch.stack(outputs).mean(0)
        means = torch.stack(outputs).mean(0)
        if self.calibration.head == "variance":
            means = means[:, : self.target_mean.shape[0]]
        return means * self.target_scale + self.target_mean


def plain(ensemble: Ensemble, dtype: torch.dtype) -> nn.Module:
    """The undisturbed mean of the networks with the scaling inside, made of PyTorch's own modules alone."""
    traced = torch.fx.symbolic_trace(_Plain(ensemble))
    return copy.deepcopy(traced).to(dtype).eval()
