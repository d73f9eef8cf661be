import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ganns

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("variance", ["constant", "sparse", "dense"])
def test_exact_where_noise_enters_after_the_last_hidden_layer(variance):
    net, x = ganns.GaussianMLP(3, 2, hidden=(8, 5), variance=variance), torch.randn(6, 3)
    mean, spread = ganns.moments(net, x, gamma=[0, 0.7])
    state = ganns.trace(net, x).states[-1]
    assert_close(mean, net(x).detach())
    expected = (0.49 * state.variance.expand_as(state.activity)) @ net.head.weight.square().T
    assert_close(spread, expected.detach())


@pytest.mark.parametrize("variance", ["constant", "sparse", "dense"])
def test_close_to_many_draws_where_noise_is_small(variance):
    net, x = ganns.GaussianMLP(3, 2, hidden=(64, 64), variance=variance), torch.randn(6, 3)
    draws = ganns.sample(net, x, draws=20_000, gamma=0.1)
    mean, spread = ganns.moments(net, x, gamma=0.1)
    assert_close(mean, draws.mean(0), atol=0.01, rtol=0)
    assert_close(spread, draws.var(0), atol=0, rtol=0.15)


def test_a_rectified_gaussian_has_the_moments_of_its_draws():
    plain = nn.Sequential(nn.Linear(1, 1), nn.Identity(), nn.ReLU())
    net = ganns.insert(plain, "constant", example=torch.zeros(1, 1), where="1")
    x = torch.linspace(-3, 3, 7).unsqueeze(1)
    draws = ganns.sample(net, x, draws=200_000)
    mean, spread = ganns.moments(net, x)
    assert_close(mean, draws.mean(0), atol=0.01, rtol=0)
    assert_close(spread, draws.var(0), atol=0.01, rtol=0.02)


def test_inserted_priors_are_followed_like_the_paper_s():
    ours = ganns.GaussianMLP(3, 2, hidden=(8, 5), variance="dense")
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2))
    net = ganns.insert(net, "dense", example=torch.zeros(1, 3))
    for number, layer in zip((0, 3), ours.layers, strict=True):
        net[number].load_state_dict(layer.linear.state_dict())
        net[number + 1].activity_prior.load_state_dict(layer.prior.state_dict())
    net[5].load_state_dict(ours.head.state_dict())
    x = torch.randn(6, 3)
    assert_close(ganns.moments(net, x, 0.3), ganns.moments(ours, x, 0.3))


def test_batch_norm_and_flatten_are_followed():
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Identity(), nn.Linear(16, 2))
    for _ in range(5):
        net(torch.randn(32, 2, 3))
    torch.nn.init.normal_(net[2].weight)
    net = ganns.insert(net.eval(), example=torch.randn(2, 2, 3), where="1")
    x = torch.randn(5, 2, 3)
    draws = ganns.sample(net, x, draws=40_000)
    mean, spread = ganns.moments(net, x)
    assert_close(mean, draws.mean(0), atol=0.05, rtol=0)
    assert_close(spread, draws.var(0), atol=0, rtol=0.05)


def test_gamma_zero_has_no_variance():
    net, x = ganns.GaussianMLP(3, 2, hidden=(8,)), torch.randn(4, 3)
    mean, spread = ganns.moments(net, x, gamma=0.0)
    assert_close(mean, net(x).detach())
    assert torch.equal(spread, torch.zeros(4, 2))


def test_networks_it_cannot_follow_are_named():
    net = ganns.insert(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), example=torch.zeros(1, 3))
    with pytest.raises(TypeError, match=r"cannot follow Tanh.*Use ganns.sample"):
        ganns.moments(net, torch.zeros(2, 3))


def test_wrong_width_and_gamma_are_named():
    net = ganns.GaussianMLP(3, 2, hidden=(8,))
    with pytest.raises(ValueError, match="x has 4 features"):
        ganns.moments(net, torch.zeros(2, 4))
    with pytest.raises(ValueError, match="gamma=-1"):
        ganns.moments(net, torch.zeros(2, 3), gamma=-1.0)
