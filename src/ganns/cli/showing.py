"""What the commands for tables print."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ganns.progress import duration
from ganns.table.comparing import Comparison, Tell
from ganns.table.fitting import Fitted
from ganns.table.rivals import METHODS
from ganns.table.scoring import MEASURES, share_error
from ganns.table.verdict import chance, difference, headline, leader, level, verdict
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


@contextmanager
def board() -> Iterator[Tell]:
    """A live line in a terminal, and nothing elsewhere: what is being done, and the share of all that is done."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(24), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}")
    started = time.monotonic()
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=1.0)

        def tell(stage: str, share: float) -> None:
            left = f", about {duration((time.monotonic() - started) * (1 / share - 1))} left" if share else ""
            bar.update(task, completed=share, description=f"{stage}{left}")

        yield tell


def show_comparison(comparison: Comparison, report: Path) -> None:
    """What a comparison has shown."""
    screen = console()
    screen.print()
    screen.print(_levels(comparison))
    screen.print(_differences(comparison))
    for sentence in verdict(comparison):
        screen.print(Text(sentence), soft_wrap=False)
        screen.print()
    screen.print(Text.assemble("Report  ", (str(report), "bold")), soft_wrap=True)


def _levels(comparison: Comparison) -> Table:
    measures = MEASURES[comparison.task]
    held = comparison.task == "regression"
    title = f"Mean ± standard deviation over {comparison.splits} splits, {comparison.rows.test:,} rows each"
    table = grid("", *(m.title for m in measures), *(["in 90 % intervals"] if held else []), title=title)
    for method in METHODS:
        cells = []
        for measure in measures:
            best = leader(comparison, measure) is method
            cells.append(Text(level(comparison, measure, method.key)[1], "bold" if best else ""))
        table.add_row(method.title, *cells, *([percent(comparison.held(method.key))] if held else []))
    return table


def _differences(comparison: Comparison) -> Table:
    columns = [part for measure in headline(comparison.task) for part in (measure.title, "p")]
    table = grid("", *columns, title="How much better than the plain network, ± standard error")
    for method in METHODS:
        if method.key != "plain":
            found = [difference(comparison, measure, method.key, "plain") for measure in headline(comparison.task)]
            cells = [Text(text, "bold" if each.sign else "") for each in found for text in (str(each), chance(each.p))]
            table.add_row(method.title, *cells)
    return table
