"""Which method is best on a table: the same splits, the same number of settings to choose from, repeated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ganns.estimating import batch_size_for
from ganns.predictive import Regression
from ganns.progress import Progress
from ganns.recipes import Member, Recipe, split_rows
from ganns.table.preparing import Prepared
from ganns.table.rivals import HEADS, METHODS, Candidate, Method, Setting, of_boosting, of_networks
from ganns.table.scoring import coverage, score
from ganns.training import Fleet, fit_fleet

SHARES = (0.6, 0.1, 0.1, 0.2)  # to train, to stop in time, to calibrate and choose by, to measure on
Tell = Callable[[str, float], None]
_COST = {None: 1.0, "sparse": 1.4, "dense": 2.2}  # of a network's training, roughly


class Divided(NamedTuple):
    """Something for each part of the rows."""

    train: Any
    stop: Any
    choose: Any
    test: Any


@dataclass(frozen=True)
class Outcome:
    """A method on one split.

    Args:
        scores: of its test rows, by measure.
        setting: that was chosen.
        held: regression: share of test targets within 90 % intervals.
    """

    scores: dict[str, float]
    setting: Setting
    held: float | None


@dataclass(frozen=True)
class Comparison:
    """All methods on all splits.

    Args:
        task: "regression" or "classification".
        rows: of a split, by what they are for (`SHARES`).
        epochs: of the networks, at most.
        hidden: units of the networks' layers.
        outcomes: by method, one a split.
    """

    task: str
    rows: Divided
    epochs: int
    hidden: tuple[int, ...]
    outcomes: dict[str, list[Outcome]]

    @property
    def splits(self) -> int:
        """How often rows were divided anew."""
        return len(next(iter(self.outcomes.values())))

    def values(self, method: str, measure: str) -> np.ndarray:
        """One number a split."""
        return np.array([outcome.scores[measure] for outcome in self.outcomes[method]])

    def held(self, method: str) -> float:
        """Regression: mean share of test targets within 90 % intervals."""
        return float(np.mean([outcome.held for outcome in self.outcomes[method]]))  # type: ignore[arg-type]


def compare(
    prepared: Prepared,
    *,
    splits: int = 5,
    seed: int = 0,
    epochs: int = 100,
    hidden: Sequence[int] = (128, 128),
    tell: Tell = lambda stage, share: None,
) -> Comparison:
    """Train every method on every split under every setting, choose by rows held back, and measure on others.

    Args:
        prepared: the table.
        splits: how often to divide the rows anew.
        seed: of the first split.
        epochs: of the networks, at most; each keeps its best.
        hidden: units of the networks' layers.
        tell: hears what is being trained, and the share of all that is done.
    """
    if splits < 2:
        raise ValueError(f"splits={splits}: give at least 2, so that there is a spread; 5 or more can tell more.")
    contest = _Contest(prepared, range(seed, seed + splits), epochs, hidden, tell)
    chosen = {method.key: contest.run(method) for method in METHODS}
    outcomes = {key: [contest.measure(split, *pair) for split, pair in each.items()] for key, each in chosen.items()}
    rows = Divided(*map(len, contest.parts[seed]))
    return Comparison(prepared.task, rows, epochs, tuple(hidden), outcomes)


class _Contest:
    """The table as tensors, its splits, and how far the training is."""

    def __init__(self, prepared: Prepared, splits: Sequence[int], epochs: int, hidden: Sequence[int], tell: Tell):
        self.task, self.splits, self.hidden, self.tell = prepared.task, splits, hidden, tell
        # Standardised as a whole in float64, so that nothing is lost when fleets round to float32.
        self.x = _standardised(torch.from_numpy(prepared.x))[0]
        self.classes = 0
        if self.task == "regression":
            y = torch.from_numpy(prepared.y).reshape(-1, 1)
            self.y, self.mean, self.scale = _standardised(y)
        else:
            labels, numbers = np.unique(prepared.y, return_inverse=True)
            self.y, self.classes = torch.from_numpy(numbers), len(labels)
        self.recipe = replace(
            Recipe.modern(self.task),
            head=HEADS[self.task],
            beta=0.5,
            epochs=epochs,
            patience=max(1, epochs // 5),
            batch_size=batch_size_for(round(SHARES[0] * len(self.x))),
            split=(*SHARES[:2], SHARES[2] + SHARES[3]),
        )
        self.parts = {split: _divided(len(self.x), split) for split in splits}
        self.done, self.total = 0.0, sum(_cost(method) for method in METHODS)
        self.plain: dict[int, tuple[Candidate, Setting]] = {}

    def run(self, method: Method) -> dict[int, tuple[Candidate, Setting]]:
        """The calibrated candidate with the best setting for each split, and that setting."""
        candidates = self._boosting(method) if method.key == "boosting" else self._networks(method)
        self.done += _cost(method)
        found = {}
        for split, each in candidates.items():
            x, y = self._rows(self.parts[split].choose)
            calibrated = [(candidate.calibrated(self.task, x, y), setting) for candidate, setting in each]
            found[split] = min(calibrated, key=lambda pair: pair[0].nll(x, y))
        if method.key == "plain":
            self.plain = found
        return found

    def measure(self, split: int, candidate: Candidate, setting: Setting) -> Outcome:
        """The test rows of a split."""
        x, y = self._rows(self.parts[split].test)
        prediction = candidate.predict(x)
        held = None
        if isinstance(prediction, Regression):
            prediction, y = prediction.rescaled(self.scale, self.mean), y * self.scale + self.mean
            held, _ = coverage(*prediction.interval(0.9), y)
        return Outcome(score(prediction, y), setting, held)

    def _networks(self, method: Method) -> dict[int, list[tuple[Candidate, Setting]]]:
        asked = {split: [self.plain[split][1]] if method.of else list(method.settings) for split in self.splits}
        members = [
            Member(seed=split + 1000 * network, split=split, **setting)  # type: ignore[arg-type]
            for split in self.splits
            for setting in asked[split]
            for network in range(method.networks)
        ]
        fleet = self._fleet(method, members)
        found, start = {}, 0
        for split in self.splits:
            found[split] = []
            for setting in asked[split]:
                part = slice(start, start + method.networks)
                candidate = of_networks(fleet[part], dropout="dropout" in setting)
                found[split].append((candidate, setting))
                start += method.networks
        return found

    def _fleet(self, method: Method, members: list[Member]) -> Fleet:
        def listen(progress: Progress) -> None:
            self.tell(method.title, (self.done + progress.share * _cost(method)) / self.total)

        self.tell(method.title, self.done / self.total)
        return fit_fleet(
            self.x, self.y, self.recipe, members, variance=method.variance, hidden=self.hidden, progress=listen
        )

    def _boosting(self, method: Method) -> dict[int, list[tuple[Candidate, Setting]]]:
        found: dict[int, list[tuple[Candidate, Setting]]] = {}
        for number, split in enumerate(self.splits):
            self.tell(method.title, (self.done + number / len(self.splits) * _cost(method)) / self.total)
            train, stop = (self._rows(part) for part in self.parts[split][:2])
            found[split] = [
                (of_boosting(self.task, setting, split, train, stop, self.classes), setting)
                for setting in method.settings
            ]
        return found

    def _rows(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return self.x[rows], self.y[rows]


def _divided(count: int, split: int) -> Divided:
    """Rows of one split; what a fleet leaves for test is to choose by and to measure on."""
    train, stop, rest = split_rows(count, split, (*SHARES[:2], SHARES[2] + SHARES[3]))
    half = max(1, round(len(rest) * SHARES[2] / (SHARES[2] + SHARES[3])))
    return Divided(train, stop, rest[:half], rest[half:])


def _cost(method: Method) -> float:
    """How long a method trains, compared with one network."""
    if method.key == "boosting":
        return 2.0
    return _COST[method.variance] * method.networks * (1 if method.of else len(method.settings))


def _standardised(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean, scale = values.mean(0), values.std(0, correction=0)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return (values - mean) / scale, mean, scale
