import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ganns
from ganns.calibration import Calibration, _minimise, fit_draws

pytestmark = pytest.mark.usefixtures("double")


def regression_network():
    """A network that computes 2x and x² exactly enough, with priors that know nothing."""
    net = ganns.GaussianMLP(1, 2, hidden=(32, 16))
    x = torch.linspace(-2, 2, 256).unsqueeze(1)
    y = torch.cat([2 * x, x**2], 1)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    return net, x, y


@pytest.fixture(scope="module")
def regression():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    try:
        return regression_network()
    finally:
        torch.set_default_dtype(torch.float32)


def test_output_noise_is_found(regression):
    net, x, y = regression
    noise = torch.tensor([0.3, 1.0])
    calibration = ganns.calibrate(net, x, y + noise * torch.randn_like(y), "regression")
    dist = ganns.predict(net, x, calibration)
    assert_close(dist.variance.mean(0).sqrt(), noise, rtol=0.15, atol=0)
    assert calibration.nll < calibration.nll_before
    fresh = y + noise * torch.randn_like(y)
    lower, upper = dist.interval(0.9)
    assert 0.86 < ganns.metrics.interval_coverage(lower, upper, fresh) < 0.94


def test_gamma_is_found_where_the_noise_is_really_there(regression):
    net, x, _ = regression
    rows = x.repeat(4, 1)
    # One other draw of the network for every row: exactly the noise that gamma = 0.3 describes.
    draws = ganns.sample(net, rows, draws=len(rows), gamma=0.3, seed=9)
    y = draws[torch.arange(len(rows)), torch.arange(len(rows))]
    calibration = ganns.calibrate(net, rows, y, "regression", draws=200)
    best = ganns.predict(net, rows, ganns.Calibration("regression", gamma=0.3, draws=200)).nll(y)
    assert calibration.nll < best + 0.02
    assert 0.15 < max(calibration.gamma) < 0.6


def test_the_reported_nll_is_that_of_the_predictions(regression):
    net, x, y = regression
    y = y + torch.randn_like(y)
    calibration = ganns.calibrate(net, x, y, "regression", draws=20, seed=4)
    assert_close(ganns.predict(net, x, calibration).nll(y).item(), calibration.nll, rtol=1e-6, atol=0)
    raw = ganns.Calibration("regression", draws=20, seed=4)
    assert_close(ganns.predict(net, x, raw).nll(y).item(), calibration.nll_before, rtol=1e-6, atol=0)


def test_rows_without_a_mistake_do_not_make_it_certain():
    """Platt's smoothing: of N rows, all right, a temperature that leaves about 1/(N + 2) to the other classes."""
    y = torch.arange(3).repeat(10)
    logits = 4.0 * nn.functional.one_hot(y, 3).double()
    calibration = fit_draws(Calibration("classification"), logits.unsqueeze(0), y)
    wrong = 1 - (logits / calibration.temperature).softmax(-1).amax(-1)
    assert_close(wrong, torch.full_like(wrong, 2 / 3 / 32), rtol=1e-4, atol=0.0)
    assert calibration.nll == pytest.approx(-math.log(1 - 2 / 3 / 32), rel=1e-6)


def test_temperature_is_found():
    net, x = ganns.GaussianMLP(2, 3, hidden=(16,)), torch.randn(2000, 2)
    net.head.weight.data *= 40
    logits = net(x).detach()
    y = torch.distributions.Categorical(logits=logits / 4).sample()
    calibration = ganns.calibrate(net, x, y, "classification", draws=16)
    right = torch.distributions.Categorical(logits=logits / 4).log_prob(y).mean()
    assert calibration.nll < -right + 0.01
    assert calibration.nll < calibration.nll_before - 0.05
    assert_close(ganns.predict(net, x, calibration).nll(y).item(), calibration.nll, rtol=1e-5, atol=0)
    quiet = replace(calibration, gamma=0.0, temperature=4.0)
    assert ganns.predict(net, x, quiet).nll(y) > calibration.nll - 0.01


class TwiceAsSure(nn.Module):
    """Predicts the right mean and a quarter of the right variance, which differs between rows."""

    def __init__(self):
        super().__init__()
        self.prior = ganns.ActivityPrior(2)

    def forward(self, x):
        variance = (0.5 * x[:, :1]).exp() / 4
        return self.prior(torch.cat([3 * x[:, :1], variance.expm1().log()], 1))


def test_the_variance_that_a_head_predicts_is_scaled():
    x = torch.randn(4000, 1)
    y = 3 * x + (0.25 * x).exp() * torch.randn_like(x)
    calibration = ganns.calibrate(TwiceAsSure(), x, y, "regression", head="variance", draws=8)
    assert max(calibration.gamma) < 0.2
    assert_close(calibration.output_scale[0], 4.0, rtol=0.1, atol=0)
    dist = ganns.predict(TwiceAsSure(), x, calibration)
    assert_close(dist.nll(y).item(), calibration.nll, rtol=1e-2, atol=0)
    assert_close(dist.output_variance, (0.5 * x).exp(), rtol=0.3, atol=0)


def test_a_single_draw_can_be_calibrated():
    mean, y = torch.randn(1, 500, 2), torch.randn(500, 2)
    found = fit_draws(ganns.Calibration("regression"), mean, y)
    assert_close(torch.tensor(found.output_variance), (y - mean[0]).square().mean(0), rtol=1e-4, atol=0)


def test_a_network_with_useless_noise_gets_gamma_zero(regression):
    net, x, y = regression
    calibration = ganns.calibrate(net, x, y + 0.01 * torch.randn_like(y), "regression")
    assert max(calibration.gamma) < 0.1


def test_rows_are_limited_and_the_result_repeats(regression):
    net, x, y = regression
    first, second = (ganns.calibrate(net, x, y, "regression", draws=8, rows=50) for _ in range(2))
    assert first == second


def test_golden_section_finds_each_minimum():
    centre = torch.tensor([0.3, -2.0, 5.0])
    found = _minimise(lambda x: (x - centre) ** 2, torch.full((3,), -10.0), torch.full((3,), 10.0))
    assert_close(found, centre, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("y", "task", "options", "message"),
    [
        (torch.zeros(4, 2), "ranking", {}, "task='ranking' is unknown"),
        (torch.zeros(3, 2), "regression", {}, "y has 3 rows, but x has 4"),
        (torch.zeros(4), "regression", {}, r"y has shape \(4,\), but the predictions have \(4, 2\)"),
        (torch.full((4, 2), float("nan")), "regression", {}, "y holds 8 values that are NaN"),
        (torch.tensor([0, 1, 2, 0]), "classification", {}, "labels from 0 to 2; number the 2 classes 0 to 1"),
        (torch.tensor([0, 1, -1, 0]), "classification", {}, "labels from -1"),
        (torch.zeros(4, 2), "regression", {"draws": 2}, "draws=2"),
    ],
)
def test_wrong_input_is_named(y, task, options, message):
    with pytest.raises(ValueError, match=message):
        ganns.calibrate(ganns.GaussianMLP(1, 2, hidden=(4,)), torch.zeros(4, 1), y, task, **options)
