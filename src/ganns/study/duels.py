"""On how many datasets does one method beat another?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ganns.study.catalogue import DATASETS
from ganns.study.paper import PRINTED
from ganns.study.scores import HEADLINE, METRICS, Results, paired_test

Means = Mapping[tuple[str, str], float]
_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Duel:
    """Datasets on which one method is better than another, ties, and those on which it is worse."""

    wins: int
    ties: int
    losses: int

    @property
    def datasets(self) -> int:
        """That both were run on."""
        return self.wins + self.ties + self.losses

    @property
    def share(self) -> float:
        """Of wins; NaN without datasets."""
        return self.wins / self.datasets if self.datasets else math.nan

    def __str__(self) -> str:
        if not self.datasets:
            return "not run"
        tied = f", tied on {self.ties}" if self.ties else ""
        return f"better on {self.wins} of {self.datasets}{tied}, worse on {self.losses}"


class Tables(NamedTuple):
    """Means by (dataset, method), rounded as the paper prints them: MAE or accuracy, and NLL."""

    performance: Means
    nll: Means


PAPER = Tables(
    {key: printed.mean for metric in ("mae", "accuracy") for key, printed in PRINTED[metric].items()},
    {key: printed.mean for key, printed in PRINTED["nll"].items()},
)
"""The paper's own."""


def tables_of(results: Results) -> Tables:
    """Ours, with NLL as trained."""
    return Tables({**results.means("mae"), **results.means("accuracy")}, results.means("nll"))


def sign(dataset: str) -> int:
    """1 where more is better (accuracy), −1 for errors."""
    return METRICS[HEADLINE[DATASETS[dataset].task]].sign


def duel(means: Means, method: str, other: str) -> Duel:
    """Performance of one method against another's; equal as printed is a tie.

    >>> means = {("airfoil", "a"): 1.0, ("airfoil", "b"): 2.0, ("digits", "a"): 0.9, ("digits", "b"): 0.9}
    >>> duel(means, "a", "b")
    Duel(wins=1, ties=1, losses=0)
    """
    return count(
        [sign(d) * (means[d, method] - means[d, other]) for d, m in means if m == method and (d, other) in means]
    )


def count(gains: list[float]) -> Duel:
    """Gains above, at and below 0."""
    wins, losses = sum(gain > 1e-9 for gain in gains), sum(gain < -1e-9 for gain in gains)
    return Duel(wins, len(gains) - wins - losses, losses)


def significant(results: Results, method: str, other: str) -> Duel:
    """Wins and losses that a paired t-test over seeds confirms (p < 0.05); the rest count as ties."""
    gains = []
    for dataset in results.datasets:
        key = HEADLINE[DATASETS[dataset].task]
        ours, theirs = results.score(dataset, method, key), results.score(dataset, other, key)
        if ours and theirs:
            tested = paired_test(ours, theirs)
            gains.append(sign(dataset) * tested[0] if tested and tested[1] < _SIGNIFICANT else 0.0)
    return count(gains)
