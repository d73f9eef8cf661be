"""The sparse Gaussian prior in one operation, for eager training.

Left to autograd, Eqs. 7 and 11 take some twenty small operations a layer, forth and back. Their gradient has a closed
form that falls out of the forward pass, which saves a tenth of a training step where the network has few inputs
(`benchmarks/step.py`). The plain formulas stay the reference, and serve whatever is rare.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]

from ganns.families import Gaussian
from ganns.variance import sparse_variance


def applies(activity: Tensor, mean: Tensor) -> bool:
    """Whether gradients are wanted, and nobody (a compiler, vmap, autocast) has to see inside."""
    return (
        torch.is_grad_enabled()
        and activity.dtype == mean.dtype
        and not torch.compiler.is_compiling()
        and not _functorch.is_functorch_wrapped_tensor(activity)
        and not _functorch.is_functorch_wrapped_tensor(mean)
    )


def sparse_gaussian(
    activity: Tensor, mean: Tensor, weight: Tensor, bias: Tensor, floor: float
) -> tuple[Tensor, Tensor]:
    """σ² of Eq. 11, shaped like the activity, and the sum of the energies of Eq. 7.

    Mean, weight and bias hold one number a unit and broadcast against the activity.
    """
    return _SparseGaussian.apply(activity, mean, weight, bias, floor)  # pyright: ignore[reportReturnType]


class _SparseGaussian(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        activity, mean, weight, bias, floor = inputs
        # `buffer` serves three times: the fewer bytes move, the faster this is.
        drive = torch.addcmul(bias, activity, weight)  # u, so that σ² = ζ(u) + v
        variance = F.softplus(drive, threshold=40.0).add_(floor)
        slope = drive.sigmoid_()  # ζ'(u)
        buffer = variance.log()
        energy_sum = buffer.sum()
        deviation = torch.sub(activity, mean, out=buffer)  # d
        precision = variance.reciprocal()
        by_activity = deviation * precision  # d/σ²
        energy_sum = energy_sum.add_(deviation.mul_(by_activity).sum()).mul_(0.5)
        by_mean = by_activity.sum_to_size(mean.shape)
        twice_by_drive = slope.mul_(precision.addcmul_(by_activity, by_activity, value=-1))
        twice_by_bias = twice_by_drive.sum_to_size(mean.shape)
        twice_by_weight = torch.mul(twice_by_drive, activity, out=buffer).sum_to_size(mean.shape)
        by_activity.addcmul_(twice_by_drive, weight, value=0.5)
        ctx.save_for_backward(activity, mean, weight, bias, by_activity, by_mean, twice_by_weight, twice_by_bias)
        ctx.floor = floor
        ctx.set_materialize_grads(False)
        return variance, energy_sum

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        of_variance, of_sum = gradients
        *inputs, by_activity, by_mean, twice_by_weight, twice_by_bias = ctx.saved_tensors
        if of_variance is None and of_sum is None:
            return (None,) * 5
        if of_variance is None and of_sum is not None and not torch.is_grad_enabled():
            half = 0.5 * of_sum
            return by_activity * of_sum, by_mean * -of_sum, twice_by_weight * half, twice_by_bias * half, None
        # Somebody differentiates the variance itself, or twice.
        twice = torch.is_grad_enabled()
        with torch.enable_grad():
            inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
            activity, mean, weight, bias = inputs
            variance = sparse_variance(activity, weight, bias, ctx.floor)
            energy_sum = Gaussian().energy(activity - mean, variance).sum()
            wanted = [(variance, of_variance), (energy_sum, of_sum)]
            outputs, weights = zip(*(pair for pair in wanted if pair[1] is not None), strict=True)
            found = torch.autograd.grad(outputs, inputs, weights, create_graph=twice, allow_unused=True)
        return (*found, None)
