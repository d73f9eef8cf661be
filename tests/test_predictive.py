import math

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import ganns
from ganns import predictive

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def regression():
    net, x = ganns.GaussianMLP(3, 2, hidden=(8,)), torch.randn(7, 3)
    calibration = ganns.Calibration("regression", gamma=0.4, output_variance=(0.5, 0.1), draws=30, seed=2)
    return ganns.predict(net, x, calibration), ganns.sample(net, x, draws=30, gamma=0.4, seed=2)


def test_regression_splits_its_variance(regression):
    dist, draws = regression
    assert_close(dist.mean, draws.mean(0))
    assert_close(dist.activity_variance, draws.var(0))
    assert_close(dist.variance, draws.var(0) + torch.tensor([0.5, 0.1]))


@given(st.floats(0.01, 0.99))
def test_interval_holds_its_share(coverage):
    dist = predictive.Regression(torch.tensor([[1.0]]), torch.tensor([[3.0]]), torch.tensor([[1.0]]))
    lower, upper = dist.interval(coverage)
    oracle = scipy.stats.norm(1, 2)
    assert_close(oracle.cdf(upper.item()) - oracle.cdf(lower.item()), coverage, rtol=1e-9, atol=1e-12)
    assert_close(oracle.cdf(lower.item()), (1 - coverage) / 2, rtol=1e-9, atol=1e-12)


def test_regression_nll_and_entropy_are_those_of_a_gaussian(regression):
    dist, _ = regression
    y = torch.randn(7, 2)
    oracle = torch.distributions.Normal(dist.mean, dist.variance.sqrt())
    assert_close(dist.nll(y), -oracle.log_prob(y).mean())
    assert_close(dist.entropy, oracle.entropy())


def test_classification_splits_its_entropy():
    net, x = ganns.GaussianMLP(3, 4, hidden=(8,)), torch.randn(7, 3)
    calibration = ganns.Calibration("classification", gamma=2.0, temperature=0.7, draws=30)
    dist = ganns.predict(net, x, calibration)
    each = torch.distributions.Categorical(logits=ganns.sample(net, x, draws=30, gamma=2.0) / 0.7)
    mixed = torch.distributions.Categorical(probs=each.probs.mean(0))
    assert_close(dist.probabilities, mixed.probs)
    assert_close(dist.entropy, mixed.entropy())
    assert_close(dist.output_entropy, each.entropy().mean(0))
    assert_close(dist.activity_entropy + dist.output_entropy, dist.entropy)
    assert dist.activity_entropy.min() >= 0
    y = torch.randint(0, 4, (7,))
    assert_close(dist.nll(y), -mixed.log_prob(y).mean())
    assert torch.equal(dist.classes, mixed.probs.argmax(1))


def test_rows_are_predicted_in_parts(monkeypatch):
    net, x, calibration = ganns.GaussianMLP(3, 2, hidden=(8,)), torch.randn(7, 3), ganns.Calibration("regression")
    whole = ganns.predict(net, x, calibration)
    monkeypatch.setattr(predictive, "_ROWS_AT_A_TIME", 3)
    assert_close(ganns.predict(net, x, calibration).variance, whole.variance)


def test_a_column_of_targets_may_be_flat():
    dist = predictive.Regression(torch.zeros(3, 1), torch.ones(3, 1), torch.zeros(3, 1))
    assert_close(dist.nll(torch.zeros(3)), torch.tensor(0.5 * math.log(2 * math.pi)))
    with pytest.raises(ValueError, match=r"y has shape \(1, 3\), but the predictions have \(3, 1\)"):
        dist.nll(torch.zeros(1, 3))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90, float("nan")])
def test_coverage_is_a_share(coverage):
    dist = predictive.Regression(torch.zeros(3, 1), torch.ones(3, 1), torch.zeros(3, 1))
    with pytest.raises(ValueError, match=f"coverage={coverage}"):
        dist.interval(coverage)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "rank"}, "task='rank' is unknown; choose 'regression' or 'classification'"),
        ({"task": "classification", "temperature": 0.0}, "temperature=0.0"),
        ({"task": "regression", "output_variance": (-1.0,)}, r"output_variance=\(-1.0,\)"),
        ({"task": "regression", "output_scale": (-1.0,)}, r"output_scale=\(-1.0,\)"),
        ({"task": "regression", "head": "median"}, "head='median' is unknown"),
    ],
)
def test_wrong_calibrations_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ganns.Calibration(**arguments)


def test_outputs_must_be_two_dimensional():
    net = ganns.GaussianMLP(3, 2, hidden=(4,))
    with pytest.raises(ValueError, match=r"outputs have shape \(2, 5, 2\)"):
        ganns.predict(net, torch.zeros(2, 5, 3), ganns.Calibration("regression"))


def test_rescaled_predictions_are_those_of_rescaled_targets():
    prediction = ganns.Regression(torch.randn(9, 2), torch.rand(9, 2), torch.rand(9, 2))
    scale, shift, y = torch.tensor([2.0, 0.1]), torch.tensor([-3.0, 7.0]), torch.randn(9, 2)
    rescaled = prediction.rescaled(scale, shift)
    assert_close(rescaled.nll(y * scale + shift), prediction.nll(y) + scale.log().mean())
    assert_close(rescaled.interval(0.8)[1], prediction.interval(0.8)[1] * scale + shift)
