"""One forward pass, watched or disturbed.

Priors keep nothing. While a `Pass` is open, every prior that runs shows it its state; a `Recording` collects the
states (`trace`), and a noisy pass (`ganns.sampling`) answers with a disturbed one. Passes nest and always close.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ganns.families import Family, Gaussian


class State(NamedTuple):
    r"""The paper's s = (μ, σ², a) of one layer, and the family of its prior.

    `activity` has any shape with rows first; `mean` holds one number a unit and, like `variance`, is shaped so that
    it broadcasts against the activity. `energy_sum` is the sum of `energy()` where it was computed on the way.
    """

    mean: Tensor
    variance: Tensor
    activity: Tensor
    family: Family = Gaussian()
    energy_sum: Tensor | None = None

    @property
    def units(self) -> int:
        """How many units the layer has: the numbers in `mean`."""
        return self.mean.numel()

    @property
    def positions(self) -> int:
        """How often each unit occurs in a row: 1 for vectors, height × width for pictures, time for sequences."""
        return self.activity.numel() // (self.units * self.activity.shape[0])

    def energy(self) -> Tensor:
        """How unexpected each activity is: −log P(s) without its constant; the shape of the activity."""
        return self.family.energy(self.activity - self.mean, self.variance)

    def log_likelihood(self) -> Tensor:
        r"""Logarithm of the probability density of each activity under its prior; the shape of the activity.

        Equation 5:

        .. math:: P(s^{(k)} \mid s^{(k-1)}) = \frac{1}{\sqrt{2\pi\sigma^{2}}}\,
            e^{-(\mu^{(k)} - a^{(k)})^2 / 2\sigma^{2}}

        with the density of another family in its place where one was chosen.
        """
        return -(self.energy() + self.family.normalizer)


class Trace(NamedTuple):
    """What a forward pass returned, and the state of every prior it went through, in order."""

    output: Any
    states: list[State]


class Pass(ABC):
    """What goes on in one forward pass: the last state seen, and what inserted dense priors will need."""

    def __init__(self):
        self.previous: State | None = None
        self.inputs: dict[nn.Module, Tensor] = {}

    @abstractmethod
    def observe(self, prior: nn.Module, state: State) -> State:
        """Take note of a prior's state and return the one the network goes on with."""


class Recording(Pass):
    """Collects the states and changes none."""

    def __init__(self):
        super().__init__()
        self.states: list[State] = []
        self._versions: list[int] = []

    def observe(self, prior: nn.Module, state: State) -> State:
        """Append the state."""
        self.states.append(state)
        self.previous = state
        if not torch.compiler.is_compiling():
            self._versions.append(state.activity._version)
        return state

    def check_untouched(self) -> None:
        """Refuse states whose activity the model changed in place afterwards: they are no longer what priors saw."""
        for number, (state, version) in enumerate(zip(self.states, self._versions, strict=False)):
            if state.activity._version != version:
                raise RuntimeError(
                    f"the activity of prior {number} (counting from 0, in forward order; shape "
                    f"{tuple(state.activity.shape)}) was changed in place after the prior saw it, as by `x += y` or "
                    "inplace=True; write `x = x + y` there, or watch another module."
                )


_Pass = TypeVar("_Pass", bound=Pass)


class _Open(threading.local):
    """The open pass of each thread: a server may sample in one thread and trace in another."""

    innermost: Pass | None = None


_open = _Open()


def current() -> Pass | None:
    """The pass that is open in this thread, if any."""
    return _open.innermost


@contextmanager
def opened(new: _Pass) -> Iterator[_Pass]:
    """Open a pass for the calls inside; whatever was open before is restored, come what may."""
    before, _open.innermost = _open.innermost, new
    try:
        yield new
    finally:
        _open.innermost = before


def trace(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Call the model and collect the state of every prior on the way.

    `model` may be any callable that runs priors, so `functional_call`, `vmap` and wrappers such as DDP work too. A
    prior that runs twice (a shared activation) is listed twice.

    >>> import torch, ganns
    >>> net = ganns.GaussianMLP(3, 1, hidden=(8, 4))
    >>> output, states = ganns.trace(net, torch.zeros(5, 3))
    >>> [tuple(state.activity.shape) for state in states]
    [(5, 8), (5, 4)]
    """
    recording = Recording()
    with opened(recording):
        output = model(*args, **kwargs)
    recording.check_untouched()
    return Trace(output, recording.states)
