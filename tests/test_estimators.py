"""The estimators are scikit-learn's in manner, honest in their uncertainty, and plain when exported."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from mapie.regression import SplitConformalRegressor
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ganns
from ganns import estimating, estimators, tabular
from ganns.estimators import GaNNClassifier, GaNNRegressor, load

SMALL = {"hidden": (8,), "members": 2, "alpha": 0.1, "epochs": 30, "learning_rate": 1e-2, "random_state": 0}
CHECKED = {"hidden": (16,), "members": 1, "batch_size": 32, "epochs": 40, "learning_rate": 2e-2}


@parametrize_with_checks(
    [GaNNRegressor(**CHECKED), GaNNClassifier(**CHECKED)]
    + [
        kind(variance=variance, alpha=0.1, **CHECKED)
        for kind in (GaNNRegressor, GaNNClassifier)
        for variance in ("constant", "dense", None)
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose noise grows with the first feature: standard deviation 0.1 to 1."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (500, 3)) * [1, 100, 1e-3] + [0, 1e6, 0]
    noise = 0.1 + 0.9 * x[:, 0]
    return x, 50 + 3 * x[:, 0] + 2000 * x[:, 2] + noise * rng.normal(size=len(x))


@pytest.fixture(scope="module")
def regressor(table) -> GaNNRegressor:
    return GaNNRegressor(**{**SMALL, "hidden": (32,), "epochs": 80}).fit(*table)


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    number = rng.integers(0, 3, 300)
    return rng.normal(size=(300, 2)) + 2.0 * np.array([[0, 0], [1, 1], [-1, 1]])[number], np.array(["a", "b", "ç"])[
        number
    ]


@pytest.fixture(scope="module")
def classifier(blobs) -> GaNNClassifier:
    return GaNNClassifier(**SMALL).fit(*blobs)


def test_it_learns_where_the_noise_is(regressor, table):
    x, _ = table
    mean, std = regressor.predict(x, return_std=True)
    truth = 50 + 3 * x[:, 0] + 2000 * x[:, 2]
    assert np.abs(mean - truth).mean() < 0.2
    assert std[x[:, 0] > 0.8].mean() > 1.8 * std[x[:, 0] < 0.2].mean()
    assert np.sqrt((((mean - truth) / std) ** 2).mean()) < 0.6


def test_predictions_agree_with_each_other(regressor, table):
    x, y = table
    mean, std = regressor.predict(x, return_std=True)
    dist = regressor.predict_dist(x)
    np.testing.assert_allclose(regressor.predict(x), mean, rtol=0, atol=0)
    np.testing.assert_allclose(dist.mean.numpy()[:, 0], mean, rtol=1e-12)
    np.testing.assert_allclose(dist.variance.sqrt().numpy()[:, 0], std, rtol=1e-12)
    assert float(dist.nll(torch.tensor(y))) == pytest.approx(-norm(mean, std).logpdf(y).mean())


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_intervals_hold_what_they_promise(regressor, coverage: float):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, (4000, 3)) * [1, 100, 1e-3] + [0, 1e6, 0]
    y = 50 + 3 * x[:, 0] + 2000 * x[:, 2] + (0.1 + 0.9 * x[:, 0]) * rng.normal(size=len(x))
    lower, upper = regressor.predict_interval(x, coverage)
    assert ((lower <= y) & (y <= upper)).mean() == pytest.approx(coverage, abs=0.07)


def test_an_interval_is_the_conformal_quantile_of_the_rows_held_back(regressor, table):
    """⌈(n + 1) c⌉ of n scores, found again from the split; beyond the last rank the largest score or the Gaussian."""
    x, y = table
    seed = regressor._ensemble.member.split
    held = np.random.default_rng(seed).permutation(len(x))[400:]
    mean, std = regressor.predict(x, return_std=True)
    scores = np.sort(np.abs(y[held] - mean[held]) / std[held])
    for coverage, factor in [
        (0.9, scores[int(np.ceil(101 * 0.9)) - 1]),
        (0.5, scores[50]),
        (0.9999, max(scores[-1], norm.ppf(0.99995))),
    ]:
        lower, upper = regressor.predict_interval(x, coverage)
        np.testing.assert_allclose((upper - lower) / 2, factor * std, rtol=1e-6)
        np.testing.assert_allclose((upper + lower) / 2, mean, rtol=1e-9)


def test_random_targets_have_the_predicted_moments(regressor, table):
    x = table[0][:20]
    mean, std = regressor.predict(x, return_std=True)
    drawn = regressor.sample(x, draws=4000, random_state=0)
    assert drawn.shape == (4000, 20)
    assert np.abs((drawn.mean(0) - mean) / std).max() < 5 / np.sqrt(4000)
    np.testing.assert_allclose(drawn.std(0), std, rtol=0.08)
    np.testing.assert_array_equal(drawn[:7], regressor.sample(x, draws=4000, random_state=0)[:7])


def test_random_labels_come_as_often_as_their_probability(classifier, blobs):
    x = blobs[0][:20]
    drawn = classifier.sample(x, draws=4000, random_state=0)
    shares = np.stack([(drawn == label).mean(0) for label in classifier.classes_], axis=1)
    np.testing.assert_allclose(shares, classifier.predict_proba(x), atol=5 * 0.5 / np.sqrt(4000))


def test_strange_rows_surprise_and_usual_rows_are_spread_evenly(regressor, classifier, table, blobs):
    for model, x in ((regressor, table[0]), (classifier, blobs[0])):
        usual = model.surprise(x)
        assert usual.shape == (len(x),)
        np.testing.assert_allclose(np.sort(usual), 100 * (np.arange(len(x)) + 0.5) / len(x), atol=1.5)
        assert model.surprise(x.mean(0, keepdims=True) + 30 * x.std(0)) > 99.5


def test_surprise_works_where_the_plain_network_wins(blobs):
    model = GaNNClassifier(**{**SMALL, "alpha": 0}).fit(*blobs)
    assert model.alpha_ == 0
    assert model.surprise(blobs[0]).std() > 20
    assert model.surprise(np.full((1, 2), 40.0)) > 99


def test_plain_networks_cannot_be_surprised(blobs):
    model = GaNNClassifier(**{**SMALL, "variance": None}).fit(*blobs)
    with pytest.raises(ValueError, match="fit with variance='sparse'"):
        model.surprise(blobs[0])


def test_alpha_zero_is_the_plain_network(table):
    plain = GaNNRegressor(**{**SMALL, "variance": None}).fit(*table)
    zero = GaNNRegressor(**{**SMALL, "alpha": 0.0}).fit(*table)
    np.testing.assert_allclose(zero.predict(table[0]), plain.predict(table[0]), rtol=1e-5)


def test_auto_takes_the_likeliest_that_errs_no_more(monkeypatch):
    class Candidate:
        def __init__(self, nll: float, errors: list[float]):
            self.calibration = ganns.Calibration("regression", nll=nll)
            self.errors = torch.tensor(errors)

    monkeypatch.setattr("ganns.tabular._errors", lambda candidate, _x, _y: candidate.errors)
    nothing = torch.zeros(3)

    def best(*candidates: Candidate) -> int:
        return tabular._best(candidates, nothing, nothing)

    plain, likelier = Candidate(1.0, [1.0, 2.0, 3.0]), Candidate(0.5, [1.1, 1.9, 3.0])
    wrong, unlikelier = Candidate(0.1, [1.5, 2.6, 3.5]), Candidate(1.5, [0.0, 0.0, 0.0])
    assert best(plain, likelier, wrong, unlikelier) == 1
    assert best(plain, wrong, unlikelier) == 0
    assert best(plain, Candidate(1.0, [1.0, 2.0, 3.0])) == 0


@pytest.mark.parametrize("alpha", ["auto", 0.3])
def test_what_was_chosen_is_told(table, alpha):
    model = GaNNRegressor(**{**SMALL, "alpha": alpha, "epochs": 2}).fit(*table)
    assert model.alpha_ in (estimating.ALPHAS if alpha == "auto" else [0.3])
    assert len(model.history_) == 2
    assert set(model.history_[0]) == {"base", "inner", "coefficient", "norm", "validation"}
    assert model.n_iter_ == len(model.history_[0]["base"]) == 2


def test_patience_ends_training():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.random.default_rng(1).normal(size=60)
    many = {**SMALL, "epochs": 150, "members": 1}
    assert GaNNRegressor(**many).fit(x, y).n_iter_ < 150
    assert GaNNRegressor(**many, early_stopping=False).fit(x, y).n_iter_ == 150


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_their_names(frame, table):
    x, y = table
    rows = frame({name: x[:, number] for number, name in enumerate("abc")})
    model = GaNNRegressor(**SMALL).fit(rows, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(rows), GaNNRegressor(**SMALL).fit(x, y).predict(x))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows[["b", "a", "c"]])


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_pipelines_hand_frames_through(container: str, table):
    x, y = table
    scaler = StandardScaler().set_output(transform=container)
    model = make_pipeline(scaler, GaNNRegressor(**SMALL)).fit(pd.DataFrame(x, columns=["a", "b", "c"]), y)
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]
    assert model.score(pd.DataFrame(x, columns=["a", "b", "c"]), y) > 0.3


def test_several_targets_at_once(table):
    x, y = table
    both = np.stack([y, 1000 - 10 * y, y**0], axis=1)
    model = GaNNRegressor(**SMALL).fit(x, both)
    mean, std = model.predict(x, return_std=True)
    lower, upper = model.predict_interval(x)
    assert mean.shape == std.shape == lower.shape == upper.shape == both.shape
    assert model.sample(x, draws=3).shape == (3, *both.shape)
    np.testing.assert_allclose(mean[:, 2], 1, atol=0.1)
    np.testing.assert_allclose(mean[:, 1], 1000 - 10 * mean[:, 0], atol=25)
    assert ((lower <= both) & (both <= upper))[:, 1].mean() == pytest.approx(0.9, abs=0.07)


def test_labels_may_be_text_or_truth(classifier, blobs):
    x, y = blobs
    assert list(classifier.classes_) == ["a", "b", "ç"]
    assert classifier.score(x, y) > 0.8
    probabilities = classifier.predict_proba(x)
    np.testing.assert_array_equal(classifier.classes_[probabilities.argmax(1)], classifier.predict(x))
    np.testing.assert_allclose(probabilities.sum(1), 1)
    truth = GaNNClassifier(**SMALL).fit(x, y == "a")
    assert truth.predict(x).dtype == bool


def test_clones_and_pickles(regressor, classifier, table, blobs):
    for model, x in ((regressor, table[0]), (classifier, blobs[0])):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(x), model.predict(x))
        np.testing.assert_array_equal(again.surprise(x), model.surprise(x))
        assert clone(model).get_params() == model.get_params()


def test_the_same_seed_gives_the_same_numbers(regressor, table):
    again = clone(regressor).fit(*table)
    np.testing.assert_array_equal(
        again.predict(table[0], return_std=True), regressor.predict(table[0], return_std=True)
    )


def test_grids_of_numpy_numbers_in_two_processes(table):
    grid = {"alpha": np.array([0.0, 1.0]), "epochs": np.array([3]), "members": np.array([1])}
    search = GridSearchCV(GaNNRegressor(**SMALL), grid, cv=2, n_jobs=2, error_score="raise").fit(*table)
    assert search.best_estimator_.alpha_ in (0.0, 1.0)


def test_cross_validated_predictions(blobs):
    x, y = blobs
    probabilities = cross_val_predict(GaNNClassifier(**SMALL), x, y, cv=2, method="predict_proba")
    assert probabilities.shape == (300, 3)
    assert (np.array(["a", "b", "ç"])[probabilities.argmax(1)] == y).mean() > 0.8


def test_mapie_wraps_it(regressor, table):
    x, y = table
    wrapped = SplitConformalRegressor(regressor, confidence_level=0.9, prefit=True).conformalize(x[:250], y[:250])
    _, bounds = wrapped.predict_interval(x[250:])
    inside = (bounds[:, 0, 0] <= y[250:]) & (y[250:] <= bounds[:, 1, 0])
    assert inside.mean() == pytest.approx(0.9, abs=0.07)


@pytest.mark.parametrize("variance", ["sparse", "constant", "dense", None])
@pytest.mark.parametrize("kind", [GaNNRegressor, GaNNClassifier])
def test_saving_keeps_everything(kind, variance, table, blobs, tmp_path):
    x, y = table if kind is GaNNRegressor else blobs
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(x.shape[1])])
    model = kind(**{**SMALL, "variance": variance, "epochs": 3, "device": "cpu"}).fit(frame, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is kind
    assert again.get_params() == model.get_params()
    for name in ("predict", "predict_interval", "predict_proba", "surprise"):
        if hasattr(model, name) and not (name == "surprise" and variance is None):
            np.testing.assert_array_equal(getattr(again, name)(frame), getattr(model, name)(frame))
    assert (again.alpha_, again.n_iter_, again.n_features_in_) == (model.alpha_, model.n_iter_, model.n_features_in_)
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    for before, after in zip(model.history_, again.history_, strict=True):
        for name, values in before.items():
            np.testing.assert_array_equal(after[name], values)
    np.testing.assert_array_equal(getattr(again, "classes_", None), getattr(model, "classes_", None))


@pytest.mark.parametrize("labels", [np.array([3, 7]), np.array([True, False]), np.array(["x", "yy"], dtype=object)])
def test_labels_of_any_type_are_saved(labels, blobs, tmp_path):
    x, _ = blobs
    model = GaNNClassifier(**{**SMALL, "epochs": 1, "random_state": np.random.RandomState(0)})
    model.fit(x, labels[(x[:, 0] > 0).astype(int)]).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_what_does_not_fit_together_is_refused(regressor):
    description, tensors = estimators.describe(regressor)
    missing = {name: tensor for name, tensor in tensors.items() if name != "networks.0.head.bias"}
    foreign = {**tensors, "other.thing": torch.zeros(1)}
    for wrong in ((description, missing), (description, foreign), ({**description, "ensemble": {}}, tensors)):
        with pytest.raises(ValueError, match="do not fit together"):
            estimators.restore(*wrong)


@pytest.mark.parametrize("members", [1, 2])
def test_the_exported_module_predicts_the_same(members, table, blobs):
    x, y = table
    regressor = GaNNRegressor(**{**SMALL, "members": members}).fit(x, y)
    module = regressor.to_torch(torch.float64)
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.tensor(x))[:, 0], regressor.predict(x), rtol=1e-12)
        exported = torch.export.export(module, (torch.tensor(x),), dynamic_shapes=({0: torch.export.Dim("rows")},))
        np.testing.assert_allclose(exported.module()(torch.tensor(x[:7]))[:, 0], regressor.predict(x[:7]), rtol=1e-12)
    x, y = blobs
    classifier = GaNNClassifier(**{**SMALL, "members": members, "variance": None}).fit(x, y)
    module = classifier.to_torch()
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.tensor(x).float()), classifier.predict_proba(x), atol=1e-5)


def test_the_exported_module_needs_no_ganns(regressor, table, tmp_path):
    module = regressor.to_torch()
    assert not [type(part) for part in module.modules() if type(part).__module__.startswith("ganns")]
    torch.save(module, tmp_path / "module.pt")
    code = (
        "import sys, torch\n"
        "sys.modules['ganns'] = None\n"
        f"module = torch.load({str(tmp_path / 'module.pt')!r}, weights_only=False)\n"
        "print(module(torch.tensor([[0.5, 1000050.0, 0.0005]])).item())"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert float(answer) == pytest.approx(regressor.predict(np.array([[0.5, 1000050.0, 0.0005]]))[0], rel=1e-4)


def test_the_export_is_a_copy(regressor, table):
    before = regressor.predict(table[0])
    with torch.no_grad():
        for parameter in regressor.to_torch(torch.float64).parameters():
            parameter.zero_()
    np.testing.assert_array_equal(regressor.predict(table[0]), before)


@pytest.mark.parametrize("rows", [5, 8, 17])
def test_few_rows_suffice(rows: int):
    x = np.random.default_rng(0).normal(size=(rows, 2))
    model = GaNNRegressor(**{**SMALL, "validation_fraction": 0.4}).fit(x, x[:, 0])
    assert np.isfinite(model.predict(x, return_std=True)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": "much"}, "alpha='much': give a number of 0 or above, or 'auto'"),
        ({"alpha": -1.0}, "alpha=-1.0: give a number 0 or above"),
        ({"members": 0}, "members=0: give a whole number of at least 1"),
        ({"members": 2.5}, "members=2.5: give a whole number"),
        ({"epochs": 0}, "epochs=0: give a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size=0: give a whole number of at least 1"),
        ({"batch_size": "big"}, "batch_size='big': give a whole number of at least 1, or 'auto'"),
        ({"hidden": ()}, "there must be a hidden one"),
        ({"hidden": 8}, "hidden=8: give the units of each layer, such as"),
        ({"variance": "sparce"}, "variance='sparce'"),
        ({"dropout": 1.0}, "dropout=1.0: give a probability"),
        ({"validation_fraction": 1.5}, "validation_fraction=1.5: give a share between 0 and 1"),
        ({"validation_fraction": 0.001}, "validation_fraction=0.001 leaves 500 of 500 samples for training"),
        ({"learning_rate": 1e30}, "learning_rate=1e.30: every network diverged at once; use a smaller rate"),
    ],
)
def test_wrong_parameters_are_named(table, changes: dict, message: str):
    with pytest.raises(ValueError, match=message):
        GaNNRegressor(**{**SMALL, **changes}).fit(*table)


def test_one_class_is_too_few(blobs):
    with pytest.raises(ValueError, match="y has one class only, 'a'; there must be two or more"):
        GaNNClassifier(**SMALL).fit(blobs[0], ["a"] * 300)
