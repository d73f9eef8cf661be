"""A page's values to HTML: a template, one stylesheet, one script, and the charts' library if there is a chart."""

import math
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ganns.files import write_atomically
from ganns.page.blocks import Block, Cell, Chart, Code, Column, Page, Table, Text
from ganns.page.charts import library, payload

_ANCHOR = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


def render(page: Page) -> str:
    """The page as one HTML document that requests nothing from anywhere.

    >>> from ganns.page import Fact, Page, Section, Text, render
    >>> html = render(Page("A < B", "It is.", [Fact("rows", "7")], [Section("Why", [Text(["So."])], "why")]))
    >>> "A &lt; B" in html and "://" not in html
    True
    """
    _check(page)
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("a report needs jinja2; install ganns[study].") from error
    environment = Environment(
        loader=FunctionLoader(_part),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["part"] = _part
    environment.tests.update({kind.__name__.lower(): _is(kind) for kind in (Text, Code, Table, Chart)})
    environment.filters.update(cells=cells, columns=columns, payload=payload)
    charts = any(isinstance(block, Chart) for block in _blocks(page))
    return environment.get_template("page.html").render(page=page, library=library() if charts else "")


def save(page: Page, path: str | Path) -> Path:
    """Write the page to a file, whole or not at all."""
    path = Path(path)
    write_atomically(path, render(page).encode())
    return path


def _part(name: str) -> str:
    return resources.files("ganns.page").joinpath("template", name).read_text(encoding="utf-8")


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _blocks(page: Page) -> Iterator[Block]:
    if page.figure:
        yield page.figure
    for section in page.sections:
        yield from section.blocks


def columns(table: Table) -> list[Column]:
    """Headings, with strings made into columns."""
    return [
        column if isinstance(column, Column) else Column(column, numeric=number > 0)
        for number, column in enumerate(table.columns)
    ]


def cells(row: Sequence[Cell | str | float | None]) -> list[Cell]:
    """A row, with strings and numbers made into cells."""
    return [_cell(value) for value in row]


def _cell(value: Cell | str | float | None) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("", sort=math.nan)
    if isinstance(value, str):
        return Cell(value)
    if isinstance(value, float) and not math.isfinite(value):
        return Cell("–", sort=math.nan, faint=True)
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.4g}", sort=value)


def _check(page: Page) -> None:
    anchors = [section.anchor for section in page.sections]
    for anchor in anchors:
        if not _ANCHOR.fullmatch(anchor) or anchors.count(anchor) > 1 or anchor in ("content", "theme", "first"):
            raise ValueError(f"anchor={anchor!r}: give each section one of its own, of letters, digits and hyphens.")
    for block in _blocks(page):
        if isinstance(block, Table):
            for row in block.rows:
                if len(row) != len(block.columns):
                    raise ValueError(
                        f"table {block.caption!r}: a row has {len(row)} cells for {len(block.columns)} columns; give "
                        "one cell a column."
                    )
