"""What figures show of one training, as lists of rows: is it right as often as it says, and what surprises it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

import ganns
from ganns import metrics
from ganns.feeding import Scaling
from ganns.predictive import Classification, Regression
from ganns.study.evaluation import Evaluation

ROWS = 4096  # at most so many training rows say what is typical, and so many test rows are scored
_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_BINS, _GROUPS, _PERCENT = 15, 10, 5
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

Table = list[dict[str, Any]]


def collect(
    evaluation: Evaluation,
    network: nn.Module | None = None,
    scaling: Scaling | None = None,
    train: Tensor | None = None,
    test: Tensor | None = None,
) -> dict[str, Table]:
    """All that there is to show.

    Args:
        evaluation: of the test rows.
        network: if it has priors.
        scaling: of its features.
        train: some training rows, as they are stored.
        test: the test rows, as they are stored.
    """
    found: dict[str, Table] = {}
    both = {"raw": evaluation.raw, "calibrated": evaluation.calibrated}
    if isinstance(evaluation.calibrated, Regression):
        found["coverage"] = [r for name, p in both.items() for r in coverage(name, p, evaluation.y)]
    else:
        found["reliability"] = [r for name, p in both.items() for r in reliability(name, p, evaluation.y)]
    found["error"] = error(evaluation.calibrated, evaluation.y)
    if network is not None and scaling is not None and train is not None and test is not None:
        found |= surprises(network, scaling, train, test[:ROWS])
        found["priors"] = priors(network, scaling.features(test[:ROWS]))
    return found


def coverage(variant: str, prediction: Any, y: Tensor) -> Table:
    """Share of targets inside intervals that should hold a given share."""
    if not isinstance(prediction, Regression) or not prediction.variance.isfinite().all():
        return []
    found = []
    for nominal in _LEVELS:
        lower, upper = prediction.interval(nominal)
        inside = ((lower <= y) & (y <= upper)).double().mean()
        found.append({"variant": variant, "nominal": nominal, "observed": float(inside)})
    return found


def reliability(variant: str, prediction: Any, y: Tensor) -> Table:
    """Mean confidence and accuracy of rows that are about equally confident; empty groups are left out."""
    if not isinstance(prediction, Classification):
        return []
    confidence, right = prediction.probabilities.amax(-1), prediction.classes == y
    group = (confidence * _BINS).long().clamp(max=_BINS - 1)
    return [
        {
            "variant": variant,
            "confidence": float(confidence[chosen].double().mean()),
            "accuracy": float(right[chosen].double().mean()),
            "rows": int(chosen.sum()),
        }
        for chosen in (group == number for number in range(_BINS))
        if chosen.any()
    ]


def error(prediction: Regression | Classification, y: Tensor) -> Table:
    """Groups of equally many rows by how uncertain they are, and how wrong: standard deviation against mean absolute
    error, or entropy against the share of wrong classes.
    """  # noqa: D205
    if isinstance(prediction, Regression):
        uncertainty, wrong = prediction.variance.sqrt().mean(-1), (prediction.mean - y).abs().mean(-1)
    else:
        uncertainty, wrong = prediction.entropy, (prediction.classes != y)
    order = uncertainty.argsort()
    return [
        {
            "uncertainty": float(uncertainty[chosen].double().mean()),
            "error": float(wrong[chosen].double().mean()),
            "rows": len(chosen),
        }
        for chosen in order.tensor_split(_GROUPS)
        if len(chosen)
    ]


def surprises(network: nn.Module, scaling: Scaling, train: Tensor, test: Tensor) -> dict[str, Table]:
    """How typical the activity is that test rows and shifted rows cause, and how well that tells them apart."""
    typical = ganns.Typicality.fit(network, scaling.features(train))
    usual = _scores(typical, network, scaling, test)
    found: dict[str, Table] = {"surprise": _histogram("test", usual["percentile"]), "detection": []}
    for name, rows in shifted(test, train).items():
        strange = _scores(typical, network, scaling, rows)
        found["surprise"] += _histogram(name, strange["percentile"])
        areas = {score: _area(usual[score], strange[score]) for score in ("surprise", "typicality", "entropy")}
        found["detection"].append({"rows": name, **areas})
    return found


def shifted(test: Tensor, train: Tensor) -> dict[str, Tensor]:
    """Rows that are no longer what training rows are, by name, as they are stored.

    "shuffled" keeps each feature's values but not what goes with what; "noise" is uniform for pictures of bytes, and
    otherwise normal with the training rows' mean and spread; pictures are also inverted and turned upside down.
    """
    numbers = torch.Generator().manual_seed(0)
    flat = test.flatten(1)
    order = torch.rand(flat.shape, generator=numbers).argsort(0).to(test.device)
    found = {"shuffled": flat.gather(0, order).view_as(test)}
    if test.dtype == torch.uint8:
        found["noise"] = torch.randint(256, test.shape, generator=numbers, dtype=torch.uint8).to(test.device)
        found |= {"inverted": 255 - test, "upside down": test.flip(1)}
    else:
        noise = torch.randn(test.shape, generator=numbers).to(test.device)
        found["noise"] = train.mean(0) + train.std(0) * noise
    return found


def priors(network: nn.Module, x: Tensor) -> Table:
    """Quantiles over each layer's units of what the priors expect: the mean, and the standard deviation, averaged over
    rows.
    """  # noqa: D205
    with torch.no_grad():
        states = ganns.trace(network, x).states
    found = []
    for layer, state in enumerate(states, 1):
        mean = state.mean.expand_as(state.activity).mean(0).double()
        sd = state.variance.sqrt().expand_as(state.activity).mean(0).double()
        if not (mean.isfinite().all() and sd.isfinite().all()):
            continue
        levels = mean.new_tensor(_QUANTILES)
        pairs = zip(_QUANTILES, mean.quantile(levels).tolist(), sd.quantile(levels).tolist(), strict=True)
        found += [{"layer": layer, "quantile": q, "mean": m, "sd": s} for q, m, s in pairs]
    return found


def _scores(typical: ganns.Typicality, network: nn.Module, scaling: Scaling, rows: Tensor) -> dict[str, Tensor]:
    x = scaling.features(rows)
    scores = typical.scores(x)
    with torch.no_grad():
        output = network(x)
    classes = output.shape[-1] > 1 and scaling.target_mean.numel() == 0
    entropy = metrics.entropy(output.softmax(-1)) if classes else torch.full_like(scores.surprise, math.nan)
    return {
        "surprise": scores.surprise,
        "typicality": scores.typicality,
        "entropy": entropy,
        "percentile": scores.typicality_percentile,
    }


def _area(usual: Tensor, strange: Tensor) -> float | None:
    both = torch.cat([usual, strange])
    if not both.isfinite().all():
        return None
    return float(metrics.auroc(both, torch.arange(len(both), device=both.device) >= len(usual)))


def _histogram(name: str, percentile: Tensor) -> Table:
    """Shares of rows in each five percent of training rows, from usual to unusual."""
    group = (percentile / _PERCENT).long().clamp(0, 100 // _PERCENT - 1)
    shares = torch.bincount(group, minlength=100 // _PERCENT).double() / len(group)
    return [
        {"rows": name, "from": float(_PERCENT * n), "to": float(_PERCENT * (n + 1)), "share": share}
        for n, share in enumerate(shares.tolist())
    ]
