"""Every equation of the paper against an independent float64 formula: its value, and its gradient by differences.

The formulas here are written in numpy from the paper alone; gradients are central differences of those formulas, or
written out by hand where differences would be too coarse.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import ganns
from ganns import metrics, objective, sampling
from ganns import variance as variances
from ganns.tracing import State

RNG = np.random.default_rng(0)


def softplus(x):
    return np.log1p(np.exp(x))


def differences(formula: Callable[..., float], arrays: list[np.ndarray], step: float = 1e-6) -> list[np.ndarray]:
    """Gradient of a scalar formula by central differences."""
    gradients = []
    for array in arrays:
        gradient = np.empty_like(array)
        for index in np.ndindex(array.shape):
            kept = array[index]
            array[index] = kept + step
            above = formula(*arrays)
            array[index] = kept - step
            below = formula(*arrays)
            array[index] = kept
            gradient[index] = (above - below) / (2 * step)
        gradients.append(gradient)
    return gradients


def agree(ours: Callable[..., torch.Tensor], formula: Callable[..., np.ndarray], *arrays: np.ndarray) -> None:
    """Value and gradient of our function and of the formula, each output weighted by another number."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = ours(*tensors)
    expected = np.asarray(formula(*arrays))
    assert_allclose(value.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    weights = np.random.default_rng(1).normal(size=expected.shape)
    value.backward(torch.tensor(weights).reshape(value.shape))
    expected_gradients = differences(lambda *xs: float((weights * formula(*xs)).sum()), list(arrays))
    for tensor, gradient in zip(tensors, expected_gradients, strict=True):
        assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-6, atol=1e-7)


def gaussian_density(a, mean, variance):
    return np.exp(-((mean - a) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


@pytest.fixture
def states():
    """The arrays of a two-layer state: mean, variance and activity of each layer."""
    return [
        (RNG.normal(size=units), RNG.uniform(0.5, 2, size=(4, units)), RNG.normal(size=(4, units))) for units in (3, 2)
    ]


def test_equation_2_gaussian_likelihood():
    mean, variance, y = RNG.normal(size=7), RNG.uniform(0.3, 3, size=7), RNG.normal(size=7)
    agree(
        lambda m, v, d: metrics.gaussian_log_likelihood(m, v, d).exp(),
        lambda m, v, d: gaussian_density(d, m, v),
        mean,
        variance,
        y,
    )


def test_equation_3_gaussian_loss():
    mean, variance, y = RNG.normal(size=7), RNG.uniform(0.3, 3, size=7), RNG.normal(size=7)
    agree(metrics.gaussian_loss, lambda m, v, d: np.mean(0.5 * ((d - m) ** 2 / v + np.log(v))), mean, variance, y)


def test_equation_4_likelihood_of_the_network(states):
    target = RNG.normal(size=4)

    def formula(target, *flat):
        product = np.exp(target)
        for mean, variance, activity in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            product = product * gaussian_density(activity, mean, variance).prod(1)
        return product

    agree(
        lambda target, *flat: objective.likelihood(target, [State(*flat[:3]), State(*flat[3:])]),
        formula,
        target,
        *(array for state in states for array in state),
    )


def test_equation_5_likelihood_of_an_activity(states):
    agree(lambda *s: State(*s).log_likelihood().exp(), lambda m, v, a: gaussian_density(a, m, v), *states[0])


def test_equation_6_log_likelihood_of_the_network(states):
    target = RNG.normal(size=4)

    def formula(target, *flat):
        total = target.copy()
        for mean, variance, activity in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            for k in range(len(mean)):
                total = total + np.log(gaussian_density(activity[:, k], mean[k], variance[:, k]))
        return total

    agree(
        lambda target, *flat: objective.log_likelihood(target, [State(*flat[:3]), State(*flat[3:])]),
        formula,
        target,
        *(array for state in states for array in state),
    )


def inner_formula(*flat):
    rows = len(flat[2])
    return sum(
        0.5 * ((mean[k] - activity[i, k]) ** 2 / variance[i, k] + np.log(variance[i, k]))
        for mean, variance, activity in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        for i in range(rows)
        for k in range(len(mean))
    ) / np.float64(rows)


def test_equation_7_inner_loss(states):
    agree(
        lambda *flat: ganns.inner_loss([State(*flat[:3]), State(*flat[3:])]),
        inner_formula,
        *(array for state in states for array in state),
    )


def test_equation_8_no_gradient():
    x = torch.tensor(RNG.normal(size=5), requires_grad=True)
    (x.square() * objective.no_gradient(x.exp())).sum().backward()
    values = x.detach().numpy()
    assert_allclose(objective.no_gradient(x.exp()).numpy(), np.exp(values))
    assert_allclose(x.grad.numpy(), 2 * values * np.exp(values))  # the factor exp(x) is a constant


@pytest.mark.parametrize("inner_sign", [1.0, -1.0])
def test_equation_9_total_loss(inner_sign):
    x, alpha = RNG.uniform(1, 2, size=3), 0.3
    tensor = torch.tensor(x, requires_grad=True)
    total = ganns.total_loss((tensor**2).sum(), inner_sign * (tensor**3).sum(), alpha)
    total.backward()
    base, inner = (x**2).sum(), inner_sign * (x**3).sum()
    ratio = abs(base / inner)
    assert_allclose(total.item(), base + alpha * ratio * inner, rtol=1e-13)
    assert_allclose(tensor.grad.numpy(), 2 * x + alpha * ratio * inner_sign * 3 * x**2, rtol=1e-13)


def test_equation_10_softplus():
    agree(variances.softplus, softplus, np.array([-30.0, -2.0, 0.0, 0.7, 5.0, 19.0, 21.0, 39.0]))


def test_equation_11_sparse_variance():
    a, w, b = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=3)
    agree(lambda a, w, b: variances.sparse_variance(a, w, b, 0.5), lambda a, w, b: softplus(a * w + b) + 0.5, a, w, b)


def test_equation_12_dense_variance():
    a, w, b = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=2)
    sigma, k = RNG.uniform(0.7, 2, size=(4, 3)), RNG.normal(size=(2, 3))
    agree(
        lambda a, w, b, sigma, k: variances.dense_variance(a, w, b, 0.5, sigma, k),
        lambda a, w, b, sigma, k: softplus(a @ w.T + sigma @ k.T + b) + 0.5,
        a,
        w,
        b,
        sigma,
        k,
    )


def test_equation_12_dense_variance_of_the_first_layer():
    a, w, b = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=2)
    agree(
        lambda a, w, b: variances.dense_variance(a, w, b, 0.5, None, None),
        lambda a, w, b: softplus(a @ w.T + b) + 0.5,
        a,
        w,
        b,
    )


def test_equation_13_noisy_sampling():
    a, variance, epsilon = RNG.normal(size=(4, 3)), RNG.uniform(0.5, 2, size=(4, 3)), RNG.normal(size=3)
    agree(
        lambda a, v, e: sampling.add_noise(a, v, 0.7 * e),
        lambda a, v, e: a + 0.7 * e * np.sqrt(v),
        a,
        variance,
        epsilon,
    )


def test_equation_14_nll():
    logits, y = RNG.normal(size=(5, 3)), np.array([0, 2, 1, 1, 0])

    def probabilities(logits):
        return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)

    agree(
        lambda logits: metrics.nll(logits.softmax(1), torch.tensor(y)),
        lambda logits: -np.mean([np.log(p[label]) for p, label in zip(probabilities(logits), y, strict=True)]),
        logits,
    )


def test_equation_15_entropy():
    logits = RNG.normal(size=(5, 3))

    def formula(logits):
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        return -(p * np.log(p)).sum(1)

    agree(lambda logits: metrics.entropy(logits.softmax(1)), formula, logits)


def test_equation_16_error_auroc():
    probabilities = RNG.dirichlet(np.ones(3), size=40).round(1)
    probabilities[:, 2] = 1 - probabilities[:, 0] - probabilities[:, 1]
    probabilities = probabilities.clip(0)
    y = RNG.integers(0, 3, size=40)
    tensor = torch.tensor(probabilities)
    entropy = metrics.entropy(tensor).numpy()
    wrong = probabilities.argmax(1) != y
    total = 0.0
    for i in np.flatnonzero(wrong):
        for j in np.flatnonzero(~wrong):
            total += (entropy[i] > entropy[j]) + 0.5 * (entropy[i] == entropy[j])
    assert len(set(entropy)) < 40, "the example must contain ties"
    assert_allclose(metrics.error_auroc(tensor, torch.tensor(y)).item(), total / (wrong.sum() * (~wrong).sum()))
