"""A table as Markdown, LaTeX or CSV; a page shows it as HTML."""

import csv
import io
import math
from collections.abc import Callable, Iterable

from ganns.page.blocks import Cell, Table
from ganns.page.rendering import cells, columns

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "γ": r"$\gamma$",
    "α": r"$\alpha$",
    "π": r"$\pi$",
    "½": r"$\frac{1}{2}$",
    "<": r"$<$",
    ">": r"$>$",
    "–": "--",
    "“": "``",
    "”": "''",
}


def markdown(table: Table) -> str:
    """A pipe table; a cell's note follows in brackets."""
    headings = columns(table)
    lines = [table.caption, "", _pipes([heading.title for heading in headings])]
    lines.append(_pipes(["---:" if heading.numeric else "---" for heading in headings]))
    lines += [_pipes([_markdown_cell(cell) for cell in cells(row)]) for row in table.rows]
    return "\n".join([*lines, "", *(f"{note}\n" for note in table.notes)])


def latex(table: Table) -> str:
    """A table environment for booktabs; notes of a row's cells stand in a small line below it."""
    headings = columns(table)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_escaped(table.caption)}}}"]
    lines.append(rf"\begin{{tabular}}{{{''.join('r' if heading.numeric else 'l' for heading in headings)}}}")
    lines += [r"\toprule", _ampersands([rf"\textbf{{{_escaped(heading.title)}}}" for heading in headings]), r"\midrule"]
    for row in table.rows:
        given = cells(row)
        lines.append(_ampersands([_latex_cell(cell) for cell in given]))
        if any(cell.note for cell in given):
            lines.append(_ampersands([_latex_note(cell) for cell in given]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_escaped(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}", ""])


def comma_separated(table: Table) -> str:
    """Numbers at full precision; columns of numbers are followed by what the table prints, where that says more."""
    headings, rows = columns(table), [cells(row) for row in table.rows]
    more = [heading.numeric and not all(_bare(row[i]) for row in rows) for i, heading in enumerate(headings)]
    lines = [
        [name for i, h in enumerate(headings) for name in ([h.title, f"{h.title} (printed)"] if more[i] else [h.title])]
    ]
    for row in rows:
        line: list[str] = []
        for i, (cell, heading) in enumerate(zip(row, headings, strict=True)):
            number = _value(cell) if heading.numeric else _printed(cell)
            line += [number, _printed(cell)] if more[i] else [number]
        lines.append(line)
    return "".join(f"{_row(line)}\n" for line in lines)


FORMATS: dict[str, Callable[[Table], str]] = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def together(tables: Iterable[Table], form: str) -> str:
    """Tables one after another, with empty lines between them; before one of CSV stands its caption as a row.

    Args:
        tables: in their order.
        form: a key of `FORMATS`.
    """
    texts = []
    for table in tables:
        caption = f"{_row([table.caption])}\n" if form == "csv" else ""
        texts.append(caption + FORMATS[form](table).strip())
    return "\n\n".join(texts)


def _printed(cell: Cell) -> str:
    return f"{cell.text} ({_one_line(cell.note)})" if cell.note else cell.text


def _row(fields: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()


def _bare(cell: Cell) -> bool:
    """Whether a cell is a number and nothing more, or empty."""
    try:
        float(cell.text.replace(",", "").replace("−", "-") or 0)
    except ValueError:
        return False
    return not cell.note


def _one_line(text: str) -> str:
    return ", ".join(text.split("\n"))


def _value(cell: Cell) -> str:
    """The number behind a cell; empty where there is none."""
    if isinstance(cell.sort, int | float):
        return f"{cell.sort:.7g}" if math.isfinite(cell.sort) else ""
    return cell.text


def _pipes(parts: list[str]) -> str:
    return f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.bold else cell.text
    return f"{text} ({_one_line(cell.note)})" if cell.note else text


def _ampersands(parts: list[str]) -> str:
    return " & ".join(parts) + r" \\"


def _latex_cell(cell: Cell) -> str:
    return rf"\textbf{{{_escaped(cell.text)}}}" if cell.bold else _escaped(cell.text)


def _latex_note(cell: Cell) -> str:
    return rf"\footnotesize {_escaped(_one_line(cell.note))}" if cell.note else ""


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
