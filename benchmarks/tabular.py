"""Six tables, five splits, defaults only: how good and how fast the estimators are beside others.

Tables of the study that are not there (`ganns datasets`) are left out, and so is NGBoost where it is not installed.
"""

import argparse
import statistics
import time
import warnings

import numpy as np
from scipy.stats import norm
from sklearn import datasets
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import compare, finish, measure

from ganns import Member, Recipe, fit_fleet
from ganns.estimators import GaNNRegressor
from ganns.study.datasets import MissingDataset, load

SPLITS, COVERAGE = 5, 0.9
TABLES = ("airfoil", "yacht", "wine_regression", "diabetes", "friedman1", "friedman2")
SCORES = ("mae", "nll", "coverage", "fit_s", "predict_s")
LARGEST_PROCESS = 1500  # training rows; a Gaussian process takes their cube


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target."""
    if name == "diabetes":
        return datasets.load_diabetes(return_X_y=True)
    if name == "friedman1":
        return datasets.make_friedman1(1000, noise=1.0, random_state=0)
    if name == "friedman2":
        return datasets.make_friedman2(1000, noise=100.0, random_state=0)
    arrays = load(name)
    return arrays.x.astype(float), arrays.y.astype(float)


class ConstantWidth(RegressorMixin, BaseEstimator):
    """A regressor that says nothing about its errors, with the width of its errors on a fifth of the rows held back."""

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, x, y):
        x, held_x, y, held_y = train_test_split(x, y, test_size=0.2, random_state=0)
        self.regressor_ = clone(self.regressor).fit(x, y)
        self.width_ = np.sqrt(np.mean((held_y - self.regressor_.predict(held_x)) ** 2))
        return self

    def predict(self, x, return_std=False):
        mean = self.regressor_.predict(x)
        return (mean, np.full_like(mean, self.width_)) if return_std else mean


class Scaled(RegressorMixin, BaseEstimator):
    """A regressor between standardised features and targets."""

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, x, y):
        self.x_, self.center_, self.scale_ = StandardScaler().fit(x), y.mean(), y.std()
        self.regressor_ = clone(self.regressor).fit(self.x_.transform(x), (y - self.center_) / self.scale_)
        return self

    def predict(self, x, return_std=False):
        if not return_std:
            return self.regressor_.predict(self.x_.transform(x)) * self.scale_ + self.center_
        mean, std = self.regressor_.predict(self.x_.transform(x), return_std=True)
        return mean * self.scale_ + self.center_, std * self.scale_


class Boosted(RegressorMixin, BaseEstimator):
    """NGBoost behind the same two methods."""

    def fit(self, x, y):
        from ngboost import NGBRegressor

        self.regressor_ = NGBRegressor(verbose=False, random_state=0).fit(x, y)
        return self

    def predict(self, x, return_std=False):
        found = self.regressor_.pred_dist(x)
        return (found.loc, found.scale) if return_std else found.loc


def contestants(seed: int) -> dict[str, BaseEstimator]:
    """All of them, with their defaults."""
    kernel = ConstantKernel() * RBF(1.0) + WhiteKernel(0.1)
    return {
        "GaNNRegressor": GaNNRegressor(random_state=seed),
        "plain ensemble (variance=None)": GaNNRegressor(variance=None, random_state=seed),
        "plain network (variance=None, members=1)": GaNNRegressor(variance=None, members=1, random_state=seed),
        "MLPRegressor": ConstantWidth(make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))),
        "HistGradientBoostingRegressor": ConstantWidth(HistGradientBoostingRegressor(random_state=seed)),
        "GaussianProcessRegressor": Scaled(GaussianProcessRegressor(kernel, random_state=seed)),
        "NGBoost": Boosted(),
    }


def judged(model: BaseEstimator, split: tuple) -> dict[str, float]:
    """Scores of one model on one split."""
    x, new_x, y, new_y = split
    start = time.perf_counter()
    model.fit(x, y)
    fitted = time.perf_counter()
    mean, std = model.predict(new_x, return_std=True)
    predicted = time.perf_counter()
    if isinstance(model, GaNNRegressor):
        lower, upper = model.predict_interval(new_x, COVERAGE)
    else:
        half = norm.ppf(0.5 + COVERAGE / 2) * std
        lower, upper = mean - half, mean + half
    return {
        "mae": float(np.abs(mean - new_y).mean()),
        "nll": float(-norm(mean, std).logpdf(new_y).mean()),
        "coverage": float(((lower <= new_y) & (new_y <= upper)).mean()),
        "fit_s": fitted - start,
        "predict_s": predicted - fitted,
        **({"alpha": model.alpha_} if isinstance(model, GaNNRegressor) else {}),
    }


def qualities(names: list[str]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Scores by table, contestant and score, one number a split; printed as they come."""
    results: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name in names:
        try:
            x, y = table(name)
        except MissingDataset as error:
            print(f"\n{name}: {error}", flush=True)
            continue
        rows = results[name] = {}
        print(f"\n{name}, {len(x)} rows, {SPLITS} splits\n{'':42}" + "".join(f"{score:>18}" for score in SCORES))
        for contestant in contestants(0):
            scores = []
            for seed in range(SPLITS):
                split = train_test_split(x, y, test_size=0.2, random_state=seed)
                if contestant == "GaussianProcessRegressor" and len(split[0]) > LARGEST_PROCESS:
                    break
                try:
                    scores.append(judged(contestants(seed)[contestant], split))
                except ModuleNotFoundError as error:
                    print(f"{contestant:42}  not installed: pip install {error.name}", flush=True)
                    break
            if scores:
                rows[contestant] = {score: [each[score] for each in scores] for score in scores[0]}
                print(f"{contestant:42}" + "".join(f"{spread(rows[contestant][s]):>18}" for s in SCORES), flush=True)
    return results


def spread(values: list[float]) -> str:
    """Mean and standard deviation over splits."""
    return f"{statistics.fmean(values):.3f} ± {statistics.pstdev(values):.3f}"


def speeds() -> dict[str, dict]:
    """An epoch of a network with two layers of 64 on 4,000 rows: scikit-learn's, one of ours, five of ours."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 11)).astype(np.float32)
    y = x.sum(1)
    epochs, ours = 10, {"variance": None, "hidden": (64, 64), "device": "cpu", "progress": False}
    recipe = Recipe(
        "regression", "mean", "adamw", 1e-3, epochs=epochs, batch_size=64, split=(0.8, 0.1, 0.1), clip_norm=None
    )
    theirs = MLPRegressor(
        hidden_layer_sizes=(64, 64), batch_size=64, max_iter=epochs, n_iter_no_change=epochs, random_state=0
    )
    five = [Member(seed=seed) for seed in range(5)]

    runs = {
        "MLPRegressor": lambda: clone(theirs).fit(x[:4000], y[:4000]),
        "one plain network": lambda: fit_fleet(x, y, recipe, five[:1], **ours),
        "five, as a fleet": lambda: fit_fleet(x, y, recipe, five, **ours),
        "five, one after another": lambda: [fit_fleet(x, y, recipe, [member], **ours) for member in five],
        "one with sparse priors": lambda: fit_fleet(x, y, recipe, five[:1], **{**ours, "variance": "sparse"}),
    }
    return compare(f"{epochs} epochs of 4,000 rows, hidden 64/64, batch 64", measure(runs, rounds=5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES), help=f"of {', '.join(TABLES)}")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of MLPRegressor, which is taken as it is
    finish("tabular", {"speed": speeds(), "tables": qualities(given.tables)})


if __name__ == "__main__":
    main()
