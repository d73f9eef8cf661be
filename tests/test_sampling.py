import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close

import ganns

pytestmark = pytest.mark.usefixtures("double")


def network(variance="sparse", hidden=(8, 6, 4)):
    net = ganns.GaussianMLP(3, 2, hidden=hidden, variance=variance)
    for name, parameter in net.named_parameters():
        if "prior" in name:
            parameter.data.add_(0.3 * torch.randn_like(parameter))
    return net


def by_hand(net, x, draws, gamma, seed):
    """Eq. 13 in numpy, one draw and one layer after another, with the noise named by (seed, draw, layer)."""
    outputs = []
    for draw in range(draws):
        a, sigma = x.numpy(), None
        for number, layer in enumerate(net.layers):
            p = {name: value.detach().numpy() for name, value in layer.named_parameters()}
            fed, a = a, np.maximum(a @ p["linear.weight"].T + p["linear.bias"], 0)
            drive = p["prior.bias"] * np.ones_like(a)
            if layer.prior.variance == "sparse":
                drive = drive + a * p["prior.weight"]
            if layer.prior.variance == "dense":
                drive = drive + fed @ p["prior.weight"].T
                if sigma is not None:
                    drive = drive + sigma @ p["prior.sigma_weight"].T
            sigma = np.sqrt(np.log1p(np.exp(drive)) + 0.5)
            a = a + gamma[number] * sigma * np.random.default_rng((seed, draw, number)).standard_normal(a.shape[1])
        outputs.append(a @ net.head.weight.detach().numpy().T + net.head.bias.detach().numpy())
    return np.stack(outputs)


@pytest.mark.parametrize("variance", ["constant", "sparse", "dense"])
def test_noise_travels_through_the_layers_as_in_the_paper(variance):
    net, x = network(variance), torch.randn(5, 3)
    ours = ganns.sample(net, x, draws=4, gamma=[0.5, 1.0, 0.2], seed=7)
    assert_allclose(ours, by_hand(net, x, 4, [0.5, 1.0, 0.2], 7), rtol=1e-10)


@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**40), st.integers(1, 15))
def test_draws_depend_on_nothing_but_their_name(draws, rows, seed, chunk):
    torch.manual_seed(0)
    net, x = network(), torch.randn(12, 3)
    whole = ganns.sample(net, x, draws=12, gamma=0.7, seed=seed)
    part = ganns.sample(net, x[:rows], draws=draws, gamma=0.7, seed=seed, chunk=chunk)
    assert_close(part, whole[:draws, :rows], rtol=1e-10, atol=1e-12)


def test_seeds_name_other_functions():
    net, x = network(), torch.randn(5, 3)
    assert not torch.allclose(ganns.sample(net, x, draws=1, seed=0), ganns.sample(net, x, draws=1, seed=1))


def test_gamma_zero_is_the_network_itself():
    net, x = network(), torch.randn(5, 3)
    assert_close(ganns.sample(net, x, draws=3, gamma=0.0), net(x).detach().expand(3, 5, 2))


@pytest.mark.parametrize("family", ["gaussian", "laplace", ganns.StudentT(df=8)])
def test_moments_of_the_draws_are_those_of_the_head(family):
    net, x = ganns.GaussianMLP(3, 1, hidden=(6,), family=family), torch.randn(4, 3)
    draws = ganns.sample(net, x, draws=40_000)
    mean, variance = ganns.moments(net, x)
    assert_close(draws.mean(0), mean, atol=0.02, rtol=0)
    assert_close(draws.var(0), variance, atol=0, rtol=0.06)


def test_mode_and_gradients_are_as_before():
    net = network().train()
    net.layers[1].eval()
    assert not ganns.sample(net, torch.randn(2, 3), draws=2).requires_grad
    assert net.training
    assert not net.layers[1].training


def test_dropout_is_off():
    net = ganns.GaussianMLP(3, 1, hidden=(8,), dropout=0.9).train()
    x = torch.randn(2, 3)
    assert torch.equal(ganns.sample(net, x, draws=3), ganns.sample(net, x, draws=3))


class Bypassed(nn.Module):
    """The prior's noise meets an undisturbed path."""

    def __init__(self):
        super().__init__()
        self.linear, self.act, self.head = nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x + self.act(self.linear(x)))


def test_residual_paths_are_followed():
    net, x = ganns.insert(Bypassed(), example=torch.zeros(1, 3)), torch.randn(4, 3)
    ours = ganns.sample(net, x, draws=3, seed=2)
    activity = net.act(net.linear(x))
    sigma = ganns.trace(net, x).states[0].variance.sqrt()
    for draw in range(3):
        noise = torch.from_numpy(np.random.default_rng((2, draw, 0)).standard_normal(3))
        assert_close(ours[draw], net.head(x + activity + sigma * noise).detach())


def test_work_before_the_first_prior_is_done_once():
    calls = []

    class Counted(nn.Linear):
        def forward(self, x):
            calls.append(x.shape)
            return super().forward(x)

    net = ganns.insert(nn.Sequential(Counted(3, 4), nn.ReLU(), nn.Linear(4, 1)), example=torch.zeros(1, 3))
    calls.clear()
    ganns.sample(net, torch.randn(6, 3), draws=50)
    assert calls == [(1, 3), (6, 3)], "one row to see the shapes, then all rows once for all draws"


def test_models_that_vmap_cannot_follow_are_sampled_one_by_one():
    class Choosy(nn.Module):
        def __init__(self):
            super().__init__()
            self.act, self.head = nn.ReLU(), nn.Linear(3, 1)

        def forward(self, x):
            x = self.act(x)
            return self.head(x if x.sum() > 0 else -x)

    net, x = ganns.insert(Choosy(), example=torch.zeros(1, 3), where="act"), torch.randn(4, 3)
    with pytest.warns(UserWarning, match="one after another.*vmap"):
        draws = ganns.sample(net, x, draws=3)
    assert draws.shape == (3, 4, 1)
    assert draws.std(0).min() > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws=0: ask for at least one"),
        ({"gamma": -0.1}, "gamma=-0.1.*0 or above"),
        ({"gamma": float("nan")}, "gamma=nan"),
        ({"gamma": [1.0]}, r"gamma=\[1.0\]: give one number, or one for each of the 3 priors"),
        ({"chunk": 0}, "chunk=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ganns.sample(network(), torch.zeros(2, 3), **arguments)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_data_that_are_not_finite_are_refused(bad):
    x = torch.zeros(2, 3)
    x[1, 2] = bad
    for call in (ganns.sample, ganns.surprise, ganns.moments):
        with pytest.raises(ValueError, match="x holds 1 values that are NaN or infinite"):
            call(network(), x)


def test_inputs_without_rows_are_refused():
    with pytest.raises(ValueError, match="x must hold rows"):
        ganns.sample(network(), torch.zeros(0, 3))


def test_a_model_without_priors_is_refused():
    for call in (ganns.sample, ganns.surprise, ganns.moments):
        with pytest.raises(ValueError, match="no prior"):
            call(nn.Linear(3, 1), torch.zeros(2, 3))


def test_rows_must_come_first():
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x.transpose(0, 1)).sum(0)

    net = ganns.insert(TimeFirst(), example=torch.zeros(2, 5, 3), dim=-1)
    for call in (ganns.sample, ganns.surprise):
        with pytest.raises(ValueError, match="rows first in every activity"):
            call(net, torch.zeros(2, 5, 3))


def test_models_must_return_a_tensor():
    class Answers(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, x):
            return {"answer": self.net(x)}

    with pytest.raises(TypeError, match=r"the model returned dict.*Wrap the model"):
        ganns.sample(Answers(), torch.zeros(2, 3))


def test_dropout_left_on_is_that_of_training():
    net = ganns.GaussianMLP(3, 2, hidden=(64, 32), dropout=0.3)
    x = torch.randn(6, 3)
    draws = ganns.sample(net, x, draws=4000, gamma=0.0, dropout=True)
    net.train()
    with torch.no_grad():
        passes = torch.stack([net(x) for _ in range(4000)])
    assert_close(draws.mean(0), passes.mean(0), rtol=0.1, atol=0.01)
    assert_close(draws.std(0), passes.std(0), rtol=0.1, atol=0.0)
    assert net.dropout.training
    assert len(draws[:, 0, 0].unique()) == 4000


def test_dropout_serves_networks_without_priors_and_repeats():
    net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))
    x = torch.randn(5, 3)
    before = torch.get_rng_state()
    first, again = (ganns.sample(net, x, draws=7, seed=3, dropout=True) for _ in range(2))
    assert_close(first, again, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert ganns.sample(net, x, draws=7, seed=4, dropout=True).ne(first).any()
    with pytest.raises(ValueError, match="neither a prior nor a dropout module"):
        ganns.sample(nn.Sequential(nn.Linear(3, 1)), x, dropout=True)


def test_without_dropout_no_unit_drops():
    net = ganns.GaussianMLP(3, 2, hidden=(8,), dropout=0.5).train()
    assert_close(ganns.sample(net, torch.ones(2, 3), draws=3, gamma=0.0), net.eval()(torch.ones(2, 3)).expand(3, 2, 2))
