"""The competitors of `ganns compare`: each predicts in the table's units, and is calibrated on other rows."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ganns.calibration import fit_draws
from ganns.recipes import Member, Recipe
from ganns.table.rivals import HEADS, METHODS, of_boosting, of_networks
from ganns.training import Fleet, fit_fleet

SETTING = {"learning_rate": 0.1, "max_leaf_nodes": 15}
RANDOM = np.random.default_rng(0)
X = torch.from_numpy(RANDOM.normal(size=(400, 3)))
Y = (1000 + 100 * X[:, 0] + 10 * torch.from_numpy(RANDOM.normal(size=400))).unsqueeze(1)
LABELS = (X[:, 0] > 0.3).long() + (X[:, 1] > 0.3).long()
TRAIN, STOP, CHOOSE, TEST = (slice(start, start + 100) for start in range(0, 400, 100))


def fleet(task: str, variance: str | None, networks: int) -> Fleet:
    recipe = Recipe(
        task=task,
        head=HEADS[task],
        optimizer="adamw",
        learning_rate=0.01,
        epochs=5,
        batch_size=20,
        standardise_targets=task == "regression",
        dropout=0.2,
    )
    members = [Member(seed=seed, split=0, alpha=0.1 if variance else 0.0) for seed in range(networks)]
    y = Y if task == "regression" else LABELS
    return fit_fleet(X, y, recipe, members, variance=variance, hidden=(8, 8), device="cpu", progress=False)


def test_all_have_as_many_settings_to_choose_from():
    assert {len(method.settings) for method in METHODS} == {4}
    assert [method.key for method in METHODS if method.gann] == ["sparse", "dense"]
    assert len({method.key for method in METHODS}) == 6


@pytest.mark.parametrize("variance", [None, "sparse", "dense"])
def test_networks_predict_the_tables_units(variance):
    networks = fleet("regression", variance, 2)
    candidate = of_networks(networks, dropout=False).calibrated("regression", X[CHOOSE], Y[CHOOSE])
    found = candidate.predict(X[TEST])
    scaling = networks.trainings[0].scaling
    rows = scaling.features(X[TEST])
    with torch.no_grad():
        means = torch.stack([network(rows)[:, :1] for network in networks]).mean(0)
    expected = means * scaling.target_scale + scaling.target_mean
    torch.testing.assert_close(found.mean, expected.double(), rtol=0, atol=0.05)
    assert 900 < found.mean.mean() < 1100
    assert 1 < found.variance.sqrt().mean() < 200


@pytest.mark.parametrize("variance", [None, "sparse"])
def test_networks_for_classes_give_probabilities(variance):
    candidate = of_networks(fleet("classification", variance, 2), dropout=False)
    found = candidate.calibrated("classification", X[CHOOSE], LABELS[CHOOSE]).predict(X[TEST])
    assert found.probabilities.shape == (100, 3)
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(100, dtype=torch.float64))
    assert found.nll(LABELS[TEST]) < math.log(3)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_dropout_stays_on_in_prediction(task):
    candidate = of_networks(fleet(task, None, 1), dropout=True)
    y = Y if task == "regression" else LABELS
    found = candidate.calibrated(task, X[CHOOSE], y[CHOOSE]).predict(X[TEST])
    if task == "regression":
        assert (found.activity_variance > 0).all()
    else:
        assert (found.activity_entropy > 0).all()
    assert torch.isfinite(found.nll(y[TEST]))


def test_calibration_takes_what_is_likeliest_on_rows_held_back():
    candidate = of_networks(fleet("regression", "sparse", 1), dropout=False)
    best = candidate.calibrated("regression", X[CHOOSE], Y[CHOOSE])
    tried = []
    for gamma in (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0):
        calibration = replace(best.calibration, gamma=(gamma,) * 2)
        tried.append(fit_draws(calibration, candidate.draw(X[CHOOSE], calibration), candidate.scaled(Y[CHOOSE])))
    assert best.calibration == min(tried, key=lambda each: each.nll)
    scale = candidate.scaled(Y[CHOOSE] + 1) - candidate.scaled(Y[CHOOSE])
    assert best.nll(X[CHOOSE], Y[CHOOSE]) == pytest.approx(best.calibration.nll - scale[0].log().item(), abs=1e-4)


def test_boosting_has_the_trees_that_suit_the_rows_to_stop_by():
    candidate = of_boosting("regression", SETTING, 0, (X[TRAIN], Y[TRAIN]), (X[STOP], Y[STOP]), 0)
    model = HistGradientBoostingRegressor(max_iter=300, early_stopping=False, random_state=0, **SETTING)
    model.fit(X[TRAIN].numpy(), Y[TRAIN, 0].numpy())
    errors = [((answer - Y[STOP, 0].numpy()) ** 2).mean() for answer in model.staged_predict(X[STOP].numpy())]
    best = int(np.argmin(errors))
    assert 0 < best < 299
    expected = list(model.staged_predict(X[TEST].numpy()))[best]
    found = candidate.calibrated("regression", X[CHOOSE], Y[CHOOSE])
    np.testing.assert_allclose(found.predict(X[TEST]).mean[:, 0], expected)
    residual = Y[CHOOSE] - found.predict(X[CHOOSE]).mean
    torch.testing.assert_close(found.predict(X[TEST]).variance[0], residual.square().mean(0), rtol=1e-4, atol=0)


def test_boosting_for_classes_knows_none_that_it_has_not_seen():
    known = LABELS < 2
    train = X[TRAIN][known[TRAIN]], LABELS[TRAIN][known[TRAIN]]
    candidate = of_boosting("classification", SETTING, 0, train, (X[STOP], LABELS[STOP]), 3)
    found = candidate.calibrated("classification", X[CHOOSE], LABELS[CHOOSE]).predict(X[TEST])
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(100, dtype=torch.float64))
    assert (found.probabilities[:, 2] > 0).all()
    assert not (found.classes == 2).any()
    model = HistGradientBoostingClassifier(max_iter=1, early_stopping=False, random_state=0, **SETTING)
    agree = model.fit(*(part.numpy() for part in train)).predict(X[TEST].numpy()) == found.classes.numpy()
    assert agree.mean() > 0.8
