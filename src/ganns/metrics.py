r"""Scores: pure functions from tensors to a number.

Shapes must agree exactly: (N, 1) against (N,) would compare every row with every other. Wrong input raises an error.
Class probabilities p are (N, K), labels y are class numbers (N,). Scores are 0-dimensional and in float64, but
`gaussian_log_likelihood`, `gaussian_loss`, `nll` and `entropy` keep their input's dtype.
"""

import math

import torch
from torch import Tensor


def gaussian_log_likelihood(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    r"""Logarithm of Eq. 2, elementwise, for a mean y(x), a variance σ²(x) and targets d of one shape.

    Equation 2:

    .. math:: P(d_i|\vec{x}_i; \theta)=\frac{1}{\sqrt{2\pi \sigma^2(\vec{x}_i)}}
        e^{\frac{-(d_i-y(\vec{x}_i))^2}{2\sigma^2(\vec{x}_i)}}

    >>> gaussian_log_likelihood(torch.zeros(2), torch.ones(2), torch.tensor([0.0, 2.0]))
    tensor([-0.9189, -2.9189])
    """
    _check(mean=mean, variance=variance, y=y)
    _positive(variance)
    return -0.5 * ((y - mean) ** 2 / variance + variance.log() + math.log(2 * math.pi))


def gaussian_loss(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    r"""Gaussian loss of a variance head: Eq. 3 as a mean over elements, for three tensors of one shape.

    Equation 3:

    .. math:: \mathcal{L}_G = \sum_{i} \frac{1}{2}\left( \frac{(d_i - y(\vec{x}_i))^2}{\sigma^2(\vec{x}_i)}
        + \ln \left(\sigma^2(\vec{x}_i)\right)\right)

    A training loss: no ½ ln 2π, and values go unchecked, so that `torch.compile` and `vmap` can trace it.

    >>> gaussian_loss(torch.zeros(2), torch.ones(2), torch.tensor([0.0, 2.0]))
    tensor(1.)
    """
    _same_shape(mean=mean, variance=variance, y=y)
    return 0.5 * ((y - mean) ** 2 / variance + variance.log()).mean()


def gaussian_nll(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    r"""Gaussian loss with its constant, :math:`\mathcal{L}_G / n + \frac{1}{2} \ln 2\pi`, for tensors of one shape.

    >>> gaussian_nll(torch.zeros(2), torch.ones(2), torch.tensor([0.0, 2.0]))
    tensor(1.9189, dtype=torch.float64)
    """
    return -gaussian_log_likelihood(*_check(mean=mean, variance=variance, y=y)).mean()


def nll(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""Negative log-likelihood of labels (N,) under class probabilities (N, K).

    Equation 14:

    .. math:: \mathrm{NLL} = -\frac{1}{n} \sum_{i=1}^n \log p_{y_i,i}

    Clamped at the dtype's tiny, p = 0 costs 87.3 in float32 and 708.4 in float64: finite, and without gradient.

    >>> nll(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 1]))
    tensor(0.4904)
    """
    _labelled(probabilities, y)
    true = probabilities.gather(-1, y.long()[:, None])
    return -true.clamp(min=torch.finfo(true.dtype).tiny).log().mean()


def entropy(probabilities: Tensor) -> Tensor:
    r"""Entropy (N,) of each row of class probabilities (N, K), in nats.

    Equation 15:

    .. math:: H_i = -\sum_{k} p_{k,i}\,\log p_{k,i}

    0 log 0 = 0, with a finite gradient. Terms are added by size, so that rows with permuted classes tie exactly.

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    _distribution(probabilities)
    return _entropy(probabilities)


def auroc(score: Tensor, positive: Tensor) -> Tensor:
    r"""Probability that a random positive row scores above a random negative one, ties counting half.

    For scores and a boolean mask P of one shape; exact, in O(n log n), from the average ranks r of the scores:
    :math:`\left(\sum_{i \in P} r_i - |P| (|P| + 1) / 2\right) / \left(|P| \, (n - |P|)\right)`.

    >>> auroc(torch.tensor([0.1, 0.4, 0.4, 0.8]), torch.tensor([False, True, False, True]))
    tensor(0.8750, dtype=torch.float64)
    """
    _check(score=score, positive=positive)
    if positive.dtype != torch.bool:
        raise TypeError(f"positive has dtype {positive.dtype}; pass a mask, for instance positive == 1")
    total, hits = positive.numel(), int(positive.sum())
    if hits in (0, total):
        raise ValueError(f"auroc is undefined: positive has {hits} true rows of {total}; pass rows of both kinds")
    _, group, count = score.detach().unique(return_inverse=True, return_counts=True)
    average_rank = count.cumsum(0) - (count.double() - 1) / 2
    return (average_rank[group][positive].sum() - hits * (hits + 1) / 2) / (hits * (total - hits))


def error_auroc(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""AUROC of error detection: how well the entropy of p (N, K) tells errors E from correct rows C, given y (N,).

    Equation 16:

    .. math:: \mathrm{AUROC} = \frac{1}{|E|\,|C|} \sum_{i \in E} \sum_{j \in C}
        \Big( \mathbf{1}(H_i > H_j) + \tfrac{1}{2}\mathbf{1}(H_i = H_j) \Big)

    >>> error_auroc(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), torch.tensor([0, 1, 1]))
    tensor(1., dtype=torch.float64)
    """
    _labelled(probabilities, y)
    wrong = probabilities.argmax(dim=-1) != y
    if (errors := int(wrong.sum())) in (0, len(y)):
        raise ValueError(f"error_auroc is undefined: {errors} of {len(y)} rows are errors; pass rows of both kinds")
    return auroc(_entropy(probabilities.double()), wrong)


def mae(prediction: Tensor, y: Tensor) -> Tensor:
    r"""Mean absolute error :math:`\frac{1}{n} \sum_i |\hat{y}_i - y_i|` of two tensors of one shape.

    >>> mae(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1., dtype=torch.float64)
    """
    prediction, y = _check(prediction=prediction, y=y)
    return (prediction - y).abs().mean()


def rmse(prediction: Tensor, y: Tensor) -> Tensor:
    r"""Root mean squared error :math:`\sqrt{\frac{1}{n} \sum_i (\hat{y}_i - y_i)^2}` of tensors of one shape.

    >>> rmse(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.4142, dtype=torch.float64)
    """
    prediction, y = _check(prediction=prediction, y=y)
    return torch.linalg.vector_norm(prediction - y) / math.sqrt(y.numel())  # gradient 0, not NaN, at no error


def accuracy(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""Share :math:`\frac{1}{n} \sum_i \mathbf{1}(\arg\max_k p_{k,i} = y_i)` of correct rows, for p (N, K), y (N,).

    >>> accuracy(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    tensor(0.5000, dtype=torch.float64)
    """
    _labelled(probabilities, y)
    return (probabilities.argmax(dim=-1) == y).double().mean()


def brier(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""Brier score :math:`\frac{1}{n} \sum_i \sum_k (p_{k,i} - \mathbf{1}(y_i = k))^2`, for p (N, K) and y (N,).

    >>> brier(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([0, 1]))
    tensor(0.2500, dtype=torch.float64)
    """
    _labelled(probabilities, y)
    truth = torch.nn.functional.one_hot(y.long(), probabilities.shape[-1])
    return (probabilities.double() - truth).square().sum(dim=-1).mean()


def ece(probabilities: Tensor, y: Tensor, bins: int = 15) -> Tensor:
    r"""Expected calibration error :math:`\sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|`.

    For the top classes of p (N, K) and labels y (N,). Bins are :math:`[b/B, (b+1)/B)` and a confidence of exactly one
    has a bin of its own, as in torchmetrics; as there, bins are found in float32, whatever the dtype.

    >>> ece(torch.tensor([[0.9, 0.1], [0.75, 0.25]]), torch.tensor([0, 1]), bins=2)
    tensor(0.3250, dtype=torch.float64)
    """
    _labelled(probabilities, y)
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"bins is {bins!r}; pass a whole number of at least 1")
    confidence, correct = probabilities.amax(dim=-1), probabilities.argmax(dim=-1) == y
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float32, device=y.device)
    index = torch.bucketize(confidence.float(), edges, right=True) - 1
    excess = correct.double() - confidence.double()
    return excess.new_zeros(bins + 1).index_add(0, index, excess).abs().sum() / y.numel()


def crps(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    r"""Continuous ranked probability score of a Gaussian, averaged, for three tensors of one shape.

    .. math:: \sigma \left( z \, (2 \Phi(z) - 1) + 2 \varphi(z) - \pi^{-1/2} \right), \quad z = (y - \mu) / \sigma

    >>> crps(torch.zeros(1), torch.ones(1), torch.zeros(1))
    tensor(0.2337, dtype=torch.float64)
    """
    mean, variance, y = _check(mean=mean, variance=variance, y=y)
    _positive(variance)
    sigma = variance.sqrt()
    z = (y - mean) / sigma
    twice_density = torch.exp(-0.5 * z**2) * math.sqrt(2 / math.pi)
    return (sigma * (z * torch.erf(z / math.sqrt(2)) + twice_density - 1 / math.sqrt(math.pi))).mean()


def interval_coverage(lower: Tensor, upper: Tensor, y: Tensor) -> Tensor:
    r"""Share :math:`\frac{1}{n} \sum_i \mathbf{1}(l_i \le y_i \le u_i)` of targets inside, all of one shape.

    >>> interval_coverage(torch.zeros(2), torch.ones(2), torch.tensor([0.5, 1.5]))
    tensor(0.5000, dtype=torch.float64)
    """
    lower, upper, y = _check(lower=lower, upper=upper, y=y)
    interval_width(lower, upper)  # refuses bounds in the wrong order
    return ((lower <= y) & (y <= upper)).double().mean()


def interval_width(lower: Tensor, upper: Tensor) -> Tensor:
    r"""Mean width :math:`\frac{1}{n} \sum_i (u_i - l_i)` of intervals, for two tensors of one shape.

    >>> interval_width(torch.zeros(2), torch.tensor([1.0, 2.0]))
    tensor(1.5000, dtype=torch.float64)
    """
    lower, upper = _check(lower=lower, upper=upper)
    width = upper - lower
    if (width < 0).any():
        raise ValueError(f"lower exceeds upper, in one row by {-width.min().item()}; swap or sort the bounds")
    return width.mean()


def risk_coverage_area(uncertainty: Tensor, loss: Tensor) -> Tensor:
    r"""Area under the risk-coverage curve, :math:`\frac{1}{n} \sum_{k=1}^n \frac{1}{k} \sum_{i=1}^k \ell_{(i)}`.

    The mean loss of the k most certain rows, averaged over k, for two tensors of one shape. Where uncertainties tie,
    the expected value over all orders counts: each such row has the mean loss of its group.

    >>> risk_coverage_area(torch.tensor([0.1, 0.9]), torch.tensor([0.0, 1.0]))
    tensor(0.2500, dtype=torch.float64)
    """
    _, losses = _check(uncertainty=uncertainty, loss=loss)
    _, group, count = uncertainty.detach().unique(return_inverse=True, return_counts=True)
    group_mean = losses.new_zeros(len(count)).index_add(0, group.flatten(), losses.flatten()) / count
    total = group_mean.repeat_interleave(count).cumsum(0)
    return (total / torch.arange(1, len(total) + 1, device=total.device)).mean()


def _entropy(probabilities: Tensor) -> Tensor:
    p = probabilities.sort(dim=-1).values
    return (-p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(dim=-1)


def _same_shape(**tensors: Tensor) -> None:
    """Refuse empty input and unequal shapes. Reads no values: safe under compile and vmap."""
    first = next(iter(tensors))
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}; pass a tensor, torch.as_tensor({name})")
        shape, expected = tuple(tensor.shape), tuple(tensors[first].shape)
        if shape != expected:
            raise ValueError(f"{name} has shape {shape} but {first} has {expected}; reshape or expand one to fit")
        if tensor.numel() == 0:
            raise ValueError(f"{name} is empty, shape {shape}; pass at least one row")


def _check(**tensors: Tensor) -> list[Tensor]:
    """Refuse empty, unequal or non-finite input; return the tensors in float64."""
    _same_shape(**tensors)
    for name, tensor in tensors.items():
        bad = tensor.detach()[~torch.isfinite(tensor)]
        if len(bad):
            raise ValueError(f"{name} has {bad[0].item()} among its values ({len(bad)} in all); remove such rows")
    return [tensor.double() for tensor in tensors.values()]


def _positive(variance: Tensor) -> None:
    least = variance.detach().min().item()
    if least <= 0:
        raise ValueError(f"variance has the value {least}; make it positive: set a floor, or exp a log-variance")


def _distribution(probabilities: Tensor) -> None:
    (p,) = _check(probabilities=probabilities)
    if p.ndim != 2 or not probabilities.is_floating_point():
        seen = f"shape {tuple(p.shape)} and dtype {probabilities.dtype}"
        raise ValueError(f"probabilities has {seen}; pass floats (N, K): for two classes torch.stack((1 - p, p), -1)")
    least, sums = p.detach().min().item(), p.detach().sum(dim=-1)
    worst = sums[(sums - 1).abs().argmax()].item()
    if least < 0:
        raise ValueError(f"probabilities has the value {least}; if these are logits, apply softmax(dim=-1)")
    if abs(worst - 1) > max(1e-4, 4 * torch.finfo(probabilities.dtype).eps):
        raise ValueError(f"probabilities has a row with sum {worst}, not 1; divide by the sum, or apply softmax")


def _labelled(probabilities: Tensor, y: Tensor) -> None:
    _distribution(probabilities)
    _check(y=y)
    rows, classes = probabilities.shape
    if y.shape != (rows,) or y.is_floating_point() or y.dtype == torch.bool:
        seen = f"shape {tuple(y.shape)} and dtype {y.dtype}"
        raise ValueError(f"y has {seen}; pass integers ({rows},): y.reshape(-1).long(), or y.argmax(-1) if one-hot")
    low, high = y.min().item(), y.max().item()
    if low < 0 or high >= classes:
        raise ValueError(f"y has labels from {low} to {high}; number the {classes} classes 0 to {classes - 1}")
