"""`ganns fit`, `predict`, `compare` and `export`: people's own tables.

Docstrings are what `--help` shows, line by line: those of several lines have short ones.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ganns.cli.app import TABLES, app

_FILE = "A .csv, .tsv or .parquet file with a header."
Data = Annotated[Path, typer.Argument(metavar="DATA", help=_FILE, show_default=False)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that ganns fit wrote.", show_default=False)]
Target = Annotated[str, typer.Option(metavar="NAME", help="The column to predict.", show_default=False)]
Task = Annotated[str, typer.Option(help="auto, regression or classification. Auto: numbers are for regression.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A column to leave out; as often as you like.")]
Separator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Between columns, if not a comma in .csv or a tab in .tsv.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Decides which rows are held out, and the fit.")]


def _examples(*lines: str) -> str:
    return "[bold]Examples[/]\n\n" + "\n\n".join(f"  {line}" for line in lines)


@app.command(
    rich_help_panel=TABLES,
    epilog=_examples("ganns fit wine.csv --target quality", "ganns fit wine.csv --target color --ignore quality"),
)
def fit(
    data: Data,
    target: Target,
    task: Task = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Folder to write.", show_default="DATA-NAME, beside the report")
    ] = None,
    ignore: Ignore = None,
    separator: Separator = None,
    variance: Annotated[str, typer.Option(help="Of the activity priors: sparse, dense or constant.")] = "sparse",
    members: Annotated[int, typer.Option(min=1, help="Networks in the ensemble.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="At most so many.")] = 200,
    seed: Seed = 0,
) -> None:
    """Fit a model, and show how good it is on rows it has not seen.

    Categories, dates, gaps and booleans are taken care of. A fifth of the rows is held out to be measured on.
    """
    from ganns.cli.showing import console, show_fit
    from ganns.page import save
    from ganns.table.preparing import prepare
    from ganns.table.reading import read
    from ganns.table.reporting import fit_page
    from ganns.table.writing import check_place

    folder = out or Path(_plain_name(f"{data.stem}-{target}"))
    report = folder.with_name(f"{folder.name}.html")
    prepared = prepare(read(data, _character(separator)), target, task, ignore or [])
    _check_folder(folder)
    check_place(report)
    from ganns.table.fitting import fit_table

    console(stderr=True).print(f"Fitting to {prepared.frame.height:,} rows …", style="dim")
    fitted = fit_table(prepared, seed, variance=variance, members=members, epochs=epochs, verbose=True)
    fitted.model.save(folder)
    save(fit_page(fitted, str(folder), _typed()), report)
    show_fit(fitted, folder, report)


@app.command(
    rich_help_panel=TABLES,
    epilog=_examples(
        "ganns predict wine-quality new.csv --out predictions.csv", "ganns predict wine-quality new.csv | head"
    ),
)
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .csv, .tsv or .parquet file.", show_default="CSV to the standard output"),
    ] = None,
    coverage: Annotated[float, typer.Option(help="Share of targets that intervals should hold.")] = 0.9,
    separator: Separator = None,
) -> None:
    """Predict rows of a file of any size.

    Each row gets its number, the prediction, its standard deviation and
    interval (or the probability of each class), its surprise as a percentile of
    the training rows, and notes: unknown categories, gaps, values far outside
    what the model has seen. Columns are found by name; others are ignored.
    """
    from ganns.cli.showing import console
    from ganns.table.writing import check_kind, check_place, write_frames

    if not 0 < coverage < 1:
        raise ValueError(f"coverage={coverage}: give a share between 0 and 1, such as 0.9.")
    if out is not None:
        check_kind(out)
        check_place(out)
        if out.exists() and data.exists() and out.samefile(data):
            raise ValueError(f"{out} is the data itself; choose another place for the predictions.")
    from ganns.table.model import TableModel, predict_file

    counts = {"rows": 0, "noted": 0, "surprising": 0}

    def count(frame) -> None:
        counts["rows"] += frame.height
        counts["noted"] += int((frame["notes"] != "").sum())
        counts["surprising"] += int((frame["surprise"] > 99).sum())

    screen = console(stderr=True)
    with screen.status("Predicting …"):
        fitted = TableModel.load(model)
        write_frames(predict_file(fitted, data, coverage, _character(separator)), out, count)
    where = f" in {out}" if out else ""
    screen.print(
        f"{counts['rows']:,} predictions{where}; {counts['surprising']:,} rows are more surprising than 99 % of the "
        f"training rows, and {counts['noted']:,} have notes.",
        soft_wrap=True,
    )


@app.command(
    rich_help_panel=TABLES,
    epilog=_examples(
        "ganns compare wine.csv --target quality", "ganns compare wine.csv --target color --ignore quality --splits 10"
    ),
)
def compare(
    data: Data,
    target: Target,
    task: Task = "auto",
    out: Annotated[
        Path | None,
        typer.Option(metavar="REPORT.html", help="Page to write.", show_default="DATA-NAME-compared.html"),
    ] = None,
    ignore: Ignore = None,
    separator: Separator = None,
    splits: Annotated[int, typer.Option(min=2, help="How often to divide the rows anew.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Of networks, at most.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Decides the splits and the trainings.")] = 0,
) -> None:
    """Ask whether a GaNN is worth it on this table: is it better than simpler methods?

    A plain network, one with dropout, an ensemble of five, sparse and dense
    GaNNs and gradient boosting are trained on the same rows, each with four
    settings to choose from, and measured on rows that none has seen. The answer
    is a verdict in words, by a test that knows that splits share rows.
    """
    from ganns.cli.showing import board, console, show_comparison
    from ganns.page import save
    from ganns.table.preparing import prepare
    from ganns.table.reading import read
    from ganns.table.writing import check_place

    report = out or Path(f"{_plain_name(f'{data.stem}-{target}')}-compared.html")
    if report.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{report} is to hold a page; give it a name that ends in .html.")
    prepared = prepare(read(data, _character(separator)), target, task, ignore or [])
    check_place(report)
    from ganns.table.comparing import compare as run
    from ganns.table.comparing_page import compare_page

    words = f"Comparing six methods on {splits} splits of {prepared.frame.height:,} rows …"
    console(stderr=True).print(words, style="dim")
    with board() as tell:
        found = run(prepared, splits=splits, seed=seed, epochs=epochs, tell=tell)
    given = ["--separator", separator] if separator is not None else []
    given += ["--task", task] if task != "auto" else []
    given += [word for name in ignore or [] for word in ("--ignore", name)]
    again = shlex.join(["ganns", "fit", str(data), "--target", target, *given])
    save(compare_page(prepared, found, _typed(), again), report)
    show_comparison(found, report)


@app.command(
    rich_help_panel=TABLES,
    epilog=_examples(
        "ganns export wine-quality --format onnx", "ganns export wine-quality --format torch --out wine.pt2"
    ),
)
def export(
    model: Model,
    format: Annotated[str, typer.Option(help="onnx or torch (torch.export).")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="MODEL.onnx or MODEL.pt2")
    ] = None,
) -> None:
    """Write the networks as a program that needs no ganns, checked against the original on random rows.

    Beside it a JSON file says how the columns of a table become its features.
    """
    from ganns.cli.showing import console
    from ganns.table.exporting import check_format, description_path
    from ganns.table.exporting import export as write
    from ganns.table.model import TableModel
    from ganns.table.writing import check_place

    suffix = check_format(format)
    path = out or (model if model.name else model.resolve()).with_name(f"{model.resolve().name}{suffix}")
    for place in (path, description_path(path)):
        check_place(place)
    fitted = TableModel.load(model)
    with console(stderr=True).status("Exporting …"):
        deviation = write(fitted, path, format)
    console().print(f"{path} deviates by at most {deviation:.1g} from the original on 256 random rows.", soft_wrap=True)
    console().print(f"{description_path(path)} says what goes in and what comes out.", soft_wrap=True, style="dim")


def _character(separator: str | None) -> str | None:
    """A separator as people type it."""
    return {"tab": "\t", r"\t": "\t"}.get(separator, separator) if separator is not None else None


def _check_folder(folder: Path) -> None:
    """Refuse early a folder that holds something else than a model."""
    if folder.exists() and not (folder / "model.json").is_file():
        raise ValueError(f"{folder} exists and is not a model; choose another place with --out, or remove it first.")


def _plain_name(text: str) -> str:
    """A name for a file: letters, digits and hyphens."""
    return re.sub(r"[^\w.]+", "-", text).strip("-.") or "model"


def _typed() -> str:
    return shlex.join(["ganns", *sys.argv[1:]])
