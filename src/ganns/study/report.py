"""The study as one HTML page: what came out, beside the paper, with every number behind it."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ganns.page import Block, Cell, Chart, Code, Column, Fact, Page, Section, Table, Text, save
from ganns.study import curves, diagrams, figures, tables
from ganns.study.catalogue import DATASETS
from ganns.study.cells import difference
from ganns.study.claims import Claim, claims
from ganns.study.commands import commands
from ganns.study.costs import cost
from ganns.study.departures import shortened
from ganns.study.duels import PAPER, duel, significant, tables_of
from ganns.study.records import Record, read_all, read_missing
from ganns.study.scores import HEADLINE, Results, swept

NAME = "report.html"
_MODERN = Text(
    [
        "What a practitioner would do today: AdamW, a cosine schedule, everything standardised, early stopping. The "
        "paper's numbers beside ours are those of its own recipe. Here every network decays its weights, so that ANN + "
        "WD is ANN once more."
    ]
)
_MARKS = {"holds": 3, "holds in part": 2, "does not hold": 1, "cannot be told": 0}


def write(folder: str | Path, out: str | Path | None = None, missing: Mapping[str, str] | None = None) -> Path:
    """Make the report of a folder of records, whatever part of the study they cover.

    Args:
        folder: of the records.
        out: the file; None: report.html in the folder.
        missing: why a dataset could not be used, by name; None: as noted in the folder.
    """
    folder = Path(folder)
    records = list(read_all(folder))
    if not records:
        raise ValueError(f"{folder} holds no records; make some with `ganns reproduce digits --out {folder}`.")
    reasons = read_missing(folder) if missing is None else missing
    return save(page(records, reasons), Path(out) if out else folder / NAME)


def page(records: Sequence[Record], missing: Mapping[str, str] | None = None) -> Page:
    """The report's page."""
    style = next((style for style in tables.STYLES if Results.of(records, style).cells), "paper")
    results = Results.of(records, style, missing)
    sections = [
        Section("Claims", claimed(records), "claims"),
        Section("Performance", tables.performance(results, style), "performance"),
        Section("Uncertainty", _uncertainty(results, style), "uncertainty"),
        Section("Learning", _learning(records, results), "learning"),
        Section("Surprise", _surprise(results), "surprise"),
        Section("A modern recipe", _modern(records, style, missing), "modern"),
        Section("Beyond the paper", tables.references(results, style), "beyond"),
        Section("Time", _time(records), "time"),
        Section("Data", _data(records, missing or {}), "data"),
    ]
    return Page(
        title="Gaussian neural networks: the paper, run again",
        lead=_lead(records),
        facts=_facts(records, results, style),
        sections=[section for section in sections if section.blocks],
        footer=_footer(records),
        figure=figures.overview(results),
    )


def _lead(records: Sequence[Record]) -> str:
    parts = []
    for style, words in tables.STYLES.items():
        results = Results.of(records, style)
        means = tables_of(results).performance
        found = {name: duel(means, f"gann-{name}", "ann") for name in ("sparse", "dense")}
        wins = [f"{name} GaNNs on {one.wins} of {one.datasets}" for name, one in found.items() if one.datasets]
        cut = ", cut short" if any(map(shortened, results.cells.values())) else ""
        parts += [f"With {words}{cut}: {' and '.join(wins)}."] if wins else []
    if parts:
        return " ".join(["On how many datasets is a GaNN better than the plain network of its shape?", *parts])
    names = ", ".join(
        dataset.title for name, dataset in DATASETS.items() if any(r.job.dataset == name for r in records)
    )
    return f"Records of {names}; nothing to hold GaNNs against a plain network yet."


def _facts(records: Sequence[Record], results: Results, style: str) -> list[Fact]:
    means, found = tables_of(results).performance, []
    for name, method in (("Sparse", "gann-sparse"), ("Dense", "gann-dense")):
        ours, paper = duel(means, method, "ann"), duel(PAPER.performance, method, "ann")
        if ours.datasets:
            clear = significant(results, method, "ann").wins
            note = f"{clear} with p < 0.05, {ours.ties} tied; the paper: {paper.wins} of {paper.datasets}"
            found.append(Fact(f"{name} GaNN better than ANN", f"{ours.wins} of {ours.datasets}", note))
    if distance := _distance(results):
        text, count = distance
        note = f"{'median over ' if count > 1 else 'on '}{_datasets(count)}, in units of the joint spread"
        found.append(Fact("Our ANN from the paper's", text, note))
    spent = cost(record for record in records if not record.synthetic)
    if spent.seconds:
        note = f"evaluated too; a plain loop would train for {figures.duration(spent.loop)}" if spent.loop else ""
        found.append(Fact(f"{spent.trainings:,} trainings took", figures.duration(spent.seconds), note))
    return found


def _datasets(count: int) -> str:
    return f"{count} datasets" if count != 1 else "1 dataset"


def _distance(results: Results) -> tuple[str, int] | None:
    distances = []
    for name in results.datasets:
        metric = HEADLINE[DATASETS[name].task]
        if (score := results.score(name, "ann", metric)) and score.values:
            found = difference(score, metric, name, "ann")
            distances += [] if found is None else [abs(found)]
    return (f"{statistics.median(distances):.1f} σ", len(distances)) if distances else None


def claimed(records: Sequence[Record]) -> list[Table]:
    """The paper's claims, counted again; nothing where the records tell of none."""
    found = claims(records)
    if all(claim.verdict == "cannot be told" for claim in found):
        return []
    columns = [Column(title, numeric=False) for title in ("The paper says", "Its own tables", "Here", "Verdict")]
    told = [claim for claim in found if claim.verdict != "cannot be told"]
    held = sum(claim.verdict == "holds" for claim in told)
    results = Results.of(records, "paper")
    cut = any(map(shortened, results.cells.values()))
    return [
        Table(
            columns,
            [_claim_row(claim) for claim in found],
            f"Of the paper's {len(found)} claims that can be counted, {len(told)} can be told from these records; "
            f"{held} of those hold.",
            [
                f"Counted on {_datasets(len(results.datasets))} of the paper's {len(DATASETS)}, run by its own "
                f"recipe{', cut short where tables say so' if cut else ''}. After each sentence: what is counted. A "
                "tie is a tie in the digits that the paper prints."
            ],
        )
    ]


def _claim_row(claim: Claim) -> list[Cell]:
    return [
        Cell(f"“{claim.sentence}”", note=claim.measure),
        Cell(claim.paper or "not in a table", faint=not claim.paper),
        Cell(claim.ours),
        Cell(claim.verdict, sort=_MARKS[claim.verdict], bold=claim.verdict == "does not hold"),
    ]


def _uncertainty(results: Results, style: str) -> list[Block]:
    records = list(results.cells.values())
    charts = [diagrams.coverage(records), diagrams.reliability(records), diagrams.errors(records)]
    return [*_present(charts), *tables.uncertainty(results, style)]


def _learning(records: Sequence[Record], results: Results) -> list[Block]:
    charts = [curves.learning(results.cells.values(), task) for task in HEADLINE]
    for style, field, symbol in (("sweep", "alpha", "α"), ("floors", "floor", "v")):
        charts += [curves.sweep(own, field, symbol) for own in swept(records, style, field).values()]
    return _present(charts)


def _surprise(results: Results) -> list[Block]:
    records = list(results.cells.values())
    return _present([diagrams.surprise(records), diagrams.detection(records), diagrams.priors(records)])


def _modern(records: Sequence[Record], style: str, missing: Mapping[str, str] | None) -> list[Block]:
    """The same beside it, unless it is the only one there is."""
    results = Results.of(records, "modern", missing)
    if style == "modern" or not results.cells:
        return []
    chart = figures.overview(results)
    found = [*tables.performance(results, "modern"), *_uncertainty(results, "modern")]
    return [_MODERN, *_present([chart]), *found, *tables.references(results, "modern")]


def _time(records: Sequence[Record]) -> list[Block]:
    notes = []
    if any(record.synthetic for record in records):
        notes.append("Random data of a dataset's shape stood in where it says so: its time counts, nothing else does.")
    if any(record.timings.get("resumed") for record in records):
        notes.append("Some trainings were interrupted and went on later: their time before that is left out.")
    return [*([Text(notes)] if notes else []), *_present([figures.timings(records)])]


def _data(records: Sequence[Record], missing: Mapping[str, str]) -> list[Block]:
    return [
        tables.datasets(records, missing),
        *tables.settings(records),
        Code("\n".join(commands(records)), "All of this again:"),
    ]


def _present(blocks: Iterable[Chart | Table | None]) -> list[Block]:
    return [block for block in blocks if block is not None]


def _minute(date: str) -> str:
    return date[:16].replace("T", " ")


def _footer(records: Sequence[Record]) -> list[str]:
    def all_of(key: str) -> str:
        return ", ".join(sorted({record.environment[key] for record in records if key in record.environment}))

    dates = sorted(record.environment["date"] for record in records if "date" in record.environment)
    made = [f"{len(records)} records"]
    made += [f"made between {_minute(dates[0])} and {_minute(dates[-1])} UTC"] if dates else []
    made += [f"on {all_of('device')}"] if all_of("device") else []
    return [
        ", ".join(made) + f"; ganns {all_of('ganns')}, PyTorch {all_of('torch')}.",
        "The paper: P. Kuhn, V. Heusinger-Heß, Gaussian Neural Networks. Its numbers are shown as it prints them.",
    ]
