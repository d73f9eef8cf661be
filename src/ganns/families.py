"""Families of activity priors: standardised densities, each with mean 0 and variance 1.

A family says how surprising a deviation is when a variance is expected, and draws noise that matches. All are
scaled so that `variance` is the variance in every one of them; the paper's own is `Gaussian`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor


class Family(ABC):
    """A density with location μ and variance σ²: −log P(a) = energy(a − μ, σ²) + normalizer."""

    @property
    @abstractmethod
    def normalizer(self) -> float:
        """The constant that the energy leaves out."""

    @abstractmethod
    def energy(self, deviation: Tensor, variance: Tensor) -> Tensor:
        """−log P without its constant, element by element; `deviation` is a − μ."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws with mean 0 and variance 1."""


@dataclass(frozen=True)
class Gaussian(Family):
    """The paper's family: a quadratic penalty, as in Eqs. 5 and 7."""

    @property
    def normalizer(self) -> float:
        """½ ln 2π, which Eq. 7 leaves out."""
        return 0.5 * math.log(2 * math.pi)

    def energy(self, deviation: Tensor, variance: Tensor) -> Tensor:
        """½ (d²/σ² + ln σ²)."""
        return 0.5 * (deviation.square() / variance + variance.log())

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Standard normal draws."""
        return generator.standard_normal(shape)


@dataclass(frozen=True)
class Laplace(Family):
    """A linear penalty: single large surprises cost less, small ones more."""

    @property
    def normalizer(self) -> float:
        """½ ln 2."""
        return 0.5 * math.log(2)

    def energy(self, deviation: Tensor, variance: Tensor) -> Tensor:
        """√2 |d|/σ + ½ ln σ²."""
        return math.sqrt(2) * deviation.abs() * variance.rsqrt() + 0.5 * variance.log()

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Laplace draws of scale 1/√2, so that their variance is 1."""
        return generator.laplace(scale=math.sqrt(0.5), size=shape)


@dataclass(frozen=True)
class StudentT(Family):
    """A logarithmic penalty with ν degrees of freedom: outliers pull least. ν must exceed 2 to have a variance.

    >>> StudentT(df=2)
    Traceback (most recent call last):
    ...
    ValueError: df=2: a Student-t has a variance only above 2 degrees of freedom; try df=4.
    """

    df: float = 4.0

    def __post_init__(self):
        if not self.df > 2 or math.isinf(self.df):
            raise ValueError(f"df={self.df}: a Student-t has a variance only above 2 degrees of freedom; try df=4.")

    @property
    def normalizer(self) -> float:
        """Normalizer ln Γ(ν/2) − ln Γ((ν+1)/2) + ½ ln(π(ν−2))."""
        half = 0.5 * self.df
        return math.lgamma(half) - math.lgamma(half + 0.5) + 0.5 * math.log(math.pi * (self.df - 2))

    def energy(self, deviation: Tensor, variance: Tensor) -> Tensor:
        """½(ν+1) ln(1 + d²/(σ²(ν−2))) + ½ ln σ²."""
        tail = (deviation.square() / (variance * (self.df - 2))).log1p()
        return 0.5 * (self.df + 1) * tail + 0.5 * variance.log()

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Student-t draws shrunk to variance 1."""
        return generator.standard_t(self.df, shape) * math.sqrt((self.df - 2) / self.df)


FAMILIES = {"gaussian": Gaussian, "laplace": Laplace, "student": StudentT}
_Choice = TypeVar("_Choice")


def choose(argument: str, value: object, choices: dict[str, _Choice]) -> _Choice:
    """The entry called `value`, or an error that names the argument and lists what there is.

    >>> choose("family", "cauchy", FAMILIES)
    Traceback (most recent call last):
    ...
    ValueError: family='cauchy' is unknown; choose one of 'gaussian', 'laplace', 'student'.
    """
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise ValueError(f"{argument}={value!r} is unknown; choose one of {', '.join(map(repr, choices))}.")


def as_family(family: "str | Family") -> Family:
    """A family from its name; a `Family` stays as it is (to set the degrees of freedom, say)."""
    return family if isinstance(family, Family) else choose("family", family, FAMILIES)()
