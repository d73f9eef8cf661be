"""What the commands for tables print."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ganns.table.fitting import Fitted
from ganns.table.scoring import MEASURES, share_error
from ganns.table.wording import fixed, number, percent


def console(*, stderr: bool = False) -> Console:
    """Where to print."""
    return Console(stderr=stderr, highlight=False)


def grid(*columns: str, title: str = "", words: Sequence[int] = (0,)) -> Table:
    """A calm table: no frame, numbers to the right; `words` are the columns to the left."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", header_style="dim")
    for number_, column in enumerate(columns):
        table.add_column(column, justify="left" if number_ in words else "right", no_wrap=number_ not in words)
    return table


def show_fit(fitted: Fitted, folder: Path, report: Path) -> None:
    """What a fit has shown."""
    screen, prepared = console(), fitted.prepared
    left_out = "".join(f"\n{column.name!r} left out: {column.reason}." for column in prepared.left_out)
    known = prepared.frame.height - len(fitted.held_out)
    screen.print(
        Text.assemble(
            ("\n" + prepared.target, "bold"),
            f" by {prepared.task} from {len(prepared.columns)} columns, fitted to {known:,} rows.",
            (left_out, "dim"),
        )
    )
    screen.print()
    screen.print(_scores(fitted))
    screen.print(_trust(fitted))
    screen.print(_surprising(fitted))
    usage = grid("", "", words=(0, 1))
    usage.show_header, usage.box = False, None
    usage.add_row("Model", Text(str(folder), "bold"))
    usage.add_row("Report", Text(str(report), "bold"))
    usage.add_row("Next", Text(f"ganns predict {folder} NEW.csv --out predictions.csv"))
    screen.print(usage)


def _scores(fitted: Fitted) -> Table:
    table = grid("", "model", "without looking", title=f"On {len(fitted.held_out):,} rows held out")
    for measure in MEASURES[fitted.prepared.task]:
        value, without = fitted.scores[measure.key], fitted.blind[measure.key]
        noun = measure.noun[0].upper() + measure.noun[1:]
        table.add_row(noun, Text(fixed(value, value), "bold"), fixed(without, value))
    return table


def _trust(fitted: Fitted) -> Table:
    rows = len(fitted.held_out)
    if fitted.prepared.task == "regression":
        table = grid("Interval", "held the truth", "mean width", title="Can its intervals be trusted?")
        for nominal, held, width in fitted.coverage:
            table.add_row(percent(nominal), f"{percent(held)} ± {percent(share_error(held, rows))}", number(width, 3))
        return table
    table = grid("Confidence", "right", "rows", title="Can its confidence be trusted?")
    for confidence, right, count in fitted.reliability:
        table.add_row(percent(confidence), f"{percent(right)} ± {percent(share_error(right, count))}", f"{count:,}")
    return table


def _surprising(fitted: Fitted) -> Table:
    table = grid(
        "Row", "percentile", "truth", "prediction", "what stands out", title="The most surprising rows", words=(4,)
    )
    for each in fitted.surprising:
        table.add_row(f"{each.row:,}", f"{each.percentile:.2f}", each.truth, each.prediction, Text(each.why, "dim"))
    return table
