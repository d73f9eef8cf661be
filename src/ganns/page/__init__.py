"""One HTML page from plain values: facts, texts, tables, charts; self-contained, and readable without a network.

```text
Page(title, lead, facts, sections, …) -> render -> one HTML string -> save -> one file
```

Everything that comes from data is escaped. Charts need `altair` only where a spec is an altair chart; rendering needs
jinja2 and, where there are charts, vl-convert: both come with ganns[study].
"""

from ganns.page.blocks import Block, Cell, Chart, Code, Column, Fact, Page, Section, Table, Text
from ganns.page.rendering import render, save

__all__ = ["Block", "Cell", "Chart", "Code", "Column", "Fact", "Page", "Section", "Table", "Text", "render", "save"]
