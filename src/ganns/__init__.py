"""Gaussian neural networks for PyTorch: networks that know what activity they expect, and so can be surprised."""

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

__all__ = [
    "ActivityPrior",
    "Calibration",
    "Classification",
    "Family",
    "Fleet",
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
    "metrics",
    "moments",
    "predict",
    "sample",
    "strip",
    "surprise",
    "total_loss",
    "trace",
]
