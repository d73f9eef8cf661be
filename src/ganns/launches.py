"""Elementwise parts of a fleet's step as Triton kernels, where the compiler would take several launches for one.

A compiler does not fuse a sum over rows with what it is a sum of, so each of these would be two passes over memory. The
functions have the names and the meaning of those in `ganns.kernels`, which are what they are tested against.

A program works on a block of one member's units and goes through the rows of the batch.
"""
# Triton is there where PyTorch is built for GPUs, and checkers do not know what its decorator makes of a function.
# pyright: reportMissingImports=false, reportIndexIssue=false

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ganns.kernels import Expected

_ROWS, _UNITS, _PARTS, _WIDEST = 64, 32, 64, 4096


def take(x: Tensor, chosen: Tensor, mean: Tensor, inverse: Tensor) -> Tensor:
    """As `ganns.kernels.take`."""
    (members, rows), features = chosen.shape, x.shape[1]
    chosen = chosen.contiguous()  # an evaluation gives a few columns of a wider matrix
    out = torch.empty(members, rows, features, device=x.device, dtype=mean.dtype)
    block = min(_WIDEST, triton.next_power_of_2(features))
    grid = (members * rows, triton.cdiv(features, block))
    own = 0 if len(mean) == 1 else mean.stride(0)
    _take[grid](x, chosen, mean, inverse, out, rows, features, own, BLOCK=block)
    return out


@triton.jit
def _take(x, chosen, mean, inverse, out, rows, features, own, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = feature < features
    row = tl.load(chosen + place)
    shift = (place // rows) * own
    centre = tl.load(mean + shift + feature, mask=inside)
    values = tl.load(x + row * features + feature, mask=inside).to(centre.dtype)
    values = (values - centre) * tl.load(inverse + shift + feature, mask=inside)
    tl.store(out + place * features + feature, values, mask=inside)


def rectify(z: Tensor, bias: Tensor, out: Tensor) -> Tensor:
    """As `ganns.kernels.rectify`."""
    members, rows, units = z.shape
    _rectify[_grid(units, members)](
        z, bias, out, rows, units, bias.stride(0), out.stride(0), out.stride(1), ROWS=_ROWS, BLOCK=_UNITS
    )
    return out


@triton.jit
def _rectify(z, bias, out, rows, units, bias_member, out_member, out_row, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    member = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < units
    b = tl.load(bias + member * bias_member + unit, mask=inside)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        values = tl.load(z + (member * rows + row)[:, None] * units + unit[None, :], mask=mask) + b[None, :]
        tl.store(out + member * out_member + row[:, None] * out_row + unit[None, :], tl.maximum(values, 0), mask=mask)


def expect(activity: Tensor, weight: Tensor | None, mean: Tensor, bias: Tensor, floor: Tensor) -> Expected:
    """As `ganns.kernels.expect`."""
    members, rows, units = activity.shape
    by_activity = torch.empty_like(activity)
    found = torch.empty(4, members, units, device=activity.device, dtype=activity.dtype)
    _expect[_grid(units, members)](
        activity, mean if weight is None else weight, mean, bias, floor, by_activity, found,
        rows, units, members * units, mean.stride(0), SPARSE=weight is not None, ROWS=_ROWS, BLOCK=_UNITS,
    )  # fmt: skip
    energy, *sums = found
    return Expected(energy, by_activity, tuple(sums) if weight is not None else tuple(sums[:2]))


@triton.jit
def _expect(
    activity, weight, mean, bias, floor, by_activity, found, rows, units, kind, vector_member,
    SPARSE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < units
    mu = tl.load(mean + member * vector_member + unit, mask=inside, other=0.0)
    b = tl.load(bias + member * vector_member + unit, mask=inside, other=0.0)
    w = tl.load(weight + member * vector_member + unit, mask=inside, other=0.0)
    v = tl.load(floor + member)
    energy, by_mean, by_bias, by_weight = tl.zeros_like(mu), tl.zeros_like(mu), tl.zeros_like(mu), tl.zeros_like(mu)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        place = (member * rows + row)[:, None] * units + unit[None, :]
        a = tl.load(activity + place, mask=mask, other=0.0)
        drive = tl.broadcast_to(b[None, :], (ROWS, BLOCK))
        if SPARSE:
            drive += a * w[None, :]
        shrunk = tl.exp(-tl.abs(drive))
        variance = tl.maximum(drive, 0) + tl.log(1 + shrunk) + v
        slope = tl.where(drive > 0, 1.0, shrunk) / ((1 + shrunk) * variance)
        deviation = a - mu[None, :]
        scaled = deviation / variance
        square = deviation * scaled
        by_drive = slope * (1 - square)
        energy += tl.sum(tl.where(mask, square + tl.log(variance), 0.0), 0)
        by_mean += tl.sum(tl.where(mask, scaled, 0.0), 0)
        by_bias += tl.sum(tl.where(mask, by_drive, 0.0), 0)
        if SPARSE:
            by_weight += tl.sum(by_drive * a, 0)
            scaled += 0.5 * by_drive * w[None, :]
        tl.store(by_activity + place, scaled, mask=mask)
    found += member * units + unit
    tl.store(found, energy, mask=inside)
    tl.store(found + kind, by_mean, mask=inside)
    tl.store(found + 2 * kind, by_bias, mask=inside)
    tl.store(found + 3 * kind, by_weight, mask=inside)


def backward_plain(upstream: Tensor, activity: Tensor) -> tuple[Tensor, Tensor]:
    """As `ganns.kernels.backward_plain`."""
    return _backwards(upstream, activity, None, None)


def backward_expected(upstream: Tensor, activity: Tensor, by_activity: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """As `ganns.kernels.backward_expected`."""
    return _backwards(upstream, activity, by_activity, weight)


def _backwards(upstream: Tensor, activity: Tensor, by_activity: Any, weight: Any) -> tuple[Tensor, Tensor]:
    members, rows, units = upstream.shape
    by_bias = torch.empty(members, units, device=upstream.device, dtype=upstream.dtype)
    expected = by_activity is not None
    _backward[_grid(units, members)](
        upstream, activity, by_activity if expected else activity, weight if expected else by_bias, by_bias,
        rows, units, activity.stride(0), activity.stride(1), EXPECTED=expected, ROWS=_ROWS, BLOCK=_UNITS,
    )  # fmt: skip
    return upstream, by_bias


@triton.jit
def _backward(
    upstream, activity, by_activity, weight, by_bias, rows, units, activity_member, activity_row,
    EXPECTED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < units
    counts = tl.load(weight + member)
    total = tl.zeros((BLOCK,), by_bias.dtype.element_ty)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        place = upstream + (member * rows + row)[:, None] * units + unit[None, :]
        theirs = member * activity_member + row[:, None] * activity_row + unit[None, :]
        delta = tl.load(place, mask=mask, other=0.0)
        if EXPECTED:
            delta += counts * tl.load(by_activity + theirs, mask=mask, other=0.0)
        delta = tl.where(tl.load(activity + theirs, mask=mask, other=0.0) > 0, delta, 0.0)
        tl.store(place, delta, mask=mask)
        total += tl.sum(delta, 0)
    tl.store(by_bias + member * units + unit, total, mask=inside)


def square_sum(gradient: Tensor) -> Tensor:
    """As `ganns.kernels.square_sum`, in parts (M, parts)."""
    members, size = len(gradient), gradient[0].numel()
    parts = torch.empty(members, _PARTS, device=gradient.device, dtype=gradient.dtype)
    _square_sum[(_PARTS, members)](gradient, parts, size, triton.cdiv(size, _PARTS), PARTS=_PARTS, BLOCK=1024)
    return parts


@triton.jit
def _square_sum(gradient, parts, size, share, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    part, member = tl.program_id(0), tl.program_id(1).to(tl.int64)
    total = tl.zeros((BLOCK,), parts.dtype.element_ty)
    end = tl.minimum(size, (part + 1) * share)
    for start in range(part * share, end, BLOCK):
        place = start + tl.arange(0, BLOCK)
        values = tl.load(gradient + member * size + place, mask=place < end, other=0.0)
        total += values * values
    tl.store(parts + member * PARTS + part, tl.sum(total, 0))


def _grid(units: int, members: int) -> tuple[int, int]:
    return triton.cdiv(units, _UNITS), members


FUNCTIONS = (take, rectify, expect, backward_plain, backward_expected, square_sum)
