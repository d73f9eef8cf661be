"""What the paper's results say in words, counted again: in its own tables, and in our records."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ganns.study.catalogue import DATASETS
from ganns.study.duels import PAPER, Duel, Means, Tables, count, duel, sign, significant, tables_of
from ganns.study.records import Record
from ganns.study.scores import Results, swept

_COLLAPSE = 0.9  # as good as the best
_STRONG = 0.5  # the α from which the paper sees performance collapse
_LEARNT = 0.9  # of the way from the first to the best validation metric
_NOT_RUN = "not run"
_UNTOLD = "cannot be told"
_FEWEST = 3  # datasets that can bear out a sentence about ten, or refute it
_PLAIN_GANNS = ("gann-dense", "gann-sparse")


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what became of it.

    Args:
        sentence: the paper's own words.
        measure: what is counted.
        paper: what its own tables come to; empty where they cannot say.
        ours: what our records come to.
        verdict: "holds", "holds in part", "does not hold" or "cannot be told".
    """

    sentence: str
    measure: str
    paper: str
    ours: str
    verdict: str


def claims(records: Iterable[Record]) -> list[Claim]:
    """The paper's claims, in its order, against records of the paper's recipe and of the sweeps."""
    records = [record for record in records if not record.synthetic]
    results = Results.of(records, "paper")
    ours = tables_of(results)
    counted = [
        _against_ann(
            "The sparse architecture outperforms the ANN on nine out of ten datasets with one tie.",
            "gann-sparse",
            results,
        ),
        _against_ann("The dense architecture does so in seven with one tie.", "gann-dense", results),
        _consistency(ours),
        _delayed(results, ours),
        _sparse_against_dense(ours),
        _with_dropout(ours),
    ]
    sweeps = [_alpha(_sweeps(records, "sweep", "alpha")), _floor(_sweeps(records, "floors", "floor"))]
    of_uncertainty = [_regression_nll(ours), _best_nll(ours), _classification_nll(ours)]
    if len(results.datasets) < _FEWEST:
        counted, of_uncertainty = ([replace(c, verdict=_UNTOLD) for c in few] for few in (counted, of_uncertainty))
    return [*counted, *sweeps, *of_uncertainty]


def _verdict(holds: bool, partly: bool = False, *, told: bool) -> str:
    if not told:
        return _UNTOLD
    return "holds" if holds else "holds in part" if partly else "does not hold"


def _against_ann(sentence: str, method: str, results: Results) -> Claim:
    paper, here = duel(PAPER.performance, method, "ann"), duel(tables_of(results).performance, method, "ann")
    clear = significant(results, method, "ann")
    ours = (
        f"{here}; beyond chance (p < 0.05): better on {clear.wins}, worse on {clear.losses}"
        if here.datasets
        else _NOT_RUN
    )
    verdict = _verdict(here.share >= paper.share, here.wins > here.losses, told=here.datasets >= _FEWEST)
    return Claim(sentence, "MAE and accuracy, means as printed", str(paper), ours, verdict)


def _consistency(ours: Tables) -> Claim:
    def duels(tables: Tables) -> dict[str, Duel]:
        means = _dropout_column(tables.performance)
        methods = {"sparse": "gann-sparse", "dense": "gann-dense", "weight decay": "ann-wd", "dropout": "ann-d"}
        return {name: duel(means, method, "ann") for name, method in methods.items()}

    def words(found: dict[str, Duel]) -> str:
        return ", ".join(f"{name} {d.wins} of {d.datasets}" for name, d in found.items() if d.datasets) or _NOT_RUN

    here = duels(ours)
    told = all(d.datasets >= _FEWEST for d in here.values())
    best = max(here["weight decay"].share, here["dropout"].share)
    above = [here[name].share > best for name in ("sparse", "dense")]
    return Claim(
        "Merely looking at overall performance across all experiments, this makes the performance of GaNNs more "
        "consistent than either weight decay or dropout.",
        "datasets on which each beats the ANN",
        words(duels(PAPER)),
        words(here),
        _verdict(all(above), any(above), told=told),
    )


def _dropout_column(means: Means) -> Means:
    """With the paper's column "ANN + D" as "ann-d": for regression it is a variance head."""
    found = dict(means)
    for (dataset, method), value in means.items():
        if method == "varhead-d":
            found[dataset, "ann-d"] = value
    return found


def _delayed(results: Results, ours: Tables) -> Claim:
    later, better, compared = 0, 0, 0
    for dataset in results.datasets:
        for method in ("gann-sparse", "gann-dense"):
            gann, ann = (_epoch_learnt(results.cells.get((dataset, name))) for name in (method, "ann"))
            if math.isfinite(gann) and math.isfinite(ann):
                pair = [ours.performance.get((dataset, name), math.nan) for name in (method, "ann")]
                compared += 1
                later += gann > ann
                better += gann > ann and sign(dataset) * (pair[0] - pair[1]) > 0
    words = f"later in {later} of {compared} comparisons; better in the end in {better} of those {later}"
    return Claim(
        "The networks first learn slower than rival networks […] enables higher peak performances as compared to "
        "non-Gaussian architectures.",
        f"sparse and dense against the ANN: epoch by which validation has made {_LEARNT:.0%} of its progress; test "
        "metric",
        "",
        words if compared else "no histories",
        _verdict(2 * later > compared and 2 * better > later, better > 0, told=compared > 0),
    )


def _epoch_learnt(record: Record | None) -> float:
    """Mean over seeds of the epoch by which validation has made most of its progress; NaN without histories."""
    epochs = []
    for result in record.seeds if record else ():
        better = sign(record.job.dataset) if record else 1
        series = [better * value for value in result.history.get("validation", []) if math.isfinite(value)]
        if len(series) > 1:
            wanted = series[0] + _LEARNT * (max(series) - series[0])
            epochs.append(next(number for number, value in enumerate(series, 1) if value >= wanted))
    return statistics.fmean(epochs) if epochs else math.nan


def _sparse_against_dense(ours: Tables) -> Claim:
    paper, here = (duel(tables.performance, "gann-sparse", "gann-dense") for tables in (PAPER, ours))
    return Claim(
        "In fact, the sparse model more often outperforms the dense variant than vice versa.",
        "MAE and accuracy, sparse against dense",
        str(paper),
        str(here),
        _verdict(here.wins > here.losses, told=here.datasets >= _FEWEST),
    )


def _with_dropout(ours: Tables) -> Claim:
    paper, here = (duel(tables.performance, "gann-sparse-d", "gann-sparse") for tables in (PAPER, ours))
    return Claim(
        "We also observe that sparse GaNNs can sometimes be combined with dropout in a beneficial way.",
        "MAE and accuracy, sparse with dropout against sparse without",
        str(paper),
        str(here),
        _verdict(here.wins > 0, told=here.datasets >= _FEWEST),
    )


Sweep = Mapping[float, float]  # best validation metric by α or v


def _sweeps(records: Iterable[Record], style: str, field: str) -> dict[str, Sweep]:
    """By dataset."""
    found = swept(records, style, field)
    return {name: {getattr(r.job.recipe, field): _validation(r) for r in own} for name, own in found.items()}


def _alpha(sweeps: Mapping[str, Sweep]) -> Claim:
    fine, collapsed = [], []
    for name, sweep in sweeps.items():
        shares = _shares(name, sweep)
        weak = [share for alpha, share in shares.items() if alpha < _STRONG]
        strong = [share for alpha, share in shares.items() if alpha >= _STRONG]
        if weak and strong:
            fine.append(min(weak) >= _COLLAPSE)
            collapsed.append(min(strong) < _COLLAPSE)
    return Claim(
        "α is easy to tune. Only high values (0.5 and above) cause a collapse in performance.",
        f"best validation metric; a collapse is less than {_COLLAPSE:.0%} as good as the best",
        "",
        _listed("α", sweeps),
        _verdict(all(fine + collapsed), any(fine + collapsed), told=bool(fine)),
    )


def _floor(sweeps: Mapping[str, Sweep]) -> Claim:
    least = [min(_shares(name, sweep).values()) for name, sweep in sweeps.items() if len(sweep) > 1]
    return Claim(
        "Performance turns out, within a reasonable range, to be insensitive to v.",
        f"best validation metric; insensitive is at least {_COLLAPSE:.0%} as good as the best",
        "",
        _listed("v", sweeps),
        _verdict(min(least, default=0.0) >= _COLLAPSE, max(least, default=0.0) >= _COLLAPSE, told=bool(least)),
    )


def _validation(record: Record) -> float:
    """Mean over the seeds that came to one; NaN if none did."""
    values = [result.validation for result in record.seeds if math.isfinite(result.validation)]
    return statistics.fmean(values) if values else math.nan


def _shares(dataset: str, sweep: Sweep) -> Sweep:
    """How good each value is next to the best of its sweep, from 0 to 1; 0 where no training came to anything."""
    best = (max if sign(dataset) > 0 else min)((v for v in sweep.values() if math.isfinite(v)), default=math.nan)
    ratios = {setting: sorted((value, best)) for setting, value in sweep.items()}
    return {setting: low / high if high > 0 and math.isfinite(low) else 0.0 for setting, (low, high) in ratios.items()}


def _listed(symbol: str, sweeps: Mapping[str, Sweep]) -> str:
    found = []
    for name, sweep in sweeps.items():
        values = ", ".join(f"{setting:g}: {value:.3f}" for setting, value in sweep.items())
        found.append(f"{DATASETS[name].title}, {symbol} = {values}")
    return "; ".join(found) or _NOT_RUN


def _regression_nll(ours: Tables) -> Claim:
    def beaten(means: Means) -> Duel:
        columns = ("gann-dense", "gann-sparse", "varhead", "varhead-d")
        rows = [[means.get((d, m), math.nan) for m in columns] for d in _of_task(means, "regression")]
        return count([min(row[2:]) - max(row[:2]) for row in rows if all(map(math.isfinite, row))])

    paper, here = beaten(PAPER.nll), beaten(ours.nll)
    return Claim(
        "In case of regression, both GaNNs outperform their competitors.",
        "Gaussian NLL as trained: both GaNNs against both variance heads",
        str(paper),
        str(here),
        _verdict(here.share == 1, here.wins > here.losses, told=here.datasets >= _FEWEST),
    )


def _best_nll(ours: Tables) -> Claim:
    titles = ("dense", "sparse", "sparse + D", "ANN + varhead", "ANN + varhead + D")

    def firsts(means: Means) -> list[int]:
        rows = []
        for task, others in (("regression", ("varhead", "varhead-d")), ("classification", ("ann", "ann-d"))):
            columns = ("gann-dense", "gann-sparse", "gann-sparse-d", *others)
            rows += [[means.get((d, m), math.nan) for m in columns] for d in _of_task(means, task)]
        whole = [row for row in rows if all(map(math.isfinite, row))]
        return [sum(row[column] == min(row) for row in whole) for column in range(len(titles))]

    def words(counts: list[int]) -> str:
        return ", ".join(f"{title} {number}" for title, number in zip(titles, counts, strict=True))

    here = firsts(ours.nll)
    best = here[2] == max(here)
    return Claim(
        "The best overall performance is arguably achieved by a combination of GaNNs with dropout.",
        "datasets on which each has the lowest NLL as trained; a tie counts for all of its columns",
        words(firsts(PAPER.nll)),
        words(here) if any(here) else _NOT_RUN,
        _verdict(best and here.count(here[2]) == 1, best, told=any(here)),
    )


def _classification_nll(ours: Tables) -> Claim:
    def both(means: Means) -> list[Duel]:
        datasets = _of_task(means, "classification")
        pairs = [
            [(means.get((d, m), math.nan), means.get((d, "ann"), math.nan)) for d in datasets] for m in _PLAIN_GANNS
        ]
        return [count([ann - gann for gann, ann in pair if math.isfinite(gann + ann)]) for pair in pairs]

    def words(found: list[Duel]) -> str:
        return f"dense {found[0]}; sparse {found[1]}"

    here = both(ours.nll)
    mixed = [bool(found.wins and found.losses) for found in here]
    return Claim(
        "In the case of classification, the results are far less consistent.",
        "NLL as trained, against the ANN",
        words(both(PAPER.nll)),
        words(here),
        _verdict(all(mixed), any(mixed), told=all(found.datasets >= _FEWEST for found in here)),
    )


def _of_task(means: Means, task: str) -> list[str]:
    return [d for d in dict.fromkeys(d for d, _ in means) if DATASETS[d].task == task]
