"""Fitting for the estimators: an ensemble for each α as one fleet, calibrated, and the best of them."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ganns.calibration import fit_draws
from ganns.ensembles import Ensemble, Joined, noisy
from ganns.feeding import Rows, divide, scalings
from ganns.fitting import fit_priors
from ganns.predictive import Calibration, Classification, Regression
from ganns.progress import Listener
from ganns.recipes import Member, Recipe
from ganns.stacked import Shape
from ganns.training import Training, fit_fleet
from ganns.typicality import Typicality

_GAMMAS = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_DRAWS = 16  # of each network
_SEARCHED = 1024  # rows that γ and α are chosen by
_FITTED = 2048  # rows that priors are fitted to afterwards


def fit_ensembles(
    x: Tensor,
    y: Tensor,
    recipe: Recipe,
    alphas: Sequence[float],
    *,
    members: int,
    variance: str | None,
    hidden: Sequence[int],
    seed: int,
    device: str | torch.device | None,
    progress: bool | Listener,
) -> tuple[Ensemble, list[Training]]:
    """Train an ensemble for each α as one fleet; the best by `_best`, and the trainings of its networks.

    All networks share the split: its test rows, which neither training nor stopping looks at, are what an ensemble is
    calibrated and chosen by.

    Args:
        x: raw features (N, features) in float64: scaled before anything is rounded to float32.
        y: raw targets (N, targets) in float64, or class numbers (N,).
        recipe: how; its features and targets are standardised.
        alphas: α of each ensemble.
        members: networks of each ensemble.
        variance: see `fit_fleet`.
        hidden: see `fit_fleet`.
        seed: of the first network of each ensemble, and of the split.
        device: where to train.
        progress: see `fit_fleet`.
    """
    team = [Member(seed=seed + i, split=seed, alpha=alpha).resolved(recipe) for alpha in alphas for i in range(members)]
    split = divide(len(x), recipe, team[:1])[0]
    scaling = scalings(Rows(x, y), recipe, team[:1], [split], x.dtype)[0]
    scaled_x, scaled_y = scaling.features(x), y if y.ndim == 1 else scaling.targets(y)
    already = replace(recipe, features="raw", standardise_targets=False)
    fleet = fit_fleet(
        scaled_x, scaled_y, already, team, variance=variance, hidden=hidden, device=device, progress=progress
    )
    if not any(training.best_epoch for training in fleet.trainings):
        raise ValueError(f"learning_rate={recipe.learning_rate}: every network diverged at once; use a smaller rate.")
    held = torch.from_numpy(split.test[:_SEARCHED])
    ensembles = []
    for start in range(0, len(team), members):
        joined = Joined([network.cpu().double() for network in fleet[start : start + members]]).eval()
        if variance is not None and team[start].alpha == 0:
            for network in joined.networks:
                fit_priors(network, scaled_x[torch.from_numpy(split.train[:_FITTED])])
        calibration = _calibrated(joined, recipe, fleet.shape, scaled_x[held], scaled_y[held])
        ensembles.append(Ensemble(fleet.shape, team[start], joined, scaling, calibration))
    best = _best(ensembles, x[held], y[held])
    chosen = ensembles[best]
    if variance is not None:
        chosen = replace(chosen, typicality=Typicality.fit(chosen.joined, scaled_x))
    if recipe.task == "regression":
        chosen = replace(chosen, scores=_scores(chosen, x[held], y[held]))
    return chosen, list(fleet.trainings[best * members : (best + 1) * members])


def _calibrated(joined: Joined, recipe: Recipe, shape: Shape, x: Tensor, y: Tensor) -> Calibration:
    """The calibration under which the whole ensemble finds scaled rows likeliest, with one γ for all priors."""
    head = recipe.head if recipe.task == "regression" else "mean"
    raw = Calibration(recipe.task, head=head, draws=_DRAWS)
    priors = len(joined.networks) * len(shape.hidden) if shape.variance else 1
    tried = [replace(raw, gamma=(gamma,) * priors) for gamma in (_GAMMAS if shape.variance else (0.0,))]
    return min((fit_draws(each, noisy(joined, x, each), y) for each in tried), key=lambda fitted: fitted.nll)


def _best(ensembles: Sequence[Ensemble], x: Tensor, y: Tensor) -> int:
    """Which ensemble finds raw rows likeliest, of those that err no more than the first, clearly.

    Clearly: on average over rows, beyond the standard error of the difference.
    """
    errors = [_errors(ensemble, x, y) for ensemble in ensembles]

    def nll(number: int) -> float:
        more = errors[number] - errors[0]
        worse = more.mean() > more.std(correction=0) / len(more) ** 0.5
        return float("inf") if worse else ensembles[number].calibration.nll

    return min(range(len(ensembles)), key=nll)


def _errors(ensemble: Ensemble, x: Tensor, y: Tensor) -> Tensor:
    """Absolute error of each row, averaged over targets in scaled units; or whether its class is wrong."""
    prediction = ensemble.distribution(x)
    if isinstance(prediction, Classification):
        return (prediction.classes != y).double()
    return ((prediction.mean - y) / ensemble.scaling.target_scale).abs().mean(1)


def _scores(ensemble: Ensemble, x: Tensor, y: Tensor) -> Tensor:
    """See `Ensemble.scores`."""
    prediction = ensemble.distribution(x)
    assert isinstance(prediction, Regression)
    return ((y - prediction.mean).abs() / prediction.variance.sqrt()).sort(0).values
