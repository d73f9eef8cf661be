"""What is measured on rows held out, for whichever method made the prediction."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ganns import metrics
from ganns.predictive import Classification, Regression

COVERAGES = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Measure:
    """A number that says how good predictions are.

    Args:
        key: short name.
        title: for tables.
        noun: within a sentence.
        higher_is_better: or else lower.
        hint: what it means.
    """

    key: str
    title: str
    noun: str
    higher_is_better: bool
    hint: str


_NLL = Measure(
    "nll",
    "NLL",
    "negative log-likelihood (NLL)",
    False,
    "How surprising the truth was under the prediction, in nats: being sure and wrong costs most.",
)
MEASURES = {
    "regression": (
        Measure("mae", "MAE", "mean absolute error", False, "Mean absolute error, in the target's units."),
        Measure("rmse", "RMSE", "root mean squared error", False, "Root mean squared error: large errors count more."),
        _NLL,
    ),
    "classification": (
        Measure("accuracy", "Accuracy", "accuracy", True, "Share of rows whose likeliest class is the true one."),
        Measure("brier", "Brier score", "Brier score", False, "Squared error of the probabilities, from 0 to 2."),
        _NLL,
    ),
}


def score(prediction: Regression | Classification, y: Tensor) -> dict[str, float]:
    """All measures of the prediction's task, by key.

    Args:
        prediction: for N rows.
        y: targets (N, 1), or class numbers (N,).
    """
    if isinstance(prediction, Regression):
        found = {
            "mae": metrics.mae(prediction.mean, y),
            "rmse": metrics.rmse(prediction.mean, y),
            "nll": prediction.nll(y),
        }
    else:
        p = prediction.probabilities
        found = {"accuracy": metrics.accuracy(p, y), "brier": metrics.brier(p, y), "nll": prediction.nll(y)}
    return {key: float(value) for key, value in found.items()}


def blind(task: str, y_known: Tensor, rows: int) -> Regression | Classification:
    """What one can say without looking at a row: the mean and spread of known targets, or the shares of classes."""
    if task == "regression":
        mean = y_known.mean(0).expand(rows, -1)
        return Regression(mean, torch.zeros_like(mean), y_known.var(0).expand(rows, -1))
    shares = (torch.bincount(y_known).double() / len(y_known)).expand(rows, -1)
    return Classification(shares, metrics.entropy(shares))


def coverage(lower: Tensor, upper: Tensor, y: Tensor) -> tuple[float, float]:
    """What share of targets intervals hold, and their mean width; all of one shape."""
    within = (lower <= y) & (y <= upper)
    return float(within.double().mean()), float((upper - lower).mean())


def reliability(prediction: Classification, y: Tensor, groups: int = 5) -> list[tuple[float, float, int]]:
    """Mean confidence, accuracy and rows of groups of equal size, from the least to the most confident."""
    confidence, best = prediction.probabilities.max(-1)
    order = confidence.argsort()
    parts = [part for part in order.tensor_split(min(groups, len(order))) if len(part)]
    right = (best == y).double()
    return [(float(confidence[part].mean()), float(right[part].mean()), len(part)) for part in parts]


def share_error(share: float, rows: int) -> float:
    """Standard error of a share that was counted among so many rows."""
    return math.sqrt(share * (1 - share) / rows)
