"""The paper's tables from our records, each cell beside the paper's own number."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ganns.page.blocks import Cell, Column, Table
from ganns.study.catalogue import DATASETS, Citation, Dataset
from ganns.study.cells import best_in_bold, cell, signed
from ganns.study.departures import departures
from ganns.study.methods import METHODS
from ganns.study.paper import PRINTED
from ganns.study.plan import exists, recipe_for
from ganns.study.records import Record
from ganns.study.scores import HEADLINE, METRICS, Metric, Results, Score, chosen, paired_test

STYLES = {"paper": "the paper's recipe", "modern": "a modern recipe"}
_PERFORMANCE = {
    "regression": (
        "gann-dense",
        "gann-sparse",
        "gann-sparse-d",
        "ann",
        "varhead-d",
        "ann-d",
        "ann-wd",
        "varhead-wd-d",
        "ann-wd-d",
    ),
    "classification": ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d", "ann-wd", "ann-wd-d"),
}
_UNCERTAINTY = {
    ("regression", "raw"): ("gann-dense", "gann-sparse", "gann-sparse-d", "varhead", "varhead-d"),
    ("regression", "calibrated"): (
        "gann-dense",
        "gann-sparse",
        "gann-sparse-d",
        "varhead",
        "varhead-d",
        "ann",
        "ann-d",
    ),
    ("classification", "raw"): ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d"),
    ("classification", "calibrated"): ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d"),
}
_REFERENCES = ("gann-sparse", "ann", "gann-ensemble", "ensemble", "boosting")
_GANNS = ("gann-dense", "gann-sparse", "gann-sparse-d")
_VARIANTS = {"raw": "as trained (γ = 1)", "calibrated": "calibrated on validation rows"}
_BESIDE = (
    "In each cell ours, then the paper's number as it prints it, and Δ, ours minus the paper's in units of spread: the "
    "root of the two squared standard deviations added, ours alone where the paper prints none."
)
_VARIANCE_HEAD = (
    "For regression the paper's columns with dropout are networks with a variance head; the plain ones stand beside "
    "them."
)


def all_tables(records: Iterable[Record], missing: Mapping[str, str] | None = None) -> list[Table]:
    """Every table of the study that the records can fill, in the paper's order.

    Args:
        records: of any style; those on synthetic data count for nothing here.
        missing: why a dataset could not be used, by name.
    """
    records = list(records)
    tables = [datasets(records, missing or {}), *settings(records)]
    for style in STYLES:
        results = Results.of(records, style, missing)
        tables += [*performance(results, style), *uncertainty(results, style), *references(results, style)]
    return tables


def datasets(records: Sequence[Record], missing: Mapping[str, str]) -> Table:
    """Table 1: the paper's datasets, and what was used of them here."""
    rows = [_dataset_row(dataset, records, dataset.name in missing) for dataset in DATASETS.values()]
    columns = [
        Column("Dataset", numeric=False),
        Column("Domain", numeric=False),
        Column("N", hint="rows, as the paper counts them"),
        "Features",
        Column("Epochs", hint="the paper's"),
        Column("Rows used here", hint="training + validation + test"),
        Column("Licence, and whom to cite", numeric=False),
    ]
    reasons = [f"{DATASETS[name].title}: {reason}" for name, reason in missing.items() if name in DATASETS]
    return Table(columns, rows, "Table 1. The datasets, and how many rows of each were used here.", reasons)


def performance(results: Results, style: str) -> list[Table]:
    """Table 2, with the tests of GaNN against ANN; one of each for either task, where there are records."""
    found = []
    for task, methods in _PERFORMANCE.items():
        metric = METRICS[HEADLINE[task]]
        caption = (
            f"Table 2, {task}. {metric.title} on test rows, mean ± standard deviation over seeds, {STYLES[style]}."
        )
        notes = [_VARIANCE_HEAD] if task == "regression" else []
        found += _scores(results, task, methods, metric, "raw", caption, notes)
        found += _tested(results, task, metric, style)
    return found


def uncertainty(results: Results, style: str) -> list[Table]:
    """Table 3: Gaussian NLL for regression; NLL and AUROC of error detection for classification; raw and calibrated."""
    found = []
    for (task, variant), methods in _UNCERTAINTY.items():
        for key in ("nll",) if task == "regression" else ("nll", "auroc"):
            name = "Gaussian NLL" if task == "regression" else METRICS[key].title
            caption = f"Table 3, {task}. {name}, {_VARIANTS[variant]}, {STYLES[style]}."
            notes = ["NLL with its ½ ln 2π; whether the paper's has it is not stated."] if task == "regression" else []
            if task == "classification":
                notes = [
                    "The paper's columns “ANN + varhead” are the plain networks: their softmax is their uncertainty."
                ]
            found += _scores(results, task, methods, METRICS[key], variant, caption, notes)
    return found


def references(results: Results, style: str) -> list[Table]:
    """What the paper does not have: ensembles, and gradient boosting on tables."""
    if not any(method in _REFERENCES[2:] for _, method in results.cells):
        return []
    found = []
    for task, key in HEADLINE.items():
        for metric, variant in ((METRICS[key], "raw"), (METRICS["nll"], "calibrated")):
            name = metric.title if variant == "raw" else "NLL, calibrated"
            caption = f"Beyond the paper, {task}. {name}: ensembles of five, and gradient boosting, {STYLES[style]}."
            found += _scores(results, task, _REFERENCES, metric, variant, caption, [], beside=False)
    return found


def settings(records: Sequence[Record]) -> list[Table]:
    """The plain network under many batch sizes and feature scales: which come nearest to the paper's own column."""
    found = []
    for task, key in HEADLINE.items():
        own = [r for r in records if r.job.style == "search" and r.job.recipe.task == task and not r.synthetic]
        tried = sorted({_setting(record) for record in own})
        grid = chosen(own, lambda record: (record.job.dataset, _setting(record)))
        rows = []
        for name in DATASETS:
            if tries := {setting: record for (dataset, setting), record in grid.items() if dataset == name}:
                rows.append(_settings_row(name, tries, tried, METRICS[key]))
        columns = [Column(f"{scale}, {size}") for scale, size in tried]
        caption = (
            f"What the paper does not state, {task}. {METRICS[key].title} of the plain network by the scale of its "
            "features and its batch size."
        )
        notes = [_BESIDE, "Bold: nearest to the paper's. Recipe: what all methods use."]
        heads = [Column("Dataset", numeric=False), *columns, Column("Recipe", numeric=False)]
        found += [Table(heads, rows, caption, notes)] if rows else []
    return found


def _settings_row(
    dataset: str, records: Mapping[tuple[str, int], Record], tried: Sequence[tuple[str, int]], metric: Metric
) -> list[Cell | str]:
    """One dataset, with the mean nearest to the paper's in bold."""
    printed, used = PRINTED[metric.key][dataset, "ann"], recipe_for(DATASETS[dataset], "paper")
    scores = {each: Score({s.seed: s.raw[metric.key] for s in record.seeds}) for each, record in records.items()}
    far = {each: abs(score.mean - printed.mean) for each, score in scores.items() if score.values}
    nearest = min(far, key=far.__getitem__, default=None)
    filled = {each: cell(scores.get(each), printed, metric, "not run") for each in tried}
    bold = [replace(one, bold=each == nearest) for each, one in filled.items()]
    return [_named(dataset, list(records.values())), *bold, f"{used.features}, {used.batch_size}"]


def _setting(record: Record) -> tuple[str, int]:
    return record.job.recipe.features, record.job.recipe.batch_size


def _dataset_row(dataset: Dataset, records: Sequence[Record], missing: bool) -> list[Cell | str | float | None]:
    rows = next(
        (record.rows for record in records if record.job.dataset == dataset.name and not record.synthetic), None
    )
    if rows:
        counts = [rows[part] for part in ("train", "validation", "test")]
        used = Cell(f"{sum(counts):,}", sort=sum(counts), note=" + ".join(f"{count:,}" for count in counts))
    else:
        used = Cell("data missing" if missing else "not run", sort=math.nan, faint=True)
    return [
        Cell(dataset.title, note=dataset.task),
        "vision" if dataset.kind == "pictures" else "tabular",
        dataset.rows,
        dataset.features,
        dataset.epochs,
        used,
        Cell(dataset.licence, note=_cited(dataset.citation)),
    ]


def _cited(citation: Citation) -> str:
    return f"{citation.authors}, {citation.year}" + (f", doi:{citation.doi}" if citation.doi else "")


def _scores(
    results: Results,
    task: str,
    methods: Sequence[str],
    metric: Metric,
    variant: str,
    caption: str,
    notes: Sequence[str],
    beside: bool = True,
) -> list[Table]:
    """One table, or none where there is no score to show."""
    names = [name for name, dataset in DATASETS.items() if dataset.task == task and name in results.datasets]
    printed = PRINTED[metric.key] if beside else {}
    grid = {(n, m): results.score(n, m, metric.key, variant) for n in names for m in methods}
    shown = [m for m in methods if any(grid[n, m] for n in names)]
    if not shown:
        return []
    rows = []
    for name in names:
        filled = [cell(grid[name, m], printed.get((name, m)), metric, _why(name, m)) for m in shown]
        rows.append([_heading(results, name), *best_in_bold(filled, metric)])
    columns = [Column("Dataset", numeric=False), *(Column(METHODS[method].title) for method in shown)]
    notes = [*([_BESIDE] if beside else []), *notes, *_absent(results, task, methods, shown), *_aside(results)]
    return [Table(columns, rows, caption, notes)]


def _heading(results: Results, dataset: str) -> Cell:
    return _named(dataset, [record for (name, _), record in results.cells.items() if name == dataset])


def _named(dataset: str, records: Sequence[Record]) -> Cell:
    """The dataset's name, and below it what there was less of than in the paper."""
    return Cell(DATASETS[dataset].title, note=", ".join(departures(records)))


def _why(dataset: str, method: str) -> str:
    return "not run" if exists(METHODS[method], DATASETS[dataset]) else "only for tables"


def _tested(results: Results, task: str, metric: Metric, style: str) -> list[Table]:
    names = [name for name, dataset in DATASETS.items() if dataset.task == task and name in results.datasets]
    against = {name: results.score(name, "ann", metric.key) for name in names}
    rows = []
    for name, theirs in against.items():
        scores = [results.score(name, method, metric.key) for method in _GANNS]
        if theirs and any(scores):
            rows.append([_heading(results, name), *(_test(ours, theirs, metric) for ours in scores)])
    if not rows:
        return []
    columns = [Column("Dataset", numeric=False), *(Column(f"{METHODS[method].title} − ANN") for method in _GANNS)]
    better = "below" if metric.sign < 0 else "above"
    caption = f"Table 2, {task}, tested. {metric.title} of GaNN minus ANN, seed by seed, {STYLES[style]}."
    notes = [
        f"{better.capitalize()} 0 the GaNN is better; bold where it is and the two-sided paired t-test over seeds "
        "gives "
        "p < 0.05. Seeds share rows, so these p-values are smaller than those of independent data would be; none is "
        "corrected for the number of tests."
    ]
    return [Table(columns, rows, caption, notes)]


def _test(ours: Score | None, theirs: Score, metric: Metric) -> Cell:
    tested = paired_test(ours, theirs) if ours else None
    if tested is None:
        return Cell("no test", sort=math.nan, faint=True, title="fewer than two shared seeds, or equal differences")
    change, p = tested
    note = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return Cell(signed(change, metric.digits), change, p < 0.05 and change * metric.sign > 0, note)


def _absent(results: Results, task: str, methods: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Datasets and methods without a score."""
    absent = [
        f"{dataset.title} (data missing)" if name in results.missing else dataset.title
        for name, dataset in DATASETS.items()
        if dataset.task == task and name not in results.datasets
    ]
    run = [DATASETS[name] for name in results.datasets if DATASETS[name].task == task]
    for method in (METHODS[key] for key in methods if key not in shown):
        absent.append(method.title if any(exists(method, one) for one in run) else f"{method.title} (only for tables)")
    return [f"Not run: {', '.join(absent)}."] if absent else []


def _aside(results: Results) -> list[str]:
    if not results.aside:
        return []
    return [f"{results.aside} older or smaller records of the same cells were left aside."]
