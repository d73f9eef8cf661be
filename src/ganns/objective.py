"""What a network with priors is trained on: the inner loss, and its balance with the task's own."""

import math
import warnings
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]

from ganns.tracing import State


def inner_loss(states: Sequence[State]) -> Tensor:
    r"""How unexpected the activity of a batch is: a scalar.

    Equation 7:

    .. math:: \mathcal{L}_I = \sum_{i,k} \tfrac12 \left( \frac{(\mu^{(k)} - a_i^{(k)})^2}{\sigma_i^{(k)^2}}
        + \ln \sigma_i^{(k)^2} \right)

    with the sum over the units k of all layers and the mean over rows i (and positions). Eq. 9 cancels that scale.
    """
    if not states:
        raise ValueError("states=[]: no prior was seen; build a GaussianMLP or use ganns.insert before ganns.trace.")
    return torch.stack([_unit_sum(state) for state in states]).sum()


def _unit_sum(state: State) -> Tensor:
    energy_sum = state.energy().sum() if state.energy_sum is None else state.energy_sum
    return energy_sum * (state.units / state.activity.numel())


def no_gradient(x: Tensor) -> Tensor:
    r"""The same value, through which no gradient flows.

    Equation 8:

    .. math:: \nabla_\theta \Theta(g(\theta)) = 0
    """
    return x.detach()


def coefficient(base: Tensor, inner: Tensor, alpha: float | Tensor = 1.0, max_weight: float = 1e6) -> Tensor:
    """The factor of the inner loss in Eq. 9, α times the ratio of the losses: it shows how training is balanced.

    The inner loss may cross zero, where the ratio has a pole; it is kept at `max_weight` or below.
    """
    base, inner = no_gradient(base).abs(), no_gradient(inner).abs()
    return alpha * (base / inner.clamp(min=torch.finfo(inner.dtype).tiny)).clamp(max=max_weight)


def total_loss(
    base: Tensor,
    inner: Tensor,
    alpha: float = 1.0,
    *,
    max_weight: float = 1e6,
    rows: int = 1,
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    r"""The task's loss and the inner loss, balanced so that only α decides how much each counts.

    Equation 9:

    .. math:: \mathcal{L} = \mathcal{L}_B + \alpha\, \Theta\!\left( \left| \frac{\mathcal{L}_B}{\mathcal{L}_I} \right|
        \right) \mathcal{L}_I

    On several devices pass the process `group` and how many `rows` this process has. The ratio is then formed from the
    means over all rows, and each process weighs its part so that the gradients that DDP or FSDP averages are those of
    one process with the joined batch; the value is the joined one everywhere.

    Args:
        base: L_B, a mean over rows.
        inner: L_I, from `inner_loss`.
        alpha: how much learning the priors counts; 0 and above.
        max_weight: bound on the ratio where L_I crosses zero; a warning says so the first time.
        rows: rows behind `base` on this process; only their proportion between processes matters.
        group: processes to join, such as `torch.distributed.group.WORLD`; None: this process alone.

    >>> total_loss(torch.tensor(2.0), torch.tensor(-4.0), alpha=0.5)
    tensor(1.)
    """
    if not alpha >= 0:
        raise ValueError(f"alpha={alpha}: the weight of the inner loss must be 0 or above.")
    if base.requires_grad and not inner.requires_grad:
        raise ValueError(
            "inner has no gradient while base has one, so the priors would learn nothing: call ganns.trace with "
            "gradients on, and checkpoint activations with use_reentrant=False."
        )
    base_mean, inner_mean, share = no_gradient(base), no_gradient(inner), 1.0
    if group is not None:
        base_mean, inner_mean, total = _joined(base_mean * rows, inner_mean * rows, rows, group)
        share = rows * dist.get_world_size(group) / total
    _check_losses(base_mean, inner_mean, max_weight)
    weight = coefficient(base_mean, inner_mean, alpha, max_weight)
    local = share * (base + weight * inner)
    return local if group is None else local + no_gradient(base_mean + weight * inner_mean - local)


def accumulate(
    parts: Sequence[Callable[[], tuple[Tensor, Tensor, int]]],
    alpha: float = 1.0,
    *,
    max_weight: float = 1e6,
    group: dist.ProcessGroup | None = None,
) -> Tensor:
    """Backpropagate Eq. 9 of one large batch in parts that fit into memory: exactly, in two passes.

    Each part returns (base, inner, rows) of its rows. The first pass, without gradients, forms the ratio over all of
    them; the second repeats each part with the same random numbers and adds its share to the gradients. Layers that
    learn in the forward pass, such as BatchNorm, see every part twice.

    Returns the value of the total loss; the gradients are in `.grad`.
    """
    with torch.random.fork_rng(), torch.no_grad():
        seen = [part() for part in parts]
    if not seen:
        raise ValueError("parts=[]: give at least one part of the batch.")
    base_sum = torch.stack([base * rows for base, _, rows in seen]).sum()
    inner_sum = torch.stack([inner * rows for _, inner, rows in seen]).sum()
    base_mean, inner_mean, total = _joined(base_sum, inner_sum, sum(rows for _, _, rows in seen), group)
    _check_losses(base_mean, inner_mean, max_weight)
    weight = coefficient(base_mean, inner_mean, alpha, max_weight)
    world = 1 if group is None else dist.get_world_size(group)
    for part in parts:
        base, inner, rows = part()
        (rows * world / total * (base + weight * inner)).backward()
    return base_mean + weight * inner_mean


def log_likelihood(target: Tensor, states: Sequence[State]) -> Tensor:
    r"""Log-likelihood of each row under the network: of its target, and of every activity on the way.

    Equation 6:

    .. math:: \ln P(d_i \mid x_i) = \ln P(d_i \mid s_i^{(N-1)}) + \sum_k \ln P(s_i^{(k)} \mid s_i^{(k-1)})

    Args:
        target: ln P(d|s) of each row's target given the last hidden layer; shape (N,).
        states: the states of a trace.
    """
    return target + sum(state.log_likelihood().flatten(1).sum(1) for state in states)


def likelihood(target: Tensor, states: Sequence[State]) -> Tensor:
    r"""Likelihood of each row under the network.

    Equation 4:

    .. math:: P(d_i \mid x_i) = P(d_i \mid s_i^{(N-1)})\, P(s_i^{(N-1)} \mid s_i^{(N-2)}) \cdots P(s_i^{(1)} \mid x_i)

    With hundreds of units it underflows: compute with `log_likelihood`. Arguments as there, `target` included.
    """
    return log_likelihood(target, states).exp()


def _joined(base: Tensor, inner: Tensor, rows: int, group: dist.ProcessGroup | None) -> tuple[Tensor, Tensor, float]:
    """Means of two sums over rows, and the number of rows, over all processes of a group."""
    sums = torch.stack([base.double(), inner.double(), base.new_tensor(rows, dtype=torch.float64)])
    if group is not None:
        dist.all_reduce(sums, group=group)
    total = sums[2].item()
    return (sums[0] / total).to(base.dtype), (sums[1] / total).to(inner.dtype), total


def _check_losses(base: Tensor, inner: Tensor, max_weight: float) -> None:
    """Refuse NaN and inf, and say when the guard acts: wherever values can be looked at."""
    if torch.compiler.is_compiling() or _functorch.is_functorch_wrapped_tensor(inner):
        return
    values = {"base": base.item(), "inner": inner.item()}
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(
                f"{name}={value}: the loss is not finite. Look for NaN or inf in the data, lower the learning rate, or "
                "clip the gradients."
            )
    if abs(values["base"]) > max_weight * abs(values["inner"]):
        warnings.warn(
            f"the inner loss ({values['inner']:.3g}) is so small beside the base ({values['base']:.3g}) that their "
            f"ratio is kept at max_weight={max_weight:g}. This is harmless where the inner loss crosses zero; if it "
            "lasts, standardise the targets or raise max_weight.",
            stacklevel=3,
        )
