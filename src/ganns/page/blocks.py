"""What a page is made of: values without behaviour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A number on the first screen: what it is, how large, and what to hold it against."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Text:
    """Paragraphs, as plain text."""

    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Something to type or to copy, as it is."""

    text: str
    label: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: its heading.
        numeric: numbers stand to the right and below one another.
        hint: what the heading means, for whoever points at it.
    """

    title: str
    numeric: bool = True
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: what it says.
        sort: what it counts as when the table is sorted; None: its text. A NaN goes last.
        bold: the best of its row, say.
        note: a small second line.
        title: more, for whoever points at it; nothing that others must know.
        faint: there is nothing to see here, such as a reason for an empty cell.
    """

    text: str
    sort: float | str | None = None
    bold: bool = False
    note: str = ""
    title: str = ""
    faint: bool = False


@dataclass(frozen=True)
class Table:
    """A table that readers can sort; the first cell of each row is the row's heading.

    Args:
        columns: headings; a string stands for a numeric column, and for a column of words if it is the first.
        rows: as many cells each as there are columns. A string or a number stands for a plain cell, None for an empty
            one.
        caption: what the table shows, above it.
        notes: below it.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell | str | float | None]]
    caption: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """A figure with the numbers it shows and the command that made it.

    Args:
        spec: an altair chart, or a Vega-Lite specification as a dict. Where its data are named "rows", as in
            `alt.Chart(alt.NamedData("rows"))`, it draws `data_rows`, and the page holds them only once. Give no fixed
            width: charts are as wide as the page (`"container"`), facets and concatenations are fitted to it.
        caption: what to see in it, below the figure.
        description: the same for those who cannot see it: kind of chart, axes, and what comes out.
        data_rows: the numbers as rows of one shape, shown as a table on demand.
        command: what to type to make the figure again.
        title: a short heading above the figure.
    """

    spec: Any
    caption: str
    description: str
    data_rows: Sequence[Mapping[str, Any]]
    command: str
    title: str = ""


Block = Text | Code | Table | Chart


@dataclass(frozen=True)
class Section:
    """A part of the page, with a place in its contents.

    Args:
        title: its heading.
        blocks: what is in it, in this order.
        anchor: names it in the address: letters, digits and hyphens.
    """

    title: str
    blocks: Sequence[Block]
    anchor: str


@dataclass(frozen=True)
class Page:
    """A whole page.

    Args:
        title: the heading, and the title of the browser's window.
        lead: one or two sentences that say what came out.
        facts: three or four numbers of the first screen.
        sections: the rest.
        footer: where, when and with what it was made; one paragraph each.
        figure: the chart of the first screen.
    """

    title: str
    lead: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    footer: Sequence[str] = ()
    figure: Chart | None = None
