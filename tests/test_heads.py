"""Base losses against PyTorch's own, and their gradients in closed form against autograd."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ganns.heads import Classes, Mean, Variance, make_head, split_variance

pytestmark = pytest.mark.usefixtures("double")


def example(head):
    output = torch.randn(3, 8, head.outputs(4), requires_grad=True)
    y = torch.randint(0, 4, (3, 8)) if isinstance(head, Classes) else torch.randn(3, 8, 4)
    return output, y


@pytest.mark.parametrize("head", [Mean(), Variance(), Variance(beta=0.5), Classes()])
def test_the_gradient_is_that_of_the_loss(head):
    output, y = example(head)
    loss = head.loss(output, y)
    if isinstance(head, Variance) and head.beta:  # the weight counts as a constant
        mean, variance = split_variance(output)
        each = 0.5 * ((y - mean).square() / variance + variance.log())
        loss = (each * variance.detach() ** head.beta).mean((1, 2))
        assert_close(loss, head.loss(output, y))
    (wanted,) = torch.autograd.grad(loss.sum(), output)
    assert_close(head.delta(output.detach().clone(), y), wanted)


def test_losses_are_those_of_pytorch():
    output, y = example(Mean())
    assert_close(Mean().loss(output, y), F.mse_loss(output, y, reduction="none").mean((1, 2)))
    output, y = example(Variance())
    mean, variance = split_variance(output)
    assert_close(Variance().loss(output, y), F.gaussian_nll_loss(mean, y, variance, reduction="none").mean((1, 2)))
    output, y = example(Classes())
    wanted = F.cross_entropy(output.flatten(0, 1), y.flatten(), reduction="none").view(3, 8).mean(1)
    assert_close(Classes().loss(output, y), wanted)


def test_metrics_are_in_the_targets_units():
    output, y = example(Mean())
    scale = torch.rand(3, 1, 4)
    assert_close(Mean().metrics(output, y, scale), (output * scale - y * scale).abs().mean(-1))
    twice = torch.cat([output, torch.randn_like(output)], -1)
    assert_close(Variance().metrics(twice, y, scale), Mean().metrics(output, y, scale))
    output, y = example(Classes())
    assert_close(Classes().metrics(output, y, scale), (output.argmax(-1) == y).double())
    broken = output.detach().clone()
    broken[1, 2, 0] = torch.nan
    assert Classes().metrics(broken, y, scale).isnan().nonzero().tolist() == [[1, 2]]


@pytest.mark.parametrize(("name", "head"), [("mean", Mean()), ("variance", Variance(0.3)), ("classes", Classes())])
def test_heads_by_name(name, head):
    assert make_head(name, beta=0.3) == head
