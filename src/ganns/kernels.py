"""Elementwise parts of a training step of many networks, with their gradients in closed form.

Each function is plain PyTorch. On a CPU they run as they stand, and work in place where that saves passes over memory.
On a GPU they are compiled, and a few of them are written by hand (`ganns.launches`).

M members, B rows, U units. Parameters are (M, 1, U) or (M, 1, 1), activities (M, B, U). Energies and their gradients
are sums over rows and carry no weight: the coefficient of Eq. 9 is known only when the whole network has answered.
"""

from types import SimpleNamespace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ganns.heads import Head
from ganns.objective import coefficient

_MASK = 0xFFFFFFFF
_DROPOUT = 0x20001  # keeps its random numbers apart from those of the order of rows


def place(order: Tensor, count: Tensor, batch: int) -> Tensor:
    """Rows (M, B) of step number `count`, counted from 0 over all epochs; `order` (M, steps · B) is the epoch's."""
    steps = order.view(len(order), -1, batch)
    return steps.index_select(1, count % steps.shape[1]).squeeze(1)


def take(x: Tensor, chosen: Tensor, mean: Tensor, inverse: Tensor) -> Tensor:
    """Rows (M, B, F) of x (N, F), which may be bytes, scaled."""
    rows = x.index_select(0, chosen.reshape(-1)).view(*chosen.shape, -1)  # quicker than x[chosen]
    return rows.to(mean.dtype).sub_(mean).mul_(inverse)


def rectify(z: Tensor, bias: Tensor, out: Tensor) -> Tensor:
    """The activity ReLU(z + b), written into `out`."""
    return torch.clamp_min(z.add_(bias), 0, out=out)


class Expected(NamedTuple):
    """What priors make of activities: twice each unit's energies (M, U), and what their gradients are made of.

    All sums are over rows alone, so that a compiler makes one pass of it.
    """

    energy: Tensor
    by_activity: Tensor
    sums: tuple[Tensor, ...]  # −1 × by mean, 2 × by bias, and in the sparse model 2 × by weight; each (M, U)


def expect(activity: Tensor, weight: Tensor | None, mean: Tensor, bias: Tensor, floor: Tensor) -> Expected:
    """Energies of all units whose variance is constant (no weight) or sparse (Eqs. 7 and 11), whatever their layer."""
    drive = bias if weight is None else torch.addcmul(bias, activity, weight)
    variance = F.softplus(drive, threshold=40.0).add_(floor)
    slope = drive.sigmoid().div_(variance)  # ζ'/σ²
    deviation = activity - mean
    scaled = deviation / variance  # d/σ²
    square = deviation.mul_(scaled)  # d²/σ²
    by_drive = torch.addcmul(slope, slope, square, value=-1)  # twice, as it stands
    energy = square.add_(variance.log_()).sum(1)
    if weight is None:
        return Expected(energy, scaled, (scaled.sum(1), by_drive.sum(1)))
    sums = scaled.sum(1), by_drive.sum(1), (by_drive * activity).sum(1)
    return Expected(energy, scaled.addcmul_(by_drive, weight, value=0.5), sums)


class ExpectedDense(NamedTuple):
    """As `Expected`, for one layer whose variance the next one shares in."""

    energy: Tensor
    sigma: Tensor
    by_activity: Tensor
    by_variance: Tensor
    slope: Tensor


def expect_dense(activity: Tensor, drive: Tensor, mean: Tensor, bias: Tensor, floor: Tensor) -> ExpectedDense:
    """Energies of a layer whose variance is dense (Eqs. 7 and 12); `drive` is Wa + Kσ."""
    drive = drive.add_(bias)
    variance = F.softplus(drive, threshold=40.0).add_(floor)
    deviation = activity - mean
    precision = variance.reciprocal()
    scaled = deviation * precision
    energy = deviation.mul_(scaled).add_(variance.log()).sum(1)
    by_variance = torch.addcmul(precision, scaled, scaled, value=-1).mul_(0.5)
    return ExpectedDense(energy, variance.sqrt_(), scaled, by_variance, drive.sigmoid_())


def _rectified(upstream: Tensor, activity: Tensor) -> Tensor:
    """The gradient by z where `upstream` is that by ReLU(z), in its place; a product with a mask takes three passes."""
    return torch.ops.aten.threshold_backward.grad_input(upstream, activity, 0, grad_input=upstream)


def backward_plain(upstream: Tensor, activity: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by z and by b."""
    delta = _rectified(upstream, activity)
    return delta, delta.sum(1)


def backward_expected(upstream: Tensor, activity: Tensor, by_activity: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by z and by b, where energies count `weight` (M, 1, 1)."""
    delta = _rectified(upstream.addcmul_(by_activity, weight), activity)
    return delta, delta.sum(1)


def backward_dense(
    upstream: Tensor,
    of_activity: Tensor | None,
    of_sigma: Tensor | None,
    activity: Tensor,
    found: ExpectedDense,
    weight: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients by z and b, by the variance's drive and its bias, and by the mean.

    `of_activity` and `of_sigma` came through W and K of the next layer; None at the last.
    """
    by_variance = found.by_variance * weight
    if of_sigma is not None:
        by_variance = by_variance.addcdiv_(of_sigma, found.sigma, value=0.5)
    by_drive = by_variance.mul_(found.slope)
    delta = torch.addcmul(upstream, found.by_activity, weight)
    if of_activity is not None:
        delta = delta.add_(of_activity)
    delta = _rectified(delta, activity)
    by_mean = (found.by_activity * weight).sum(1).neg_()
    return delta, delta.sum(1), by_drive, by_drive.sum(1), by_mean


def judge(head: Head, output: Tensor, bias: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Base loss (M,), and its gradients by the output and by the head's bias."""
    output = output.add_(bias)
    delta = head.delta(output, y)
    return head.loss(output, y), delta, delta.sum(1)


def balance(base: Tensor, energies: list[Tensor], alpha: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inner loss and the coefficient of Eq. 9, each (M,), from twice the energies (M, U), sums over so many rows.

    And what a row's energy counts in the gradient, (M, 1, 1). Without priors all three are zero.
    """
    if not energies:
        nothing = torch.zeros_like(base)
        return nothing, nothing, nothing
    units = energies[0] if len(energies) == 1 else torch.cat(energies, dim=1)
    inner = units.sum(1) * (0.5 / rows)
    found = coefficient(base, inner, alpha.view(-1))
    return inner, found, (found / rows).view(-1, 1, 1)


def weigh(sums: tuple[Tensor, ...], weight: Tensor) -> tuple[Tensor, ...]:
    """Gradients of priors' vectors from `Expected.sums`, where energies count `weight` (M, 1, 1)."""
    weight = weight[:, :, 0]
    by_mean, *others = sums
    half = 0.5 * weight
    return (by_mean * -weight, *(other * half for other in others))


def scale(
    norms: list[Tensor],
    shared: Tensor,
    clip: float | None,
    schedule: Tensor,
    count: Tensor,
    learning_rate: Tensor,
    weight_decay: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Norm (M,) of each member's gradient, what clipping multiplies it by, the rate and the decay: each (M, 1, 1).

    `norms` are squares (M, parts) of the norms of matrices by themselves, in one or more parts; `shared` (M, 1, P) is
    the gradient of all else.
    """
    norm = torch.linalg.vector_norm(shared, dim=2)
    if norms:
        norm = torch.cat([*norms, norm * norm], dim=1).sum(1, keepdim=True).clamp_(min=0).sqrt()
    norm = norm.squeeze(1)
    factor = torch.ones_like(norm) if clip is None else (clip / (norm + 1e-6)).clamp(max=1.0)
    rate = learning_rate * schedule.index_select(0, count)
    return norm, factor.view(-1, 1, 1), rate, rate * weight_decay


def note(sums: Tensor, losses: list[Tensor], count: Tensor) -> None:
    """Add what a step saw (M,) to the epoch's sums (4, M), and count the step."""
    sums.add_(torch.stack(losses))
    count.add_(1)


def square_sum(gradient: Tensor) -> Tensor:
    """‖G‖² of each member, (M, 1)."""
    return (gradient * gradient).sum((1, 2)).unsqueeze(1)


def product_sum(left: Tensor, right: Tensor) -> Tensor:
    """‖DᵀX‖² = Σ (DDᵀ) ∘ (XXᵀ) of each member, (M, 1): from two Gram matrices (M, B, B)."""
    return (left * right).sum((1, 2)).unsqueeze(1)


def descend(parameter: Tensor, gradient: Tensor, rate: Tensor, left: Tensor | None) -> None:
    """θ ← left · θ − rate · g; None leaves all of it."""
    if left is not None:
        parameter.mul_(left)
    parameter.addcmul_(gradient, rate, value=-1)


def unbias(rate: Tensor, decay: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a step of AdamW needs besides its averages: its rate, its ε, and what it leaves of a parameter.

    Averages that began at zero are too small at first: the mean by 1 − 0.9ᵗ, the squares by 1 − 0.999ᵗ in step t =
    `count` + 1. Numerator and denominator of the step are multiplied by the root of the latter.
    """
    steps = count.double() + 1  # 1 − 0.999 has three digits in float32
    root = (1 - 0.999**steps).sqrt()
    return rate * (root / (1 - 0.9**steps)).to(rate), (1e-8 * root).to(rate), 1 - decay


def adapt(
    parameter: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    factor: Tensor,
    rate: Tensor,
    least: Tensor,
    left: Tensor,
) -> None:
    """A step of AdamW in place; `factor` clips the gradient, the rest is what `unbias` gives.

    All numbers are tensors of the parameter's type: a CPU spends as long on turning one of Python's into such a tensor
    as on the step of a small layer.
    """
    gradient = gradient * factor
    first.lerp_(gradient, 0.1)
    second.lerp_(gradient * gradient, 0.001)
    parameter.mul_(left).addcdiv_(first * rate, second.sqrt().add_(least), value=-1)


def drop(activity: Tensor, key: Tensor, count: Tensor, depth: int, probability: Tensor) -> tuple[Tensor, Tensor]:
    """The activity after dropout, and what it was multiplied by.

    Which units drop follows from each member's `key` (M, 1, 1), the number of the step, the layer and the place in the
    batch alone, by an integer hash: so it depends neither on company nor on the machine, and there is no generator to
    save.
    """
    _, rows, units = activity.shape
    key = mix(mix(mix(key + _DROPOUT) + depth) ^ mix(count))  # seeds next to each other share nothing
    place = torch.arange(rows * units, device=activity.device).view(1, rows, units)
    kept = mix(mix(place) ^ key) >= (probability * 2**32).long()
    factor = kept.to(activity.dtype) / (1 - probability)
    return activity * factor, factor


def mix(x: Tensor) -> Tensor:
    """A 32-bit hash of whole numbers (int64, kept below 2³²) with good avalanche: xor-shifts and odd multipliers."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD & _MASK
    x = (x ^ (x >> 15)) * 0x735A2D97 & _MASK
    return x ^ (x >> 15)


FUNCTIONS = (
    place, take, rectify, expect, expect_dense, backward_plain, backward_expected, backward_dense, judge, balance,
    weigh, scale, note, square_sum, product_sum, descend, unbias, adapt, drop,
)  # fmt: skip
Kernels = SimpleNamespace  # the functions by name
