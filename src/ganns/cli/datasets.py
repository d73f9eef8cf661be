"""The command `ganns datasets`: list the paper's datasets, and fetch them."""

import sys
from typing import Annotated

import typer

from ganns.cli.app import STUDY, app

_datasets = typer.Typer(invoke_without_command=True)
app.add_typer(
    _datasets,
    name="datasets",
    rich_help_panel=STUDY,
    help="List the paper's datasets, or fetch some.",
    epilog="""[bold]Examples[/]

  ganns datasets

  ganns datasets fetch airfoil yacht

  ganns datasets fetch --all""",
)


@_datasets.callback()
def datasets(context: typer.Context) -> None:
    """List the paper's datasets: rows, features, licence, and where they lie or what is missing."""
    if context.invoked_subcommand:
        return
    from rich.console import Console
    from rich.table import Table

    from ganns.study.catalogue import DATASETS
    from ganns.study.datasets import folder, status

    table, notes = Table("name", "rows", "features", "epochs", "licence", "", box=None, header_style="bold"), []
    for column in table.columns[1:4]:
        column.justify = "right"
    for dataset in DATASETS.values():
        found = status(dataset.name)
        if found.reason:
            notes.append(found.reason)
        elif found.train < dataset.train_rows:
            notes.append(f"{dataset.title}: {found.train:,} of {dataset.train_rows:,} training rows are there.")
        numbers = (f"{number:,}" for number in (dataset.rows, dataset.features, dataset.epochs))
        here = "[green]there[/]" if found.present else "[red]missing[/]"
        table.add_row(dataset.name, *numbers, dataset.licence, here)
    console = Console()
    console.print(table)
    for note in [*notes, f"They lie in {folder()}, or where GANNS_DATA says."]:
        console.print(f"\n{note}", markup=False, highlight=False, soft_wrap=True)


@_datasets.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Datasets.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All that can be downloaded.")] = False,
) -> None:
    """Download datasets from their authors; an interrupted download is resumed."""
    from ganns.study.catalogue import DATASETS, find
    from ganns.study.datasets import MissingDataset
    from ganns.study.datasets import fetch as download

    if not names and not every:
        raise ValueError("name a dataset to fetch, or say --all; `ganns datasets` lists them.")
    if names and every:
        raise ValueError("give names or --all, not both.")
    failed = False
    for dataset in list(DATASETS.values()) if every else [find(name) for name in names or []]:
        try:
            with _Download(dataset.name) as bar:
                print(f"{dataset.name}: {download(dataset.name, bar).path or 'in scikit-learn'}")
        except (MissingDataset, OSError, ValueError, ImportError) as error:
            print(f"{dataset.name}: {error}", file=sys.stderr)
            failed = True
    if failed:
        raise typer.Exit(1)


class _Download:
    """Bytes so far, in a terminal."""

    def __init__(self, name: str):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(24), DownloadColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self.task = self.bar.add_task(name, total=None)

    def __enter__(self) -> "_Download":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        self.bar.update(self.task, completed=done, total=total)
