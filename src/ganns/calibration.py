"""Turning the noise of a trained network into predictions that can be believed, with validation rows."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from ganns import metrics
from ganns.calling import Input, call_for_tensor, check_finite, evaluating, map_tensors, row_count
from ganns.heads import split_variance
from ganns.predictive import Calibration, Regression, as_targets, spread, summarise
from ganns.sampling import Noise, sample_noise, survey

_COARSE = (0.0, *torch.logspace(-2.5, 0.5, 13).tolist())  # γ tried first, for all layers alike
_FINE = (0.7, 0.85, 1.0, 1.2, 1.4)  # then these multiples of the best
_LAYER = (0.0, 0.5, 0.75, 1.35, 2.0)  # then these for one layer at a time
_WORTHWHILE = 1e-3  # nats that one layer's own γ must gain
_KEPT = 2**25  # outputs held at once


def calibrate(
    model: nn.Module,
    x: Input,
    y: Tensor,
    task: str,
    *,
    head: str = "mean",
    draws: int = 64,
    seed: int = 0,
    rows: int = 2048,
) -> Calibration:
    """Fit γ and the output noise (regression) or the temperature (classification) on validation rows.

    Minimises the negative log-likelihood: first one γ for all layers (0 is among those tried), then one for each layer
    where that pays. All γ are tried on the same draws, so the search is deterministic.

    Args:
        model: a trained network with priors; outputs of shape (N, out), logits for classification.
        x: validation rows, which training has not seen.
        y: targets (N,) or (N, out), or class labels (N,).
        task: "regression" or "classification".
        head: regression: "mean", or "variance" where the network predicts a variance beside each mean; then that is
            multiplied by what fits best.
        draws: how many draws the predictions will take; the search takes half as many.
        seed: names the draws.
        rows: at most this many rows, chosen at random; a handful of numbers needs no more.
    """
    raw = Calibration(task, head=head, draws=draws, seed=seed)
    if draws < 4:
        raise ValueError(f"draws={draws}: calibration needs at least 4 to see how much they differ.")
    check_finite("x", x)
    count = row_count(x)
    if len(y) != count:
        raise ValueError(f"y has {len(y)} rows, but x has {count}.")
    if count > rows:
        kept = torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:rows]
        x = map_tensors(lambda tensor: tensor[kept.to(tensor.device)] if tensor.ndim else tensor, x)
        y = y[kept.to(y.device)]
    with evaluating(model):
        clean = call_for_tensor(model, x)
    if task == "regression":
        y = as_targets(y, split_variance(clean)[0] if head == "variance" else clean)
        check_finite("y", y)
    else:
        metrics.nll(clean.softmax(-1), y)  # refuses labels that are out of range

    def best(candidates: list[list[float]], draws: int) -> tuple[list[float], Calibration]:
        fitted = [
            (gamma, fit_draws(replace(raw, gamma=tuple(gamma)), drawn, y))
            for gamma, drawn in _drawn(model, x, candidates, draws, seed)
        ]
        return min(fitted, key=lambda pair: pair[1].nll)

    layers = survey(model, x).layers
    gamma, _ = best([[gamma] * layers for gamma in _COARSE], draws // 2)
    gamma, found = best([[factor * layer for layer in gamma] for factor in _FINE], draws // 2)
    for _ in range(2 * layers if layers > 1 else 0):
        changed = [
            [factor * value if layer == number else value for number, value in enumerate(gamma)]
            for layer in range(layers)
            for factor in _LAYER
        ]
        better_gamma, better = best(changed, draws // 2)
        if not better.nll < found.nll - _WORTHWHILE:
            break
        gamma, found = better_gamma, better
    ((_, noisy),) = _drawn(model, x, [[1.0] * layers], draws, seed)
    return replace(best([gamma], draws)[1], nll_before=_raw_nll(raw, noisy, y))


def _drawn(
    model: nn.Module, x: Input, gammas: list[list[float]], draws: int, seed: int
) -> Iterator[tuple[list[float], Tensor]]:
    """Each γ (one number a layer) with its draws (S, N, out): the same noise for all, several γ in one forward pass."""
    seen = survey(model, x)
    together = 1
    while gammas:
        group, gammas = gammas[:together], gammas[together:]
        numbers = [draw for _ in group for draw in range(draws)]
        table = torch.tensor(group, dtype=torch.float64).repeat_interleave(draws, 0)
        outputs = sample_noise(model, x, Noise(table, seed, numbers), seen.chunk(len(numbers)))
        yield from zip(group, outputs.unflatten(0, (len(group), draws)), strict=True)
        together = max(1, _KEPT // (outputs.numel() // len(group)))


def fit_draws(calibration: Calibration, draws: Tensor, y: Tensor) -> Calibration:
    """Add the output variance or its scale, or the temperature, that makes targets y likeliest.

    Args:
        calibration: says what the draws are; its γ plays no part.
        draws: outputs (S, N, out); one draw will do.
        y: targets (N, targets), or class labels (N,).
    """
    if calibration.task == "classification":
        return _fit_temperature(calibration, draws, y)
    y = y.double()
    if calibration.head == "variance":
        means, predicted = (part.double() for part in split_variance(draws))
        name, each = "output_scale", predicted.mean(0)
    else:
        means = draws.double()
        name, each = "output_variance", torch.ones_like(means[0])
    mean, between = means.mean(0), spread(means)
    squared = (y - mean).square()
    largest = (squared / each).mean(0).clamp(min=torch.finfo(torch.float32).tiny).log()

    def nll(log_factor: Tensor) -> Tensor:
        variance = between + log_factor.exp() * each
        return 0.5 * (squared / variance + variance.log() + math.log(2 * math.pi)).mean(0)

    best = _minimise(nll, largest - 16, largest + 1)
    return replace(calibration, **{name: tuple(best.exp().tolist())}, nll=nll(best).mean().item())


def _fit_temperature(calibration: Calibration, draws: Tensor, y: Tensor) -> Calibration:
    """Add the temperature that makes the labels y likeliest, once each has left a little to all classes alike.

    Rows that are classified without a mistake would want a temperature of zero, and the first mistake on other rows
    would then cost without bound. With Platt's smoothing a label counts 1 − ε and all classes together ε = 1/(N + 2).
    """
    share = 1 / (len(y) + 2)

    def costs(log_temperature: Tensor) -> tuple[Tensor, Tensor]:
        """The negative log-likelihood, and its smoothed twin."""
        each = (draws / log_temperature.exp()).log_softmax(-1).logsumexp(0) - math.log(len(draws))  # (N, K)
        nll = -each.gather(-1, y.unsqueeze(-1)).mean()
        return nll, (1 - share) * nll - share * each.mean()

    ends = (draws.new_tensor(math.log(limit)) for limit in (0.05, 50.0))
    best = _minimise(lambda log_temperature: costs(log_temperature)[1], *ends)
    return replace(calibration, temperature=best.exp().item(), nll=costs(best)[0].item())


def _raw_nll(raw: Calibration, draws: Tensor, y: Tensor) -> float:
    prediction = summarise(draws, raw)
    if isinstance(prediction, Regression) and not (prediction.variance > 0).all():
        return math.inf
    return prediction.nll(y).item()


def _minimise(function: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    """Where a function with one valley is smallest, element by element: golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        leftwards = function(left) < function(right)
        low, high = torch.where(leftwards, low, left), torch.where(leftwards, right, high)
    return (low + high) / 2
