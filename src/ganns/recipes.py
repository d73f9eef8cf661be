"""How a network is trained, as data: a recipe for all members of a fleet, and what is particular to each."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ganns.families import choose

HEADS = {"regression": ("mean", "variance"), "classification": ("classes",)}
_OPTIMIZERS = {"sgd": None, "adamw": None}
_SCHEDULES = {"constant": None, "step": None, "cosine": None}
_FEATURES = {"raw": None, "unit": None, "standardised": None}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how members are trained; two fleets of one recipe are trained alike.

    `Recipe.paper(task)` and `Recipe.modern(task)` are complete; change what you like with `dataclasses.replace`. The
    numbers that a `Member` may have of its own (alpha, floor, dropout, learning_rate, weight_decay) are defaults here.

    Args:
        task: "regression" or "classification".
        head: "mean" (squared error), "variance" (Eq. 3: the network also predicts a variance) or "classes".
        beta: variance head: weighs each row's loss by its variance to this power, without gradient (β-NLL); 0: Eq. 3.
        optimizer: "sgd" or "adamw".
        learning_rate: before the schedule.
        weight_decay: λ of Eq. 1.
        clip_norm: each member's gradient is scaled down to this norm; None: never.
        schedule: "constant"; "step", divided by 10 once after `step_epoch` epochs; or "cosine", to zero after a linear
            rise over `warmup_epochs`.
        step_epoch: see schedule.
        warmup_epochs: see schedule.
        epochs: at most so many.
        patience: stop a member whose validation metric has not improved for so many epochs; None: never.
        batch_size: rows a step.
        split: shares of rows for training, validation and test.
        features: "raw", "unit" (pictures of bytes divided by 255) or "standardised" by a member's training rows.
        standardise_targets: regression: whether targets are standardised by the training rows as well.
        alpha: α of Eq. 9.
        floor: v of Eqs. 11 and 12.
        dropout: probability of dropping an activity on the way to the next layer's activities.

    >>> Recipe.paper("regression").learning_rate
    0.1
    """

    task: str
    head: str
    optimizer: str
    learning_rate: float
    weight_decay: float = 0.0
    clip_norm: float | None = 10.0
    schedule: str = "constant"
    step_epoch: int = 30
    warmup_epochs: int = 0
    epochs: int = 120
    patience: int | None = None
    batch_size: int = 64
    split: tuple[float, float, float] = (0.6, 0.2, 0.2)
    features: str = "standardised"
    standardise_targets: bool = False
    alpha: float = 1.0
    floor: float = 0.5
    dropout: float = 0.0
    beta: float = 0.0

    def __post_init__(self):
        if self.head not in choose("task", self.task, HEADS):
            raise ValueError(f"head={self.head!r} does not fit task={self.task!r}; choose one of {HEADS[self.task]}.")
        choose("optimizer", self.optimizer, _OPTIMIZERS)
        choose("schedule", self.schedule, _SCHEDULES)
        choose("features", self.features, _FEATURES)
        object.__setattr__(self, "split", tuple(self.split))
        shares = all(isinstance(share, Real) and share >= 0 for share in self.split)
        if len(self.split) != 3 or not shares or not abs(sum(self.split) - 1) <= 1e-6 or min(self.split[:2]) == 0:
            raise ValueError(
                f"split={self.split}: give the shares of training, validation and test rows, which sum to 1; the first "
                "two must be above 0."
            )
        for name, least in {"epochs": 1, "batch_size": 1, "step_epoch": 0, "warmup_epochs": 0, "patience": 1}.items():
            if name != "patience" or self.patience is not None:
                _check_whole(self, name, range(least, 2**63), f"give a whole number of at least {least}.")
        if self.clip_norm is not None:
            _check_number(self, "clip_norm", lambda norm: norm > 0, "give a norm above 0, or None for no clipping.")
        _check_number(self, "beta", lambda b: 0 <= b <= 1, "β-NLL weighs rows by a power between 0 (Eq. 3) and 1.")
        if self.standardise_targets and self.task == "classification":
            raise ValueError("standardise_targets=True with task='classification': labels have no scale.")
        for name, (allowed, remedy) in _NUMBERS.items():
            _check_number(self, name, allowed, remedy)

    @classmethod
    def paper(cls, task: str, *, weight_decay: bool = False, dropout: bool = False) -> "Recipe":
        """The paper's "Training Setup"; where a method has weight decay or dropout, at the paper's strength.

        α is 1 for regression and 0.1 for classification; the paper uses 0.01 for CIFAR-100 and Tiny ImageNet. Batch
        size and feature scale are not stated there: see docs/design.md.
        """
        regression = task == "regression"
        return cls(
            task=task,
            head=choose("task", task, HEADS)[0],
            optimizer="sgd",
            learning_rate=0.1 if regression else 0.01,
            weight_decay=1e-4 if weight_decay else 0.0,
            clip_norm=10.0,
            schedule="step",
            step_epoch=30,
            epochs=120,
            batch_size=64,
            alpha=1.0 if regression else 0.1,
            floor=0.5,
            dropout=(0.1 if regression else 0.3) if dropout else 0.0,
        )

    @classmethod
    def modern(cls, task: str) -> "Recipe":
        """What a practitioner would do today: AdamW, warm-up and cosine, everything standardised, early stopping."""
        regression = task == "regression"
        return cls(
            task=task,
            head=choose("task", task, HEADS)[0],
            optimizer="adamw",
            learning_rate=1e-3,
            weight_decay=1e-2,
            clip_norm=10.0,
            schedule="cosine",
            warmup_epochs=5,
            epochs=200,
            patience=40,
            batch_size=64,
            standardise_targets=regression,
            alpha=0.1,
        )

    def to_json(self) -> str:
        """All fields as one JSON object; `from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Recipe":
        """The recipe that `to_json` wrote."""
        given = json.loads(text)
        if not isinstance(given, dict):
            raise ValueError(f"{text[:50]!r}: a recipe is a JSON object of the arguments of ganns.Recipe.")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise ValueError(f"a recipe has no {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
        return cls(**given)

    def rate(self, step: int, steps_an_epoch: int) -> float:
        """What the learning rate is multiplied by at a step, counting from 0."""
        if self.schedule == "step":
            return 0.1 if step >= self.step_epoch * steps_an_epoch else 1.0
        if self.schedule == "cosine":
            warmup = self.warmup_epochs * steps_an_epoch
            if step < warmup:
                return (step + 1) / warmup
            done = (step - warmup) / max(1, self.epochs * steps_an_epoch - warmup)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return 1.0


@dataclass(frozen=True)
class Member:
    """One training of a fleet: its seed, and the numbers of its own; None: the recipe's.

    Args:
        seed: decides the initial weights, the order of rows and the dropout.
        split: decides which rows are for training, validation and test; None: as the seed.
        alpha: see `Recipe`.
        floor: see `Recipe`.
        learning_rate: see `Recipe`.
        weight_decay: see `Recipe`.
        dropout: see `Recipe`.
    """

    seed: int = 0
    split: int | None = None
    alpha: float | None = None
    floor: float | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    dropout: float | None = None

    def __post_init__(self):
        for name in ("seed", "split"):
            if name != "split" or self.split is not None:
                _check_whole(self, name, range(2**63), "a seed is a whole number, 0 or above and below 2⁶³.")
        for name, (allowed, remedy) in _NUMBERS.items():
            if getattr(self, name) is not None:
                _check_number(self, name, allowed, remedy)

    def resolved(self, recipe: Recipe) -> "Member":
        """The same with the recipe's numbers in place of None."""
        given: dict[str, Any] = {name: getattr(recipe, name) for name in _NUMBERS if getattr(self, name) is None}
        return replace(self, split=self.seed if self.split is None else self.split, **given)


_NUMBERS = {
    "alpha": (lambda value: value >= 0, "give a number 0 or above."),
    "floor": (lambda value: value > 0, "give a number above 0; the paper uses 0.5."),
    "learning_rate": (lambda value: value > 0, "give a number above 0."),
    "weight_decay": (lambda value: value >= 0, "give a number 0 or above."),
    "dropout": (lambda value: 0 <= value < 1, "give a probability from 0 to below 1."),
}


def _check_number(holder: Recipe | Member, name: str, allowed: Callable[[float], bool], remedy: str) -> None:
    value = getattr(holder, name)
    if not (isinstance(value, Real) and math.isfinite(value) and allowed(float(value))):
        raise ValueError(f"{name}={value!r}: {remedy}")
    if not isinstance(value, int | float):  # numpy's, which JSON does not know
        object.__setattr__(holder, name, float(value))


def _check_whole(holder: Recipe | Member, name: str, allowed: range, remedy: str) -> None:
    value = getattr(holder, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) not in allowed:
        raise ValueError(f"{name}={value!r}: {remedy}")
    object.__setattr__(holder, name, int(value))


class Split(NamedTuple):
    """Row numbers for training, validation and test."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_rows(count: int, seed: int, shares: tuple[float, float, float]) -> Split:
    """Rows 0 to count − 1, shuffled by the seed and divided.

    >>> [len(part) for part in split_rows(1503, seed=0, shares=(0.6, 0.2, 0.2))]
    [902, 300, 301]
    """
    order = np.random.default_rng(seed).permutation(count)
    first, second = round(count * shares[0]), round(count * (shares[0] + shares[1]))
    split = Split(order[:first], order[first:second], order[second:])
    for name, rows, share in zip(Split._fields, split, shares, strict=True):
        if share > 0 and len(rows) == 0:
            raise ValueError(
                f"{count} rows leave none for {name} with split={shares}; give more rows or a larger share."
            )
    return split
