"""Numbers as people read them."""

import math


def number(value: float, digits: int = 4) -> str:
    """So many significant digits, without an exponent unless it is far from 1.

    >>> number(16000.0), number(0.0584), number(-2.0), number(1.2e-7), number(126.201)
    ('16,000', '0.0584', '-2', '1.2e-07', '126.2')
    """
    if not math.isfinite(value) or value == 0:
        return "–" if not math.isfinite(value) else "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, like: float) -> str:
    """With as many places as show three digits of a number it stands beside.

    >>> fixed(5.4249, like=0.5124), fixed(1234.5, like=1000.0)
    ('5.425', '1,234')
    """
    if not math.isfinite(value):
        return "–"
    places = 3 if not like or not math.isfinite(like) else min(6, max(0, 2 - math.floor(math.log10(abs(like)))))
    return f"{value:,.{places}f}"


def percent(share: float) -> str:
    """A share as per cent, to the tenth.

    >>> percent(0.9), percent(0.905)
    ('90 %', '90.5 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"
