"""Numbers as people read them, where the docstrings' examples end."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganns.table.wording import fixed, number


@given(st.floats(-12, 12).map(lambda power: 10**power), st.sampled_from([-1, 1]), st.integers(2, 6))
def test_a_number_keeps_its_digits(size, sign, digits):
    shown = number(sign * size, digits)
    assert float(shown.replace(",", "")) == pytest.approx(sign * size, rel=0.51 * 10 ** (1 - digits))
    assert ("e" in shown) == (not 1e-4 <= size < 1e9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_a_dash(value):
    assert number(value) == fixed(value, like=1.0) == "–"
    assert fixed(2.0, like=value) == "2.000"


def test_zero_has_no_digits_to_show():
    assert number(0.0) == "0"
    assert fixed(0.25, like=0.0) == "0.250"
