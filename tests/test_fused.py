"""The closed form against autograd through the plain formulas."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

import ganns
from ganns import fused
from ganns.families import Gaussian
from ganns.variance import sparse_variance

pytestmark = pytest.mark.usefixtures("double")


def inputs(shape, axis):
    units = [shape[axis]] + [1] * (len(shape) - axis - 1)
    return [torch.randn(shape, requires_grad=True), *(torch.randn(units, requires_grad=True) for _ in range(3))]


def plain(activity, mean, weight, bias, floor):
    variance = sparse_variance(activity, weight, bias, floor)
    return variance, Gaussian().energy(activity - mean, variance).sum()


CASES = [((6, 4), 1), ((3, 4, 5), 2), ((3, 4, 2, 5), 1)]


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize("wanted", ["sum", "variance", "both"])
def test_value_and_gradient(shape, axis, wanted):
    x = inputs(shape, axis)
    results = []
    for function in (fused.sparse_gaussian, plain):
        variance, energy_sum = function(*x, 0.3)
        scalar = torch.zeros(())
        if wanted != "variance":
            scalar = scalar + 1.7 * energy_sum
        if wanted != "sum":
            scalar = scalar + variance.sin().sum()
        results.append(
            (variance.detach(), energy_sum.detach(), *torch.autograd.grad(scalar, x, materialize_grads=True))
        )
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_gradcheck_once_and_twice():
    x = inputs((3, 4), 1)
    assert gradcheck(lambda *x: fused.sparse_gaussian(*x, 0.3), x)
    assert gradgradcheck(lambda *x: fused.sparse_gaussian(*x, 0.3), x)


def test_frozen_inputs_get_no_gradient():
    x = inputs((3, 4), 1)
    x[0].requires_grad_(False)
    fused.sparse_gaussian(*x, 0.3)[1].backward()
    assert x[0].grad is None
    assert all(parameter.grad is not None for parameter in x[1:])


def test_is_what_training_uses_and_nothing_else_does():
    prior, activity = ganns.ActivityPrior(4), torch.randn(3, 4)
    assert ganns.trace(prior, activity).states[0].energy_sum is not None
    assert_close(
        ganns.trace(prior, activity).states[0].energy_sum, ganns.trace(prior, activity).states[0].energy().sum()
    )
    with torch.no_grad():
        assert ganns.trace(prior, activity).states[0].energy_sum is None
    for other in (ganns.ActivityPrior(4, family="laplace"), ganns.ActivityPrior(4, "constant")):
        assert ganns.trace(other, activity).states[0].energy_sum is None
    assert ganns.trace(prior, activity.bfloat16()).states[0].energy_sum is None
