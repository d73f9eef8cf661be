"""Commands for the paper: repeat it, and report on it."""

import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ganns.cli import datasets as datasets
from ganns.cli.app import STUDY, app

if TYPE_CHECKING:
    from ganns.study.plan import Unit
    from ganns.study.pool import Workers
    from ganns.study.runs import Settings


class Style(StrEnum):
    """What `--recipe` takes."""

    paper = "paper"
    modern = "modern"
    sweep = "sweep"
    floors = "floors"
    search = "search"


class Format(StrEnum):
    """What `ganns tables --format` takes."""

    markdown = "markdown"
    latex = "latex"
    csv = "csv"


_SWEEP = "cifar100"  # the paper sweeps α there


@app.command(
    rich_help_panel=STUDY,
    epilog="""[bold]Examples[/]

  ganns reproduce digits --seeds 2

  ganns reproduce airfoil yacht --methods gann-sparse,ann --jobs 4

  ganns reproduce --all --device cuda --out study

  ganns reproduce --recipe sweep

Ctrl-C stops at the next step; the same command goes on from there.""",
)
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Datasets; see `ganns datasets`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All ten datasets.")] = False,
    recipe: Annotated[
        Style,
        typer.Option(help="The paper's; today's; or the paper's over many α, many v, or many batch sizes and scales."),
    ] = Style.paper,
    methods: Annotated[str | None, typer.Option(help="Methods, with commas between them.", show_default="all")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each method.")] = 5,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.", show_default=False)] = None,
    hidden: Annotated[str, typer.Option(help="Units of each hidden layer.")] = "1024,512,256",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for records and report.")] = Path("study"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster that sees this folder; local starts one.", show_default=False),
    ] = None,
    synthetic: Annotated[bool, typer.Option(help="Time missing datasets on random data of their shape.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh/--resume", help="Make records anew that are there.")] = False,
) -> None:
    """Repeat the paper's experiments, and report on them beside its own numbers."""
    from ganns.study import plan, records, runs
    from ganns.study.datasets import MissingDataset, fingerprint
    from ganns.study.methods import find as find_method

    chosen, widths = _names(names or [], every, recipe), _widths(hidden)
    keys = [find_method(key.strip()).key for key in methods.split(",")] if methods else None
    settings = runs.Settings(out, _device(device))
    units: list[Unit] = []
    reasons: dict[str, str] = {}
    for dataset in chosen:
        stands_in = False
        try:
            arrays = runs.load(dataset.name, synthetic=False)
        except MissingDataset as error:
            reasons[dataset.name] = str(error)
            if not synthetic:
                continue
            arrays, stands_in = runs.load(dataset.name, synthetic=True), True
        wanted = plan.jobs_for(
            dataset,
            fingerprint(arrays),
            style=recipe.value,
            methods=keys,
            seeds=range(seeds),
            epochs=epochs,
            hidden=widths,
        )
        units += plan.units(wanted, merge=settings.device.startswith("cuda"), synthetic=stands_in)
    if not units and not reasons:
        raise ValueError(
            f"methods={methods!r}: none exists for {', '.join(dataset.name for dataset in chosen)}; boosting is for "
            "tables, and variance heads are for regression."
        )
    out.mkdir(parents=True, exist_ok=True)
    records.note_missing(out, reasons, [dataset.name for dataset in chosen if dataset.name not in reasons])
    for reason in reasons.values():
        _say(f"{'timed on random data' if synthetic else 'skipped'}: {reason}")
    if fresh:
        for unit in units:
            runs.forget(unit, out)
    failed = _run(units, settings, jobs, cluster)
    _report(out)
    if failed or not units:
        raise typer.Exit(1)


@app.command(
    rich_help_panel=STUDY,
    epilog="""[bold]Examples[/]

  ganns report study

  ganns report study --out page.html""",
)
def report(
    folder: Annotated[Path, typer.Argument(help="Folder with records of `ganns reproduce`.")],
    out: Annotated[Path | None, typer.Option(help="The page.", show_default="report.html in the folder")] = None,
) -> None:
    """Make one HTML page of the records in a folder; it needs no network."""
    from ganns.study.report import write

    print(write(_existing(folder), out))


@app.command(
    rich_help_panel=STUDY,
    epilog="""[bold]Examples[/]

  ganns tables study

  ganns tables study --format latex > tables.tex""",
)
def tables(
    folder: Annotated[Path, typer.Argument(help="Folder with records of `ganns reproduce`.")],
    form: Annotated[Format, typer.Option("--format", help="How to write them.")] = Format.markdown,
) -> None:
    """Print the paper's tables and its claims, counted again, from the records in a folder."""
    from ganns.study import formats, records
    from ganns.study.report import claimed
    from ganns.study.tables import all_tables

    found = list(records.read_all(_existing(folder)))
    if not found:
        raise ValueError(f"{folder} holds no records; make some with `ganns reproduce digits --out {folder}`.")
    print(formats.together([*all_tables(found, records.read_missing(folder)), *claimed(found)], form.value))


def _names(names: Sequence[str], every: bool, recipe: Style):
    from ganns.study.catalogue import DATASETS, find

    if names and every:
        raise ValueError("give names or --all, not both.")
    if not names and not every:
        if recipe not in (Style.sweep, Style.floors):
            raise ValueError("name a dataset, or say --all; `ganns datasets` lists them.")
        names = [_SWEEP]
    return list(DATASETS.values()) if every else [find(name) for name in dict.fromkeys(names)]


def _widths(text: str) -> tuple[int, ...]:
    widths = tuple(int(part) for part in text.split(",") if part.strip().isdecimal())
    if len(widths) != text.count(",") + 1 or min(widths) < 1:
        raise ValueError(f"hidden={text!r}: give whole numbers above 0 with commas between them, such as 64,32.")
    return widths


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return name


def _run(units: "Sequence[Unit]", settings: "Settings", jobs: int, cluster: str | None) -> bool:
    """Make the records that are not there yet. Returns whether any failed."""
    from ganns.study import pool, runs
    from ganns.study.board import Board

    todo = [unit for unit in units if runs.missing(unit, settings.folder)]
    if present := len(units) - len(todo):
        _say(f"{present} of {len(units)} fleets have their records in {settings.folder} already.")
    failures = []
    if todo:
        beside = jobs > 1 or cluster is not None  # then the longest first, else dataset by dataset
        todo.sort(key=lambda unit: ("" if beside else unit.jobs[0].dataset, -unit.work))
        try:
            with Board(todo) as board:
                workers: Workers
                if cluster:
                    from ganns.study.cluster import Ray

                    workers = Ray(settings, cluster, jobs if jobs > 1 else None)
                elif jobs > 1:
                    workers = pool.Processes(settings, jobs)
                else:
                    workers = pool.Here(settings, board.watch)
                for outcome in pool.run_all(todo, settings, workers, board.watch):
                    board.end(outcome)
                    failures += [outcome] if outcome.failed else []
        except KeyboardInterrupt:
            _say(f"what is done is in {settings.folder}; to go on from there: {_again()}")
            raise typer.Exit(130) from None
        finally:
            pool.clean(units, settings.folder)
    for outcome in failures:
        _say(f"failed: {outcome.unit.title}: {outcome.failed}")
    return bool(failures)


def _report(folder: Path) -> None:
    """Write the report; without what it needs, records are kept all the same."""
    if not any(folder.glob("*.json")):
        _say("there are no records to report on.")
        return
    try:
        from ganns.study.report import write

        print(write(folder))
    except ImportError as error:
        _say(
            f"records are in {folder}; the report needs more: {error} pip install 'ganns[study]', then run "
            f"`ganns report {folder}`."
        )


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; make one with `ganns reproduce digits --out {folder}`.")
    return folder


def _again() -> str:
    words = [word for word in sys.argv[1:] if word != "--fresh"]
    return shlex.join(["ganns", *words])


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
