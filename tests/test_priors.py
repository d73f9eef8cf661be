"""Every variance model with every family inherits one suite; then what is particular to one."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.testing import assert_close

import ganns
from ganns.families import FAMILIES
from ganns.variance import softplus

VARIANCES = ("constant", "sparse", "dense")


def network(variance: str, family: str, **options) -> ganns.GaussianMLP:
    """A small network whose priors are not at their starting point."""
    net = ganns.GaussianMLP(5, 2, hidden=(7, 6, 4), variance=variance, family=family, **options)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "prior" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return net


def loss(net, x, y, alpha=0.5):
    traced = ganns.trace(net, x)
    return ganns.total_loss(F.mse_loss(traced.output, y), ganns.inner_loss(traced.states), alpha)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("variance", VARIANCES)
class TestConformance:
    @pytest.fixture
    def net(self, variance, family):
        return network(variance, family)

    @pytest.fixture
    def x(self):
        return torch.randn(9, 5)

    @pytest.fixture
    def y(self):
        return torch.randn(9, 2)

    def test_is_the_identity_in_value(self, net, x):
        plain = net.plain()
        assert torch.equal(net(x), plain(x))
        assert torch.equal(ganns.trace(net, x).output, plain(x))
        with torch.no_grad():
            assert torch.equal(net.eval()(x), plain(x))

    def test_state_is_what_the_formulas_say(self, net, x, variance):
        a, previous = x.numpy(), None
        for layer, state in zip(net.layers, ganns.trace(net, x).states, strict=True):
            p = {name: value.detach().numpy() for name, value in layer.prior.named_parameters()}
            fed, a = a, np.maximum(a @ layer.linear.weight.detach().numpy().T + layer.linear.bias.detach().numpy(), 0)
            drive = p["bias"]
            if variance == "sparse":
                drive = drive + a * p["weight"]
            if variance == "dense":
                drive = drive + fed @ p["weight"].T
                if previous is not None:
                    drive = drive + np.sqrt(previous) @ p["sigma_weight"].T
            previous = np.broadcast_to(np.log1p(np.exp(drive)) + 0.5, a.shape)
            assert_allclose(state.mean.detach(), p["mean"])
            assert_allclose(state.activity.detach(), a, atol=1e-12)
            assert_allclose(np.broadcast_to(state.variance.detach(), a.shape), previous, rtol=1e-10)
            assert (state.variance >= 0.5).all()

    def test_every_parameter_gets_a_gradient(self, net, x, y):
        loss(net, x, y).backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name

    def test_gradients_survive_gradcheck(self, net, x):
        parameters = [p.detach().requires_grad_() for p in net.parameters()]
        names = [name for name, _ in net.named_parameters()]

        def inner(*values):
            states = ganns.trace(functional_call, net, dict(zip(names, values, strict=True)), (x,)).states
            return ganns.inner_loss(states)

        assert torch.autograd.gradcheck(inner, parameters)

    def test_deepcopy_pickle_and_state_dict_round_trip(self, net, x, y, variance, family):
        expected = loss(net, x, y)
        fresh = ganns.GaussianMLP(5, 2, hidden=(7, 6, 4), variance=variance, family=family)
        fresh.load_state_dict(net.state_dict())
        for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), fresh):
            assert torch.equal(loss(twin, x, y), expected)

    def test_compiles_as_one_graph(self, net, x, y):
        torch.compiler.reset()
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        expected, ours = loss(net, x, y), compiled(net, x, y)
        assert_allclose(ours.item(), expected.item(), rtol=1e-12)
        expected_gradients = torch.autograd.grad(expected, list(net.parameters()))
        for ours_, theirs in zip(torch.autograd.grad(ours, list(net.parameters())), expected_gradients, strict=True):
            assert_close(ours_, theirs, rtol=1e-9, atol=1e-12)

    def test_vmap_over_stacked_networks_equals_one_after_another(self, net, x, y, variance, family):
        nets = [net, network(variance, family), network(variance, family)]
        stacked, _ = stack_module_state(nets)

        def one(parameters):
            return loss(lambda x: functional_call(net, parameters, (x,)), x, y)

        values, gradients = vmap(one)(stacked), vmap(grad(one))(stacked)
        for number, member in enumerate(nets):
            expected = loss(member, x, y)
            assert_allclose(values[number].item(), expected.item(), rtol=1e-10)
            for name, theirs in zip(
                dict(member.named_parameters()),
                torch.autograd.grad(expected, list(member.parameters())),
                strict=True,
            ):
                assert_close(gradients[name][number].detach(), theirs, rtol=1e-8, atol=1e-12)

    def test_activation_checkpointing_changes_nothing(self, net, x, y):
        def checkpointed(x):
            return torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)

        expected = torch.autograd.grad(loss(net, x, y), list(net.parameters()))
        ours = torch.autograd.grad(loss(checkpointed, x, y), list(net.parameters()))
        for a, b in zip(ours, expected, strict=True):
            assert_close(a, b, rtol=1e-12, atol=0)

    def test_autocast_keeps_energies_in_float32(self, net, x, y):
        net.float()
        with torch.autocast("cpu", torch.bfloat16):
            _output, states = ganns.trace(net, x.float())
            inner = ganns.inner_loss(states)
        assert states[0].activity.dtype == torch.bfloat16
        assert inner.dtype == torch.float32
        assert all(state.energy().dtype == torch.float32 for state in states)
        assert_allclose(inner.item(), ganns.inner_loss(ganns.trace(net, x.float()).states).item(), rtol=0.05)
        inner.backward()

    def test_bfloat16_networks_have_energies_in_float32(self, net, x):
        states = ganns.trace(net.bfloat16(), x.bfloat16()).states
        assert all(state.energy().dtype == torch.float32 for state in states)

    def test_noise_has_the_variance_of_the_prior(self, net, x):
        net.head.weight.data.zero_()
        net.head.weight.data[0, 0] = 1.0
        state = ganns.trace(net, x).states[-1]
        draws = ganns.sample(net, x, draws=20_000, gamma=[0, 0, 0.5])[..., 0] - net.head.bias[0]
        assert_allclose(draws.mean(0).detach(), state.activity[:, 0].detach(), atol=0.03)
        expected = 0.25 * state.variance.expand_as(state.activity)[:, 0]
        assert_allclose(draws.var(0).detach(), expected.detach(), rtol=0.1)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("variance", ["constant", "sparse"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 6)])
def test_dim_names_the_feature_axis(variance, shape):
    first, last = ganns.ActivityPrior(4, variance, dim=1), ganns.ActivityPrior(4, variance)
    for parameter, twin in zip(first.parameters(), last.parameters(), strict=True):
        torch.nn.init.normal_(parameter)
        twin.data.copy_(parameter.data)
    activity = torch.randn(shape)
    ours = ganns.trace(first, activity).states[0]
    theirs = ganns.trace(last, activity.movedim(1, -1)).states[0]
    assert ours.units == theirs.units == 4
    assert ours.positions == theirs.positions == activity[0].numel() // 4
    assert_allclose(ours.energy().movedim(1, -1).detach(), theirs.energy().detach(), rtol=1e-12)
    assert_allclose(ganns.inner_loss([ours]).item(), ganns.inner_loss([theirs]).item(), rtol=1e-12)


def test_idle_prior_returns_the_very_tensor():
    prior, activity = ganns.ActivityPrior(3).eval(), torch.randn(2, 3)
    assert prior(activity) is activity


@pytest.mark.usefixtures("double")
@given(st.floats(-700, 700))
def test_softplus_is_exact_and_positive(x):
    value = softplus(torch.tensor(x)).item()
    assert value > 0
    assert_allclose(value, np.logaddexp(0, x), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, "units=0"),
        ({"units": 3, "floor": 0.0}, "floor=0.0.*above 0"),
        ({"units": 3, "floor": -0.5}, "floor=-0.5.*above 0"),
        ({"units": 3, "floor": float("nan")}, "floor=nan"),
        ({"units": 3, "variance": "spars"}, "variance='spars' is unknown; choose one of 'constant', 'sparse', 'dense'"),
        ({"units": 3, "family": "normal"}, "family='normal' is unknown"),
        ({"units": 3, "variance": "dense"}, "in_features=None with variance='dense'"),
        ({"units": 3, "in_features": 4}, "in_features=4 with variance='sparse'"),
        ({"units": 3, "variance": "dense", "in_features": 4, "dim": 1}, "dim=1 with variance='dense'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ganns.ActivityPrior(**arguments)


@pytest.mark.parametrize(("dim", "shape"), [(-1, (2, 4)), (1, (2, 4, 3)), (0, (3, 3)), (2, (2, 3)), (-3, (2, 3))])
def test_wrong_dim_is_named(dim, shape):
    with pytest.raises(ValueError, match=rf"dim={dim}.*feature axis"):
        ganns.ActivityPrior(3, dim=dim)(torch.zeros(shape))


def test_dense_prior_on_its_own_asks_for_its_inputs():
    prior = ganns.ActivityPrior(3, "dense", in_features=4)
    with pytest.raises(ValueError, match="inputs=None"):
        prior(torch.zeros(2, 3))
    chained = ganns.ActivityPrior(3, "dense", in_features=4, chained=True)
    with pytest.raises(ValueError, match="previous=None"):
        chained(torch.zeros(2, 3), torch.zeros(2, 4))
