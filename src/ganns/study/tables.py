"""The paper's tables from our records, each cell beside the paper's own number."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ganns.page.blocks import Cell, Column, Table
from ganns.study.catalogue import DATASETS, Dataset
from ganns.study.methods import METHODS
from ganns.study.paper import PRINTED, Printed
from ganns.study.plan import exists, recipe_for
from ganns.study.records import Record
from ganns.study.scores import HEADLINE, METRICS, Metric, Results, Score, paired_test

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
    "Small: the paper's number as it prints it, and Δ, ours minus the paper's in units of spread: the root of the two "
    "squared standard deviations added, ours alone where the paper prints none."
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
        Column("Licence", numeric=False),
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
        scores = {(r.job.dataset, _setting(r)): Score({s.seed: s.raw[key] for s in r.seeds}) for r in own}
        names = [name for name in DATASETS if any(name == dataset for dataset, _ in scores)]
        rows = [_settings_row(name, {each: scores.get((name, each)) for each in tried}, METRICS[key]) for name in names]
        columns = [Column(f"{scale}, {size}") for scale, size in tried]
        caption = (
            f"What the paper does not state, {task}. {METRICS[key].title} of the plain network by the scale of its "
            "features and its batch size."
        )
        notes = [_BESIDE, "Bold: nearest to the paper's. Recipe: what all methods use."]
        heads = [Column("Dataset", numeric=False), *columns, Column("Recipe", numeric=False)]
        found += [Table(heads, rows, caption, notes)] if rows else []
    return found


def _settings_row(dataset: str, scores: Mapping[tuple[str, int], Score | None], metric: Metric) -> list[Cell | str]:
    """One dataset, with the mean nearest to the paper's in bold."""
    printed, used = PRINTED[metric.key][dataset, "ann"], recipe_for(DATASETS[dataset], "paper")
    far = {each: abs(score.mean - printed.mean) for each, score in scores.items() if score and score.values}
    nearest = min(far, key=far.__getitem__, default=None)
    cells = {each: _cell(score, printed, metric, "not run") for each, score in scores.items()}
    bold = [replace(cell, bold=each == nearest) for each, cell in cells.items()]
    return [DATASETS[dataset].title, *bold, f"{used.features}, {used.batch_size}"]


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
        dataset.licence,
    ]


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
    rows = [
        [_heading(results, name), *(_cell(grid[name, m], printed.get((name, m)), metric, _why(name, m)) for m in shown)]
        for name in names
    ]
    for row in rows:
        row[1:] = _best_in_bold(row[1:], metric)
    columns = [Column("Dataset", numeric=False), *(Column(METHODS[method].title) for method in shown)]
    notes = [*([_BESIDE] if beside else []), *notes, *_absent(results, task, methods, shown), *_aside(results)]
    return [Table(columns, rows, caption, notes)]


def _heading(results: Results, dataset: str) -> Cell:
    """The dataset's name; with row counts where fewer training rows than published were at hand."""
    rows = next(record.rows for (name, _), record in results.cells.items() if name == dataset)
    published, used = rows.get("published_train"), rows["train"] + rows["validation"]
    note = f"{used:,} of {published:,} training rows" if published else ""
    return Cell(DATASETS[dataset].title, note=note)


def _why(dataset: str, method: str) -> str:
    return "not run" if exists(METHODS[method], DATASETS[dataset]) else "only for tables"


def _cell(score: Score | None, printed: Printed | None, metric: Metric, why: str) -> Cell:
    """Our number, and below it the paper's with the difference between them; or why there is none."""
    note = printed.text if printed else ""
    if score is None or not score.values:
        return Cell(why if score is None else "diverged", sort=math.nan, note=note, faint=True)
    text = _number(score.mean, metric.digits)
    text += f" ± {_number(score.std, metric.digits)}" if math.isfinite(score.std) else ""
    if printed and (distance := _distance(score, printed)) is not None:
        note += f"\nΔ {_signed(distance, 1)}"
    lost = len(score.by_seed) - len(score.values)
    note += f"\n{lost} of {len(score.by_seed)} diverged" if lost else ""
    seeds = ", ".join(f"seed {seed}: {value:.5g}" for seed, value in score.by_seed.items())
    return Cell(text, sort=score.mean, note=note.strip(), title=seeds)


def difference(score: Score, metric: str, dataset: str, method: str) -> float | None:
    """Ours minus the paper's in units of spread; None where the paper has no number or nothing spreads."""
    printed = PRINTED[metric].get((dataset, method))
    return _distance(score, printed) if printed else None


def _distance(score: Score, printed: Printed) -> float | None:
    """Where the paper prints no standard deviation ours counts alone."""
    spread = math.hypot(score.std, printed.std or 0.0)
    return (score.mean - printed.mean) / spread if spread > 0 else None


def _best_in_bold(cells: Sequence[Cell], metric: Metric) -> list[Cell]:
    """The best of a row, and what prints the same."""
    values = [round(c.sort, metric.digits) if isinstance(c.sort, float) else math.nan for c in cells]
    present = [value for value in values if math.isfinite(value)]
    best = max((metric.sign * value for value in present), default=math.nan) if len(present) > 1 else math.nan
    return [
        Cell(c.text, c.sort, metric.sign * value == best, c.note, c.title, c.faint)
        for c, value in zip(cells, values, strict=True)
    ]


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
    return Cell(_signed(change, metric.digits), change, p < 0.05 and change * metric.sign > 0, note)


def _absent(results: Results, task: str, methods: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Datasets and methods without a score."""
    absent = [
        f"{dataset.title} (data missing)" if name in results.missing else dataset.title
        for name, dataset in DATASETS.items()
        if dataset.task == task and name not in results.datasets
    ]
    absent += [METHODS[method].title for method in methods if method not in shown]
    return [f"Not run: {', '.join(absent)}."] if absent else []


def _aside(results: Results) -> list[str]:
    if not results.aside:
        return []
    return [f"{results.aside} older or smaller records of the same cells were left aside."]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.2g}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")
