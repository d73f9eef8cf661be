"""Predictions of trained networks and their scores, beside other people's implementations."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scoringrules
import torch
from scipy import stats
from sklearn import metrics as theirs
from torch import nn

import ganns
from ganns.feeding import Scaling
from ganns.predictive import Calibration, Classification, Regression
from ganns.study import diagnostics, evaluation
from ganns.study.boosting import Boosting
from ganns.study.evaluation import Networks, evaluate


def _scaling(features, targets=0, shift=3.0, scale=10.0):
    return Scaling(
        torch.zeros(features), torch.ones(features), torch.full((targets,), shift), torch.full((targets,), scale)
    )


def _table(rows=200):
    x = torch.randn(rows, 3)
    return x, (3 + 10 * (x.sum(1, keepdim=True) + 0.3 * torch.randn(rows, 1)))


def _classes(rows=200):
    x = torch.randn(rows, 3)
    return x, (x + 0.5 * torch.randn(rows, 3)).argmax(1)


class _Sum(nn.Module):
    """Knows the answer of `_table`, and if asked says that it is off by about 0.5."""

    def __init__(self, predicts_variance=False, shift=0.0):
        super().__init__()
        self.predicts_variance, self.shift = predicts_variance, shift

    def forward(self, x):
        mean = x.sum(1, keepdim=True) + self.shift
        raw = torch.full_like(mean, math.log(math.expm1(0.25)))
        return torch.cat([mean, raw], 1) if self.predicts_variance else mean


def test_a_plain_network_has_errors_at_once_and_an_uncertainty_once_calibrated():
    (x, y), test = _table(), _table(500)
    raw, calibrated = evaluate(Networks([_Sum()], _scaling(3, 1), "regression", priors=False), (x, y), test).scores()
    assert raw.keys() == {"mae", "rmse"}
    assert raw["mae"] == pytest.approx(theirs.mean_absolute_error(test[1], 3 + 10 * test[0].sum(1)), rel=1e-5)
    assert calibrated["rmse"] == pytest.approx(3.0, rel=0.1)
    assert calibrated["coverage"] == pytest.approx(0.9, abs=0.04)
    assert calibrated["width"] == pytest.approx(2 * 1.645 * 3, rel=0.15)


def test_a_variance_head_predicts_in_the_targets_units_and_is_scaled():
    test = _table(500)
    predictor = Networks([_Sum(predicts_variance=True)], _scaling(3, 1), "regression", "variance", priors=False)
    found = evaluate(predictor, _table(500), test)
    mean, sd = 3 + 10 * test[0].sum(1), 5.0
    raw, calibrated = found.scores()
    assert raw["nll"] == pytest.approx(-stats.norm.logpdf(test[1][:, 0], mean, sd).mean(), rel=1e-4)
    assert raw["crps"] == pytest.approx(
        scoringrules.crps_normal(test[1][:, 0].numpy(), mean.numpy(), sd).mean(), rel=1e-4
    )
    assert raw["coverage"] > 0.97
    assert calibrated["coverage"] == pytest.approx(0.9, abs=0.04)
    assert calibrated["nll"] < raw["nll"]


def test_an_ensemble_is_the_mixture_of_its_members():
    (x, y), test = _table(), _table(50)
    members = [_Sum(shift=shift) for shift in (-0.3, 0.0, 0.6)]
    found = evaluate(Networks(members, _scaling(3, 1), "regression", priors=False), (x, y), test)
    assert isinstance(found.raw, Regression)
    torch.testing.assert_close(found.raw.mean, 3 + 10 * (test[0].sum(1, keepdim=True) + 0.1))
    expected = torch.full((50, 1), 100 * float(np.var([-0.3, 0.0, 0.6], ddof=1)))
    torch.testing.assert_close(found.raw.variance, expected, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found.point, found.raw.mean)


def _predictor(task, *, dropout=0.0, count=1, head="mean"):
    outputs = 3 if task == "classification" else 1
    networks = [ganns.GaussianMLP(3, outputs, (16, 8), dropout=dropout).eval() for _ in range(count)]
    targets = 0 if task == "classification" else 1
    return Networks(networks, _scaling(3, targets), task, head, priors=True, dropout=dropout > 0)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("count", [1, 3])
def test_gaussian_networks_are_raw_at_gamma_one(dropout, count):
    predictor, test = _predictor("regression", dropout=dropout, count=count), _table(40)
    found = evaluate(predictor, _table(60), test)
    each = math.ceil(evaluation.DRAWS / count)
    draws = torch.cat(
        [
            ganns.sample(net, test[0], each, 1.0, seed, dropout=dropout > 0)
            for seed, net in enumerate(predictor.networks)
        ]
    )
    assert isinstance(found.raw, Regression)
    torch.testing.assert_close(found.raw.mean, 3 + 10 * draws.mean(0))
    torch.testing.assert_close(found.raw.variance, 100 * draws.var(0))


def test_the_best_guess_has_no_noise():
    predictor, (x, y) = _predictor("regression", dropout=0.5), _table(40)
    found = evaluate(predictor, (x, y), (x, y))
    torch.testing.assert_close(found.point, 3 + 10 * predictor.networks[0](x).detach())
    assert found.scores()[0]["mae"] == pytest.approx(float((found.point - y).abs().mean()), rel=1e-5)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_calibration_finds_the_likeliest_of_what_it_tries(task):
    predictor, (x, y) = _predictor(task), (_table if task == "regression" else _classes)()
    with torch.no_grad():
        for layer in predictor.networks[0].layers:
            layer.prior.bias.fill_(20.0)  # so that γ matters
    found = evaluation.calibrate(predictor, x, y)
    raw = Calibration(task, draws=evaluation.DRAWS)
    y = predictor.scaled(y)
    for gamma in evaluation.GAMMAS:
        other = ganns.calibration.fit_draws(replace(raw, gamma=gamma), predictor.draws(x, gamma), y)
        assert found.nll < other.nll + 0.02  # the search is by half the draws


def test_classification_scores_are_those_of_others():
    p = torch.tensor(np.random.default_rng(0).dirichlet(np.ones(4), 300))
    y = torch.from_numpy(np.random.default_rng(1).integers(0, 4, 300))
    found = evaluation.score(p, Classification(p, torch.zeros(300)), y)
    entropy, wrong = stats.entropy(p, axis=1), p.argmax(1) != y
    assert found["accuracy"] == pytest.approx(theirs.accuracy_score(y, p.argmax(1)))
    assert found["nll"] == pytest.approx(theirs.log_loss(y, p))
    assert found["auroc"] == pytest.approx(theirs.roc_auc_score(wrong, entropy))
    assert found.keys() == set(evaluation.SCORES["classification"])


def test_without_errors_there_is_no_error_detection():
    p = torch.eye(3)
    assert "auroc" not in evaluation.score(p, Classification(p, torch.zeros(3)), torch.arange(3))


def test_numbers_that_are_not_finite_give_no_scores():
    y, bad = torch.zeros(3, 1), torch.full((3, 1), torch.nan)
    assert all(math.isnan(v) for v in evaluation.score(bad, None, y).values())
    broken = Regression(y, bad, y)
    assert evaluation.score(y, broken, y).keys() == set(evaluation.SCORES["regression"])
    assert math.isnan(evaluation.score(y, broken, y)["mae"])


def test_a_network_whose_noise_explodes_has_errors_but_no_other_scores():
    predictor, (x, y) = _predictor("regression"), _table()
    with torch.no_grad():
        predictor.networks[0].layers[0].prior.bias.fill_(torch.inf)
    found = evaluate(predictor, (x, y), (x, y))
    assert found.point.isfinite().all()
    assert all(math.isnan(value) for scores in found.scores() for value in scores.values())


def test_boosting_predicts_as_scikit_learn_does_and_has_an_interval_of_one_width():
    (x, y), test = _table(300), _table(200)
    model = Boosting("regression", 0, x, y, 0)
    found = evaluate(model, _table(100), test)
    raw, calibrated = found.scores()
    assert raw["mae"] == pytest.approx(theirs.mean_absolute_error(test[1], model.model.predict(test[0].numpy())))
    assert "nll" not in raw
    assert found.calibrated.variance.unique().numel() == 1
    assert calibrated["coverage"] == pytest.approx(0.9, abs=0.08)


def test_boosting_knows_classes_that_no_training_row_had():
    x, y = _classes()
    model = Boosting("classification", 0, x[y != 1], y[y != 1], 4)
    p = model.point(x)
    assert p.shape == (200, 4)
    assert p[:, [1, 3]].max() < 1e-6
    torch.testing.assert_close(p.sum(1), torch.ones(200, dtype=p.dtype))
    raw, calibrated = evaluate(model, (x, y), (x, y)).scores()
    assert calibrated["nll"] < raw["nll"]


def test_coverage_and_error_of_a_perfect_gaussian():
    sd = torch.linspace(0.5, 2, 4000).unsqueeze(1)
    y = sd * torch.randn(4000, 1)
    perfect = Regression(torch.zeros_like(y), sd**2, torch.zeros_like(y))
    for row in diagnostics.coverage("raw", perfect, y):
        assert row["observed"] == pytest.approx(row["nominal"], abs=0.03)
    groups = diagnostics.error(perfect, y)
    assert [group["rows"] for group in groups] == [400] * 10
    for group in groups:
        assert group["error"] == pytest.approx(math.sqrt(2 / math.pi) * group["uncertainty"], rel=0.15)


def test_reliability_adds_up_to_the_calibration_error():
    p = torch.tensor(np.random.default_rng(0).dirichlet(np.ones(3), 500))
    y = torch.from_numpy(np.random.default_rng(1).integers(0, 3, 500))
    rows = diagnostics.reliability("raw", Classification(p, torch.zeros(500)), y)
    assert sum(row["rows"] for row in rows) == 500
    gap = sum(row["rows"] * abs(row["confidence"] - row["accuracy"]) for row in rows) / 500
    assert gap == pytest.approx(float(ganns.metrics.ece(p, y)))


def test_strange_rows_are_told_apart():
    net, train = ganns.GaussianMLP(3, 2, (16, 8)), torch.randn(400, 3)
    ganns.fit_priors(net, train)
    found = diagnostics.surprises(net.eval(), _scaling(3), train, torch.randn(300, 3))
    names = [row["rows"] for row in found["detection"]]
    assert names == ["shuffled", "noise"]
    for row in found["detection"]:
        assert row["typicality"] == pytest.approx(0.5, abs=0.12)  # for independent features neither is strange
    shares = [row["share"] for row in found["surprise"] if row["rows"] == "test"]
    assert len(shares) == 20
    assert sum(shares) == pytest.approx(1)
    assert max(shares) < 0.15


def test_pictures_are_shifted_in_more_ways_and_stay_pictures():
    test = torch.randint(256, (10, 4, 4, 3), dtype=torch.uint8)
    found = diagnostics.shifted(test, test)
    assert found.keys() == {"shuffled", "noise", "inverted", "upside down"}
    assert all(rows.shape == test.shape and rows.dtype == torch.uint8 for rows in found.values())
    assert torch.equal(found["upside down"][:, 0], test[:, 3])
    assert torch.equal(found["shuffled"].flatten(1).sort(0).values, test.flatten(1).sort(0).values)
    assert not torch.equal(found["shuffled"], test)


def test_priors_are_shown_layer_by_layer():
    net, x = ganns.GaussianMLP(3, 1, (16, 8), variance="constant").eval(), torch.randn(20, 3)
    with torch.no_grad():
        net.layers[1].prior.mean.copy_(torch.arange(8.0))
    rows = diagnostics.priors(net, x)
    second = {row["quantile"]: row for row in rows if row["layer"] == 2}
    assert second[0.5]["mean"] == 3.5
    assert second[1.0]["mean"] == 7.0
    variance = net.layers[1].prior.floor + math.log(2)
    assert second[0.5]["sd"] == pytest.approx(math.sqrt(variance), rel=0.2)
