"""Predictions under the noise that the priors expect: by drawing it, or by following its mean and variance."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ganns.calling import Input, call_for_tensor, check_finite, evaluating, row_count, take_rows
from ganns.tracing import Pass, Recording, State, opened

_DROPOUTS = nn.modules.dropout._DropoutNd
# Elements of one layer's activity, all draws of a chunk of rows together: a GPU wants to be busy, and a CPU to use
# memory again before it is given back.
_LARGEST_LAYER, _LARGEST_LAYER_OF_CPU = 2**24, 2**22


def add_noise(activity: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    r"""An activity disturbed by as much as its prior expects.

    Equation 13:

    .. math:: a_{\gamma,j}^{(l)} = a_j^{(l)}(a_{\gamma,j}^{(l-1)})
        + \gamma\, \varepsilon\!\left(0, \sigma^{(l)^2}(a_{\gamma,j}^{(l-1)})\right)

    Args:
        activity: a, which has seen the noise of earlier layers, as has the variance.
        variance: σ², broadcasting with the activity.
        noise: γ times draws of mean 0 and variance 1.
    """
    return torch.addcmul(activity, variance.sqrt(), noise)


class Noise:
    """γ ε for each layer and draw: one pattern a draw, shared by all rows, so that (seed, draw) names a function.

    Args:
        gamma: γ of each draw and layer, shape (S, L).
        seed: names the sequence of draws.
        draws: which draws of that sequence; S of them.
    """

    def __init__(self, gamma: Tensor, seed: int, draws: Sequence[int]):
        self.gamma, self.seed, self.draws = gamma, seed, draws
        self._patterns: dict[int, Tensor] = {}

    def pattern(self, layer: int, state: State) -> Tensor:
        """γ ε of all draws for one layer, shape (S, *activity of a row)."""
        shape = tuple(state.activity.shape[1:])
        if layer not in self._patterns:
            generators = [np.random.default_rng((self.seed, draw, layer)) for draw in self.draws]
            draws = torch.from_numpy(np.stack([state.family.draw(generator, shape) for generator in generators]))
            scaled = draws * self.gamma[:, layer].reshape(-1, *[1] * len(shape))
            self._patterns[layer] = scaled.to(state.activity.device, state.activity.dtype)
        return self._patterns[layer]


class NoisyPass(Pass):
    """Answers each prior with a noisy activity. `draw` is a 0-dim index into the draws; vmap runs all at once."""

    def __init__(self, noise: Noise, draw: Tensor, rows: int):
        super().__init__()
        self.noise, self.draw, self.rows, self.layer = noise, draw, rows, 0

    def observe(self, prior: nn.Module, state: State) -> State:
        """Add this layer's noise."""
        if state.activity.shape[0] != self.rows:
            raise ValueError(
                f"the activity of prior {self.layer} has shape {tuple(state.activity.shape)}, but x has {self.rows} "
                "rows; sampling needs rows first in every activity (batch_first=True in PyTorch's sequence modules)."
            )
        noise = self.noise.pattern(self.layer, state)[self.draw]
        self.layer += 1
        self.previous = state._replace(activity=add_noise(state.activity, state.variance, noise), energy_sum=None)
        return self.previous


def sample(
    model: nn.Module,
    x: Input,
    draws: int = 100,
    gamma: float | Sequence[float] = 1.0,
    seed: int = 0,
    *,
    chunk: int | None = None,
    dropout: bool = False,
) -> Tensor:
    """Outputs under noise, Eq. 13, shape (S, N, ...); in evaluation mode and without gradients.

    One draw is one noise pattern a layer, shared by all rows: a row's draws depend neither on its company nor on
    `chunk`, and the first ten of a hundred draws are the ten of the same seed. What comes before the first prior is
    computed once for all draws.

    Args:
        model: a network with priors.
        x: rows, as the model takes them (a tuple holds positional arguments, a mapping keyword arguments).
        draws: S.
        gamma: γ, the strength of the noise; one number, or one for each prior in forward order. `calibrate` finds it.
        seed: names the sequence of draws.
        chunk: rows to compute at a time. None: as many as keep one layer's activities in all draws small.
        dropout: leave dropout on as well (Monte-Carlo dropout); then a network without priors will do, and since each
            row drops units of its own, draws depend on the rows beside it.

    >>> import ganns
    >>> net = ganns.GaussianMLP(3, 2, hidden=(8,))
    >>> sample(net, torch.zeros(5, 3), draws=7).shape
    torch.Size([7, 5, 2])
    """
    if draws < 1:
        raise ValueError(f"draws={draws}: ask for at least one.")
    if seed < 0:
        raise ValueError(f"seed={seed}: a seed is 0 or above.")
    row_count(x)
    check_finite("x", x)
    seen = survey(model, x, dropout=dropout)
    gammas = torch.tensor(layer_gammas(gamma, seen.layers), dtype=torch.float64).expand(draws, seen.layers)
    rows = seen.chunk(draws) if chunk is None else chunk
    return sample_noise(model, x, Noise(gammas, seed, range(draws)), rows, dropout=dropout)


def layer_gammas(gamma: float | Sequence[float], layers: int) -> list[float]:
    """γ of each layer, checked."""
    gammas = [float(gamma)] * layers if isinstance(gamma, int | float) else [float(value) for value in gamma]
    if len(gammas) != layers:
        raise ValueError(f"gamma={gamma}: give one number, or one for each of the {layers} priors.")
    if not all(value >= 0 and math.isfinite(value) for value in gammas):
        raise ValueError(f"gamma={gamma}: the strength of the noise must be finite and 0 or above.")
    return gammas


class Survey(NamedTuple):
    """How many priors a model runs, the elements of the widest activity in a row that is noisy, and where it runs."""

    layers: int
    widest: int
    device: str

    def chunk(self, draws: int) -> int:
        """Rows at a time, so that one layer's activities in all draws stay small."""
        largest = _LARGEST_LAYER_OF_CPU if self.device == "cpu" else _LARGEST_LAYER
        return max(1, largest // (self.widest * draws))


def survey(model: nn.Module, x: Input, *, dropout: bool = False) -> Survey:
    """Look at a model while it runs one row."""
    seen: list[Any] = []
    dropping = [module for module in model.modules() if isinstance(module, _DROPOUTS) and module.p] if dropout else []
    handles = [module.register_forward_hook(lambda _module, _args, output: seen.append(output)) for module in dropping]
    try:
        with evaluating(model), opened(Recording()) as recording:
            call_for_tensor(model, take_rows(x, 0, 1))
    finally:
        for handle in handles:
            handle.remove()
    seen += [state.activity for state in recording.states]
    if not seen:
        sought = "neither a prior nor a dropout module" if dropout else "no prior"
        raise ValueError(f"the model ran {sought}; build a GaussianMLP or use ganns.insert first.")
    return Survey(len(recording.states), max(activity.numel() for activity in seen), seen[0].device.type)


def sample_noise(model: nn.Module, x: Input, noise: Noise, chunk: int, *, dropout: bool = False) -> Tensor:
    """Outputs under the given noise, shape (S, N, ...): a γ for every draw, all draws at once."""
    if chunk < 1:
        raise ValueError(f"chunk={chunk}: compute at least one row at a time.")
    rows = row_count(x)
    even = math.ceil(rows / math.ceil(rows / chunk))
    with evaluating(model), _dropping(model, noise.seed) if dropout else nullcontext():
        randomness = "different" if dropout else "error"
        parts = [_all_draws(model, take_rows(x, start, even), noise, randomness) for start in range(0, rows, even)]
        return torch.cat(parts, dim=1)


@contextmanager
def _dropping(model: nn.Module, seed: int) -> Iterator[None]:
    """Dropout left on, with random numbers of its own; `evaluating`, around it, turns it off again."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        dropping = [module for module in model.modules() if isinstance(module, _DROPOUTS)]
        for module in dropping:
            module.training = True
        try:
            yield
        finally:
            for module in dropping:
                module.training = False


def _all_draws(model: nn.Module, x: Input, noise: Noise, randomness: str) -> Tensor:
    """All draws of one chunk of rows. Under vmap only what depends on the draw is repeated for each."""
    rows = row_count(x)

    def one_draw(draw: Tensor) -> Tensor:
        with opened(NoisyPass(noise, draw, rows)):
            return call_for_tensor(model, x)

    indices = torch.arange(len(noise.draws))
    try:
        with warnings.catch_warnings():
            # Where an operation has no batching rule, vmap runs it draw by draw and says so; only that part is slower.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            return torch.func.vmap(one_draw, randomness=randomness)(indices)
    except (RuntimeError, NotImplementedError) as error:
        outputs = torch.stack([one_draw(index) for index in indices])
        warnings.warn(
            f"draws were computed one after another, which is slow, because vmap cannot follow the model: "
            f"{str(error).splitlines()[0]}",
            stacklevel=4,
        )
        return outputs
