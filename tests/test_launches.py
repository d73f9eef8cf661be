"""Kernels written by hand against the plain functions of the same names."""

import os

import pytest
import torch
from torch.testing import assert_close

from ganns import kernels

triton = pytest.importorskip("triton", reason="needs Triton, which comes with PyTorch for GPUs")
if not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"):
    pytest.skip("needs a GPU (or TRITON_INTERPRET=1)", allow_module_level=True)

from ganns import launches  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [(1, 1, 1), (3, 8, 5), (2, 64, 100), (5, 70, 129)]


def draw(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.float64)


def assert_same(name, *arguments):
    """The same values, whatever either does in place."""
    copies = [argument.clone() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    assert_close(
        getattr(launches, name)(*arguments), getattr(kernels, name)(*copies), rtol=1e-9, atol=1e-10, check_stride=False
    )


@pytest.mark.parametrize(("members", "rows", "units"), SHAPES)
@pytest.mark.parametrize("sparse", [True, False])
def test_expect(members, rows, units, sparse):
    vectors = 8 * draw(members, 4 * units)  # as they lie in a stack: side by side
    weight, mean, bias, _ = vectors.unsqueeze(1).split(units, dim=2)
    floor = draw(members, 1, 1).abs() + 0.1
    assert_same("expect", 3 * draw(members, rows, units), weight if sparse else None, mean, bias, floor)


@pytest.mark.parametrize(("members", "rows", "units"), SHAPES)
def test_backward(members, rows, units):
    activities = draw(members, rows, 2 * units).relu()
    by_activity = draw(members, rows, 2 * units)
    for place in range(2):
        own = activities.split(units, 2)[place], by_activity.split(units, 2)[place]
        plain, expected = draw(members, rows, units), draw(members, rows, units)
        for name, upstream, rest in (
            ("backward_plain", plain, own[:1]),
            ("backward_expected", expected, (*own, draw(members, 1, 1))),
        ):
            wanted = getattr(kernels, name)(upstream.clone(), *rest)
            assert_close(getattr(launches, name)(upstream, *rest), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("members", "rows", "units"), SHAPES)
def test_rectify(members, rows, units):
    z, bias = draw(members, rows, units), draw(members, 3 * units).unsqueeze(1)[:, :, units : 2 * units]
    out = torch.zeros(members, rows, 2 * units, device=DEVICE, dtype=torch.float64)
    launches.rectify(z, bias, out[:, :, units:])
    assert_close(out[:, :, units:], (z + bias).relu())
    assert not out[:, :, :units].any()
    assert_close(launches.rectify(z, bias, z), out[:, :, units:])


@pytest.mark.parametrize("scalings", [1, 3])
@pytest.mark.parametrize("features", [1, 5, 5000])
def test_take(scalings, features):
    pictures = torch.randint(0, 256, (20, features), dtype=torch.uint8, device=DEVICE)
    chosen = torch.randint(0, 20, (3, 17), device=DEVICE)
    for part in chosen.split(7, dim=1):
        assert_same("take", pictures, part, draw(scalings, 1, features), draw(scalings, 1, features))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 40, 50), (2, 500, 300)])
def test_square_sum(shape):
    gradient = draw(*shape)
    assert_close(launches.square_sum(gradient).sum(1, keepdim=True), kernels.square_sum(gradient))
