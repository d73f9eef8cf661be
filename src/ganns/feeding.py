"""The rows that a fleet learns from: held once on the device, divided and scaled for each member on the way."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ganns.calling import check_finite
from ganns.kernels import Kernels
from ganns.recipes import Member, Recipe, Split, split_rows

_ROWS_AT_A_TIME = 4096


class Scaling(NamedTuple):
    """How one member's features and targets are scaled; a scaled value is (value − mean) / scale.

    `mean` and `scale` hold one number a feature, `target_mean` and `target_scale` one a target (empty for classes).
    """

    mean: Tensor
    scale: Tensor
    target_mean: Tensor
    target_scale: Tensor

    def features(self, x: Tensor | np.ndarray) -> Tensor:
        """Rows of raw features, (N, ...), as the member's network takes them: (N, features)."""
        return (torch.as_tensor(x).flatten(1).to(self.mean) - self.mean) / self.scale

    def targets(self, y: Tensor | np.ndarray) -> Tensor:
        """Raw targets (N, targets) as the member's network predicts them."""
        return (torch.as_tensor(y).to(self.target_mean) - self.target_mean) / self.target_scale

    def to(self, device: torch.device | str) -> "Scaling":
        """The same on a device."""
        return Scaling(*(numbers.to(device) for numbers in self))


class Rows(NamedTuple):
    """Checked data: x (N, features), floating or bytes; y (N, targets), or labels (N,) for classification."""

    x: Tensor
    y: Tensor

    def to(self, device: torch.device) -> "Rows":
        """The same on a device."""
        return Rows(self.x.to(device), self.y.to(device))

    @property
    def features(self) -> int:
        """Numbers in a row."""
        return self.x.shape[1]

    @property
    def targets(self) -> int:
        """Numbers in a target, or classes."""
        return self.y.shape[1] if self.y.ndim == 2 else int(self.y.max()) + 1


def check_rows(x: Any, y: Any, recipe: Recipe, dtype: torch.dtype) -> Rows:
    """The data as tensors, or an error that says what is wrong with them."""
    x, y = _tensor(x), _tensor(y)
    if x.ndim < 2 or len(x) == 0 or x[0].numel() == 0:
        raise ValueError(f"x has shape {tuple(x.shape)}; give rows first and at least one row and feature.")
    if len(y) != len(x):
        raise ValueError(f"y has {len(y)} rows, but x has {len(x)}.")
    x = x.flatten(1) if x.dtype == torch.uint8 else x.flatten(1).to(dtype)
    check_finite("x", x)
    first = x[:1]
    if all(bool((part == first).all()) for part in x.split(_ROWS_AT_A_TIME)):
        raise ValueError(f"all {x.shape[1]} features of x are constant; there is nothing to learn from.")
    if recipe.task == "classification":
        if y.ndim != 1 or y.is_floating_point() or y.dtype == torch.bool:
            raise ValueError(
                f"y has shape {tuple(y.shape)} and {y.dtype}; give class numbers, (N,) of integers from 0."
            )
        y = y.long()
        low, high = int(y.min()), int(y.max())
        if low != 0 or not 0 < high < len(y):
            raise ValueError(
                f"y has labels from {low} to {high} in {len(y)} rows; number the classes from 0 without gaps; there "
                "must be two or more."
            )
    else:
        y = (y.unsqueeze(1) if y.ndim == 1 else y).to(dtype)
        if y.ndim != 2 or y.shape[1] == 0:
            raise ValueError(f"y has shape {tuple(y.shape)}; targets are (N,) or (N, targets).")
        check_finite("y", y)
    return Rows(x.contiguous(), y.contiguous())  # one row after another, as batches read them


def _tensor(values: Any) -> Tensor:
    if isinstance(values, np.ndarray) and (not values.flags.writeable or min(values.strides, default=0) < 0):
        values = values.copy()  # tensors are writeable and run forwards
    return torch.as_tensor(values).detach()


def divide(count: int, recipe: Recipe, members: Sequence[Member]) -> list[Split]:
    """Each member's rows for training, validation and test."""
    made = {member.split: split_rows(count, member.split or 0, recipe.split) for member in members}
    splits = [made[member.split] for member in members]
    if recipe.batch_size > len(splits[0].train):
        raise ValueError(
            f"batch_size={recipe.batch_size}, but only {len(splits[0].train)} of {count} rows are for training; use a "
            "smaller batch or more rows."
        )
    return splits


def scalings(
    rows: Rows, recipe: Recipe, members: Sequence[Member], splits: Sequence[Split], dtype: torch.dtype
) -> list[Scaling]:
    """Each member's scaling, from its training rows alone, in the precision that it trains in."""
    made: dict[int | None, Scaling] = {}
    for member, split in zip(members, splits, strict=True):
        if member.split not in made:
            made[member.split] = _scaling(rows, recipe, torch.from_numpy(split.train).to(rows.x.device), dtype)
    return [made[member.split] for member in members]


def _scaling(rows: Rows, recipe: Recipe, train: Tensor, dtype: torch.dtype) -> Scaling:
    zeros, ones = (make(rows.features, device=rows.x.device, dtype=dtype) for make in (torch.zeros, torch.ones))
    match recipe.features:
        case "standardised":
            mean, scale = _moments(rows.x, train, dtype)
        case "unit":
            mean, scale = zeros, 255 * ones
        case _:
            mean, scale = zeros, ones
    if recipe.task == "classification":
        return Scaling(mean, scale, zeros[:0], ones[:0])
    if recipe.standardise_targets:
        return Scaling(mean, scale, *_moments(rows.y, train, dtype))
    return Scaling(mean, scale, zeros.new_zeros(rows.targets), ones.new_ones(rows.targets))


def _moments(values: Tensor, chosen: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column over the chosen rows; a constant column is only centred."""
    first = values[chosen[0]].double()
    total, squares = torch.zeros_like(first), torch.zeros_like(first)
    for part in chosen.split(_ROWS_AT_A_TIME):
        shifted = values[part].double() - first  # exact where a column is constant
        total += shifted.sum(0)
        squares += shifted.square().sum(0)
    mean = total / len(chosen)
    variance = (squares / len(chosen) - mean.square()).clamp(min=0)
    constant = variance <= 1e-12 * squares.clamp(min=torch.finfo(torch.float64).tiny) / len(chosen)
    scale = torch.where(constant, 1.0, variance.sqrt())
    return (first + mean).to(dtype), scale.to(dtype)


class Feed:
    """Batches for M members at once.

    Args:
        rows: the data, on the device.
        splits: M of them.
        scaled: M of them.
        kernels: elementwise functions.
    """

    def __init__(self, rows: Rows, splits: Sequence[Split], scaled: Sequence[Scaling], kernels: Kernels):
        self.rows, self.kernels = rows, kernels
        device = rows.x.device
        self.train = torch.from_numpy(np.stack([split.train for split in splits])).to(device)
        self.validation = torch.from_numpy(np.stack([split.validation for split in splits])).to(device)
        # Members often share one scaling; then it is kept once and broadcast.
        same = all(scaling is scaled[0] for scaling in scaled)
        mean, scale, target_mean, target_scale = (
            torch.stack(parts[:1] if same else parts).unsqueeze(1) for parts in zip(*scaled, strict=True)
        )
        self.mean, self.inverse = mean, scale.reciprocal()
        self.target_mean, self.target_scale, self.target_inverse = target_mean, target_scale, target_scale.reciprocal()

    def batch(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Features (M, B, features) and targets (M, B, ...) of rows (M, B), scaled."""
        x = self.kernels.take(self.rows.x, chosen, self.mean, self.inverse)
        if self.rows.y.ndim == 1:
            return x, self.rows.y[chosen]
        return x, self.kernels.take(self.rows.y, chosen, self.target_mean, self.target_inverse)
