"""Write docs/equations.md from the docstrings: where each numbered equation of the paper lives in the code.

A docstring is an equation's home if it has the line `Equation N:`, a blank line and a `.. math::` block.

    python docs/equations.py            rewrite the page
    python docs/equations.py --check    exit with 1 if the page is out of date
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import ganns

PAGE = Path(__file__).with_name("equations.md")
NUMBERS = range(2, 17)

_EQUATION = re.compile(r"^Equation (\d+):\n\n\.\. math::(.*(?:\n(?: .*)?)*)", re.MULTILINE)
_INTRODUCTION = """\
# Equations

Every numbered equation of the paper has one home in the code and is tested there against an independent float64
formula: its value and, where it has one, its gradient. This page is generated from the docstrings by
`python docs/equations.py`; a test fails if it is out of date.

Equation 1, weight decay, is the optimizer's: `weight_decay` of a `Recipe` in fleets, and of `torch.optim.SGD` in your
own loop.
"""


class Home(NamedTuple):
    """A docstring that states an equation."""

    name: str
    title: str
    latex: str


_LEFT_OUT = {"ganns.__main__", "ganns.launches"}  # the one is a program, the other needs Triton


def homes() -> dict[int, list[Home]]:
    """The homes of each equation, by number."""
    found: dict[int, list[Home]] = {}
    for name, documented in _documented():
        doc = inspect.cleandoc(documented.__doc__ or "")
        for match in _EQUATION.finditer(doc):
            first, _, rest = match[2].partition("\n")
            latex = "\n".join(part for part in (first.strip(), dedent(rest).strip()) if part)
            found.setdefault(int(match[1]), []).append(Home(name, doc.partition("\n")[0], latex))
    return dict(sorted(found.items()))


def _documented() -> Iterator[tuple[str, Any]]:
    """Every function, class and method defined in the package, under the name that the API page uses."""
    for info in pkgutil.walk_packages(ganns.__path__, "ganns."):
        if info.name in _LEFT_OUT:
            continue
        module = importlib.import_module(info.name)
        for key, value in vars(module).items():
            if not (inspect.isclass(value) or inspect.isfunction(value)) or value.__module__ != module.__name__:
                continue
            name = f"ganns.{key}" if getattr(ganns, key, None) is value else f"{module.__name__}.{key}"
            yield name, value
            for member, method in vars(value).items() if inspect.isclass(value) else ():
                method = getattr(method, "__func__", method)  # class and static methods
                if inspect.isfunction(method) or isinstance(method, property):
                    yield f"{name}.{member}", method


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION]
    for number, found in homes().items():
        for name, title, latex in found:
            parts.append(
                f"## Equation {number}\n\n{title}\n\n```{{math}}\n{latex}\n```\n\n"
                f"- Home: {{py:obj}}`{name}`\n- Test: `tests/test_equations.py::test_equation_{number}_*`\n"
            )
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.name} is out of date: run python docs/equations.py")
