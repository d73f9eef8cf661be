"""How much variance a prior expects: the variance models as pure functions of tensors."""

import torch
import torch.nn.functional as F
from torch import Tensor


def softplus(x: Tensor) -> Tensor:
    r"""Turns any number into a positive one.

    Equation 10:

    .. math:: \zeta(x) = \log(1 + e^{x})

    Beyond 40 the difference from x is below what float64 can tell.
    """
    return F.softplus(x, threshold=40.0)


def constant_variance(bias: Tensor, floor: float) -> Tensor:
    """σ² = ζ(b) + v: the same for every input, similar to a bias."""
    return softplus(bias).add_(floor)


def sparse_variance(activity: Tensor, weight: Tensor, bias: Tensor, floor: float) -> Tensor:
    r"""Each unit's variance from its own activity.

    Equation 11:

    .. math:: \sigma^{2}_{sparse} = \zeta(a \odot w + b) + v
    """
    return softplus(torch.addcmul(bias, activity, weight)).add_(floor)


def dense_variance(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor,
    floor: float,
    sigma: Tensor | None,
    sigma_weight: Tensor | None,
) -> Tensor:
    r"""Each unit's variance from everything in the previous layer: its activities and its standard deviations.

    Equation 12:

    .. math:: \sigma^{2}_{dense} = \zeta(W a^{(l-1)} + K \sigma^{(l-1)} + b) + v

    Args:
        inputs: a of the previous layer, undropped; shape (..., in).
        weight: W, shape (out, in).
        bias: b, shape (out,).
        floor: v.
        sigma: σ of the previous layer, shape (..., in); None in the first layer, as is K.
        sigma_weight: K, shape (out, in).
    """
    drive = F.linear(inputs, weight)
    if sigma is not None and sigma_weight is not None:
        drive = drive + F.linear(sigma.to(inputs.dtype), sigma_weight)
    return softplus(drive + bias).add_(floor)
