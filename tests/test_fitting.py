import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

import ganns

pytestmark = pytest.mark.usefixtures("double")


def network(variance="sparse"):
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1)).requires_grad_(True)
    return ganns.insert(net, variance, example=torch.zeros(1, 3), floor=1e-3)


@pytest.mark.parametrize("variance", ["constant", "sparse", "dense"])
def test_comes_close_to_what_long_training_of_the_priors_reaches(variance):
    net, x = network(variance), torch.randn(512, 3)
    start = ganns.surprise(net, x).mean()
    ganns.fit_priors(net, DataLoader(TensorDataset(x), batch_size=64))
    fitted = ganns.surprise(net, x).mean()
    parameters = [p for m in net.modules() if isinstance(m, ganns.ActivityPrior) for p in m.parameters()]
    optimizer = torch.optim.LBFGS(parameters, max_iter=400, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ganns.inner_loss(ganns.trace(net.eval(), x).states)
        loss.backward()
        return loss

    optimizer.step(closure)
    best = ganns.surprise(net, x).mean()
    assert start - fitted > 0.92 * (start - best)


def test_constant_priors_are_the_moments():
    net, x = network("constant"), torch.randn(256, 3)
    ganns.fit_priors(net, [x], updates=400)
    for state in ganns.trace(net, x).states:
        assert_close(state.mean.detach(), state.activity.mean(0).detach(), atol=1e-3, rtol=0)
        assert_close(
            state.variance.detach(), state.activity.var(0, correction=0).clamp(min=1e-3).detach(), atol=2e-3, rtol=0.05
        )


def test_weights_flags_mode_and_gradients_stay():
    net = network().train()
    net[0].weight.requires_grad_(False)
    before = {name: p.clone() for name, p in net.named_parameters() if "prior" not in name}
    flags = {name: p.requires_grad for name, p in net.named_parameters()}
    ganns.fit_priors(net, torch.randn(64, 3), updates=10)
    assert all(torch.equal(p, before[name]) for name, p in net.named_parameters() if name in before)
    assert {name: p.requires_grad for name, p in net.named_parameters()} == flags
    assert net.training
    assert all(p.grad is None for p in net.parameters())


def test_reads_the_data_once_even_without_a_length():
    seen = []

    def stream():
        for _ in range(4):
            seen.append(1)
            yield torch.randn(16, 3), torch.zeros(16)

    ganns.fit_priors(network(), stream())
    assert len(seen) == 4


@pytest.mark.parametrize("data", [[], iter(())])
def test_no_data_is_an_error(data):
    with pytest.raises(ValueError, match="data is empty"):
        ganns.fit_priors(network(), data)


def test_no_priors_is_an_error():
    with pytest.raises(ValueError, match="the model has no priors"):
        ganns.fit_priors(nn.Linear(3, 1), torch.zeros(2, 3))
