"""The balance of Eq. 9: scale-free, finite and observable; test_distributed shows it on several processes."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import ganns

pytestmark = pytest.mark.usefixtures("double")


def losses(net, x, y):
    output, states = ganns.trace(net, x)
    return F.mse_loss(output, y), ganns.inner_loss(states)


@given(st.floats(1e-5, 1e5), st.sampled_from([-1, 1]), st.floats(0, 3))
def test_scaling_the_inner_loss_changes_nothing(scale, sign, alpha):
    torch.manual_seed(0)
    net, x, y = ganns.GaussianMLP(3, 1, hidden=(6, 4)), torch.randn(8, 3), torch.randn(8, 1)
    base, inner = losses(net, x, y)
    inner = sign * inner
    expected = ganns.total_loss(base, inner, alpha)
    scaled = ganns.total_loss(base, scale * inner, alpha)
    assert_close(scaled, expected, rtol=1e-12, atol=0)
    parameters = list(net.parameters())
    for ours, theirs in zip(
        torch.autograd.grad(scaled, parameters, retain_graph=True),
        torch.autograd.grad(expected, parameters),
        strict=True,
    ):
        assert_close(ours, theirs, rtol=1e-10, atol=1e-14)


@given(st.floats(0, 1e8), st.floats(-1e4, 1e4), st.floats(0, 10))
def test_total_loss_is_the_base_plus_or_minus_alpha_of_it(base, inner, alpha):
    base, inner = torch.tensor(base), torch.tensor(inner)
    factor = ganns.coefficient(base, inner, alpha)
    assert factor.isfinite()
    assert 0 <= factor <= alpha * 1e6 * (1 + 1e-12)
    if abs(inner) > 1e-6 * base:
        assert_close(ganns.total_loss(base, inner, alpha), base + alpha * base * inner.sign(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("inner", [0.0, 1e-9, -1e-9])
def test_crossing_zero_stays_finite_and_says_so(inner):
    base = torch.tensor(2.0, requires_grad=True)
    value = torch.tensor(inner, requires_grad=True)
    with pytest.warns(UserWarning, match="kept at max_weight=1e\\+06"):
        total = ganns.total_loss(base, value, 0.5)
    total.backward()
    assert value.grad == 0.5e6
    assert ganns.coefficient(base, value, 0.5) == 0.5e6
    with pytest.warns(UserWarning, match="max_weight=10"):
        assert_close(ganns.total_loss(base, value, 0.5, max_weight=10), base + 0.5 * 10 * value)


def test_alpha_zero_is_the_base_loss():
    assert ganns.total_loss(torch.tensor(2.0), torch.tensor(5.0), 0) == 2.0


def test_a_base_loss_of_zero_is_no_accident():
    assert ganns.total_loss(torch.tensor(0.0), torch.tensor(0.0)) == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_losses_that_are_not_finite_are_refused(bad):
    good = torch.tensor(1.0)
    with pytest.raises(ValueError, match=f"base={bad}.*not finite"):
        ganns.total_loss(torch.tensor(bad), good)
    with pytest.raises(ValueError, match=f"inner={bad}.*not finite"):
        ganns.total_loss(good, torch.tensor(bad))


@pytest.mark.parametrize("alpha", [-0.1, float("nan")])
def test_negative_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha={alpha}.*0 or above"):
        ganns.total_loss(torch.tensor(1.0), torch.tensor(1.0), alpha)


def test_an_inner_loss_without_gradient_is_refused():
    net, x = ganns.GaussianMLP(3, 1, hidden=(6, 4)), torch.randn(8, 3)

    def reentrant(x):
        return torch.utils.checkpoint.checkpoint(net, x, use_reentrant=True)

    output, states = ganns.trace(reentrant, x.requires_grad_())
    with pytest.raises(ValueError, match=r"inner has no gradient.*use_reentrant=False"):
        ganns.total_loss(output.square().mean(), ganns.inner_loss(states))


def test_no_states_is_an_error():
    with pytest.raises(ValueError, match=r"states=\[\]: no prior was seen"):
        ganns.inner_loss(ganns.trace(torch.nn.Linear(2, 1), torch.zeros(1, 2)).states)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_accumulate_equals_one_large_batch(dropout):
    net = ganns.GaussianMLP(3, 1, hidden=(6, 4), dropout=dropout)
    twin = copy.deepcopy(net)
    x, y = torch.randn(20, 3), torch.randn(20, 1)
    cuts = [(0, 7), (7, 12), (12, 20)]

    def part(start, stop):
        return lambda: (*losses(net, x[start:stop], y[start:stop]), stop - start)

    torch.manual_seed(5)
    total = ganns.accumulate([part(*cut) for cut in cuts], alpha=0.3)
    torch.manual_seed(5)  # with dropout the parts draw their masks one after another
    each = [losses(twin, x[start:stop], y[start:stop]) for start, stop in cuts]
    shares = [(stop - start) / 20 for start, stop in cuts]
    base = sum(share * base for share, (base, _) in zip(shares, each, strict=True))
    inner = sum(share * inner for share, (_, inner) in zip(shares, each, strict=True))
    expected = ganns.total_loss(base, inner, 0.3)
    expected.backward()
    assert_close(total, expected.detach(), rtol=1e-12, atol=0)
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)
    if not dropout:
        assert_close(total, ganns.total_loss(*losses(net, x, y), 0.3).detach(), rtol=1e-12, atol=0)


def test_accumulate_needs_a_part():
    with pytest.raises(ValueError, match=r"parts=\[\]"):
        ganns.accumulate([])


def test_positions_count_as_rows_do():
    prior = ganns.ActivityPrior(4, dim=1)
    activity = torch.randn(2, 4, 3, 5)
    energy = ganns.trace(prior, activity).states[0].energy()
    ours = ganns.inner_loss(ganns.trace(prior, activity).states)
    assert_close(ours, energy.mean((0, 2, 3)).sum())
