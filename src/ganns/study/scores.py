"""Numbers out of records: one score for each seed, by dataset, method and metric."""

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scipy.special import stdtr

from ganns.study.catalogue import DATASETS
from ganns.study.records import Record

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Metric:
    """How a metric is printed and compared.

    Args:
        key: in a record's seeds, and in `ganns.study.paper.PRINTED`.
        title: for people.
        digits: after the point, as the paper prints them.
        sign: 1 where more is better, −1 where less is.
    """

    key: str
    title: str
    digits: int
    sign: int


METRICS = {
    metric.key: metric
    for metric in (
        Metric("mae", "MAE", 3, -1),
        Metric("accuracy", "Accuracy", 3, 1),
        Metric("nll", "NLL", 2, -1),
        Metric("auroc", "AUROC", 3, 1),
    )
}
HEADLINE = {"regression": "mae", "classification": "accuracy"}


@dataclass(frozen=True)
class Score:
    """One number for each seed; NaN where a training diverged."""

    by_seed: Mapping[int, float]

    @property
    def values(self) -> list[float]:
        """Those that are numbers."""
        return [value for value in self.by_seed.values() if math.isfinite(value)]

    @property
    def mean(self) -> float:
        """Over the seeds that did not diverge; NaN if all did."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def std(self) -> float:
        """Sample standard deviation over the same seeds; NaN for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class Results:
    """The records of one style, one for each dataset and method.

    Args:
        cells: by (dataset, method).
        aside: how many records of the same cells were left aside.
        missing: why a dataset could not be used, by name.
    """

    cells: Mapping[tuple[str, str], Record]
    aside: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record], style: str, missing: Mapping[str, str] | None = None) -> "Results":
        """Of records for one cell one counts, see `chosen`; synthetic data never do."""
        own = [record for record in records if record.job.style == style and not record.synthetic]
        found = chosen(own, lambda record: (record.job.dataset, record.job.method))
        return cls(found, len(own) - len(found), missing or {})

    @property
    def datasets(self) -> set[str]:
        """Those with a record."""
        return {dataset for dataset, _ in self.cells}

    def score(self, dataset: str, method: str, metric: str, variant: str = "raw") -> Score | None:
        """A score for each seed; None where there is no record, or the method has no such score."""
        record = self.cells.get((dataset, method))
        if record is None:
            return None
        by_seed = {result.seed: getattr(result, variant).get(metric) for result in record.seeds}
        given = {seed: value for seed, value in by_seed.items() if value is not None}
        return Score(given) if given else None

    def means(self, metric: str, variant: str = "raw") -> dict[tuple[str, str], float]:
        """Means over seeds by (dataset, method), rounded as the paper prints them."""
        found = {key: self.score(*key, metric, variant) for key in self.cells}
        digits = METRICS[metric].digits
        return {key: round(score.mean, digits) for key, score in found.items() if score and score.values}


def chosen(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, Record]:
    """Of the records with one key the one with most seeds counts, then the youngest."""
    found: dict[Key, Record] = {}
    for record in records:
        name = key(record)
        found[name] = max(found[name], record, key=_weight) if name in found else record
    return found


def swept(records: Iterable[Record], style: str, field: str) -> dict[str, list[Record]]:
    """The records of a sweep over a field of the recipe by dataset, one for each value, from the least to the greatest.

    Args:
        records: of any style; those on synthetic data do not count.
        style: of the sweep.
        field: of the recipe.
    """
    own = [record for record in records if record.job.style == style and not record.synthetic]
    found = chosen(own, lambda record: (record.job.dataset, getattr(record.job.recipe, field)))
    by_dataset = {name: [found[key] for key in sorted(found) if key[0] == name] for name in DATASETS}
    return {name: one for name, one in by_dataset.items() if one}


def paired_test(ours: Score, theirs: Score) -> tuple[float, float] | None:
    r"""Mean difference over shared seeds, and the two-sided p-value of the paired t-test.

    .. math:: t = \bar d \sqrt n / s_d, \qquad p = 2 F_{n-1}(-|t|)

    None where fewer than two seeds are shared or all differences are the same.

    >>> difference, p = paired_test(Score({0: 1.0, 1: 2.0, 2: 3.5}), Score({0: 0.5, 1: 1.0, 2: 2.0}))
    >>> difference, round(p, 4)
    (1.0, 0.0742)
    """
    shared = [seed for seed in ours.by_seed if seed in theirs.by_seed]
    differences = [ours.by_seed[seed] - theirs.by_seed[seed] for seed in shared]
    differences = [difference for difference in differences if math.isfinite(difference)]
    if len(differences) < 2 or statistics.stdev(differences) == 0:
        return None
    mean, count = statistics.fmean(differences), len(differences)
    t = mean * math.sqrt(count) / statistics.stdev(differences)
    return mean, float(2 * stdtr(count - 1, -abs(t)))


def _weight(record: Record) -> tuple[int, str]:
    return len(record.seeds), record.environment.get("date", "")
