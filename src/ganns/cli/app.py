"""The Typer application; modules beside this one register their commands on `app`.

Commands import polars, altair and scikit-learn in their bodies, so that `ganns --help` waits for PyTorch alone.
"""

from importlib.metadata import version

import typer

app = typer.Typer(
    name="ganns",
    help="""Gaussian neural networks: predictions that know how sure they are, on your own table or on the paper's data.

[bold]Your own table[/]: fit a model, predict with it, or ask first whether it is worth it.

[bold]The paper[/]: repeat its tables and figures, beside its own numbers.""",
    epilog="""[bold]Examples[/]

  ganns compare wine.csv --target quality

  ganns fit wine.csv --target quality --out wine-model

  ganns predict wine-model new.csv --out predictions.csv

  ganns reproduce digits --seeds 2

Exit codes: 0 done, 1 some of it failed, 2 wrong input, 130 interrupted.
GANNS_DEBUG=1 shows where an error came from.""",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

TABLES = "Your own table"
STUDY = "The paper"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ganns {version('ganns')}")
        raise typer.Exit


@app.callback()
def _options(
    show: bool = typer.Option(False, "--version", help="Show the version.", callback=_version, is_eager=True),
) -> None:
    pass
