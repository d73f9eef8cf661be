"""Gaussian neural networks for PyTorch: networks that know what activity they expect, and so can be surprised."""

from typing import TYPE_CHECKING, Any

from ganns import metrics
from ganns.calibration import calibrate
from ganns.convert import insert, strip
from ganns.families import Family, Gaussian, Laplace, StudentT
from ganns.fitting import fit_priors
from ganns.layers import GaussianLayer, GaussianMLP
from ganns.objective import accumulate, coefficient, inner_loss, total_loss
from ganns.predictive import Calibration, Classification, Predictive, Regression, predict
from ganns.priors import ActivityPrior
from ganns.propagation import moments
from ganns.recipes import Member, Recipe
from ganns.sampling import sample
from ganns.tracing import State, Trace, trace
from ganns.training import Fleet, Training, fit_fleet
from ganns.typicality import Scores, Typicality, surprise

if TYPE_CHECKING:
    from ganns.estimators import GaNNClassifier, GaNNRegressor, load

__all__ = [
    "ActivityPrior",
    "Calibration",
    "Classification",
    "Family",
    "Fleet",
    "GaNNClassifier",
    "GaNNRegressor",
    "Gaussian",
    "GaussianLayer",
    "GaussianMLP",
    "Laplace",
    "Member",
    "Predictive",
    "Recipe",
    "Regression",
    "Scores",
    "State",
    "StudentT",
    "Trace",
    "Training",
    "Typicality",
    "accumulate",
    "calibrate",
    "coefficient",
    "fit_fleet",
    "fit_priors",
    "inner_loss",
    "insert",
    "load",
    "metrics",
    "moments",
    "predict",
    "sample",
    "strip",
    "surprise",
    "total_loss",
    "trace",
]

_NEED_SCIKIT_LEARN = ("GaNNClassifier", "GaNNRegressor", "load")


def __getattr__(name: str) -> Any:
    """The names that need scikit-learn are imported when they are first asked for."""
    if name not in _NEED_SCIKIT_LEARN:
        raise AttributeError(f"module 'ganns' has no attribute {name!r}")
    from ganns import estimators

    return getattr(estimators, name)
