"""Many networks of one shape as one: parameters stacked, and a training step with its gradient in closed form.

Autograd would move each weight about six times a step: read forwards, write the gradient, read it for the norm, then
read, read and write in the update. Here a gradient DᵀX of a wide layer is never written: its norm follows from two Gram
matrices, ‖DᵀX‖² = Σ (DDᵀ) ∘ (XXᵀ), and plain SGD is a matrix product that accumulates into the weight. Three passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ganns.heads import Head
from ganns.kernels import Expected, ExpectedDense, Kernels
from ganns.layers import GaussianMLP


@dataclass(frozen=True)
class Shape:
    """What the members of a fleet have in common.

    Args:
        features: width of a row.
        outputs: width of the head.
        hidden: units of each hidden layer.
        variance: "constant", "sparse", "dense"; None: plain networks without priors.
    """

    features: int
    outputs: int
    hidden: tuple[int, ...]
    variance: str | None

    def network(self, *, meta: bool = False) -> GaussianMLP:
        """A new network of this shape (`meta`: without memory); plain ones are cut from it with `GaussianMLP.plain`."""
        with torch.device("meta" if meta else "cpu"):
            return GaussianMLP(self.features, self.outputs, self.hidden, self.variance or "constant")

    @property
    def widths(self) -> list[tuple[int, int]]:
        """(in, out) of each hidden layer."""
        return list(pairwise((self.features, *self.hidden)))


_CACHED = 2**22  # numbers
_REGISTER = 16  # numbers
_SHARED = {"cpu": 2**14, "cuda": 0}  # numbers in a matrix; larger ones lie by themselves, and a GPU likes all aligned
_SUMS = ("prior.mean", "prior.bias", "prior.weight")  # as `Expected.sums` has them


class Factors(NamedTuple):
    """The gradient DᵀX of a weight matrix (M, out, in) as its factors: D (M, B, out) and X (M, B, in)."""

    delta: Tensor
    seen: Tensor

    def product(self) -> Tensor:
        """The gradient itself."""
        return torch.bmm(self.delta.mT, self.seen)

    def flat(self) -> Tensor:
        """The same as (M, out · in); a CPU takes up to four times as long for rows that do not fill a register."""
        if self.seen.shape[2] < min(_REGISTER, self.delta.shape[2]):
            return torch.bmm(self.seen.mT, self.delta).mT.flatten(1)
        return self.product().flatten(1)

    @property
    def wide(self) -> bool:
        """Whether the gradient had better not be written: it has more numbers than its factors.

        On a GPU it must also be too large for the cache, since to write it takes fewer launches.
        """
        members, rows, out = self.delta.shape
        size = out * self.seen.shape[2]
        return size > rows * (out + self.seen.shape[2]) and not (self.delta.is_cuda and members * size < _CACHED)


class Hyper(NamedTuple):
    """Numbers of each member, shape (M, 1, 1)."""

    alpha: Tensor
    floor: Tensor
    learning_rate: Tensor
    weight_decay: Tensor
    dropout: Tensor
    key: Tensor


class Losses(NamedTuple):
    """What a step saw of each member, shape (M,)."""

    base: Tensor
    inner: Tensor
    coefficient: Tensor
    norm: Tensor


class Stack:
    """Parameters of M networks of one shape, each (M, ...), under the names that `GaussianMLP` gives them.

    Vectors and small matrices share one buffer (M, 1, P), so that one operation updates them all; in it vectors of one
    kind ("prior.mean") lie side by side for all layers, so that one operation serves all priors: `joined` has them as
    (M, 1, units of all layers), `vectors` has each (M, 1, U).
    """

    def __init__(self, shape: Shape, states: Sequence[dict[str, Tensor]], device: torch.device, dtype: torch.dtype):
        self.shape = shape
        names = [name for name in states[0] if shape.variance or ".prior." not in name]
        stacked = {name: torch.stack([state[name] for state in states]).to(device, dtype) for name in names}
        kinds = sorted({_kind(name) for name, value in stacked.items() if value.ndim == 2})
        vectors = [name for kind in kinds for name in names if stacked[name].ndim == 2 and _kind(name) == kind]
        matrices = [name for name in names if stacked[name].ndim == 3]
        small = [name for name in matrices if stacked[name][0].numel() <= _SHARED[device.type]]
        self.own = {name: stacked[name] for name in matrices if name not in small}
        self.shared = {name: stacked[name].shape[1:] for name in (*vectors, *small)}
        self.buffer = torch.cat([stacked[name].flatten(1) for name in self.shared], dim=1).unsqueeze(1)
        named = self.parameters()
        self.vectors = {name: named[name].unsqueeze(1) for name in vectors}
        self.matrices = {name: named[name] for name in matrices}
        self.small = tuple(small)
        widths = [sum(stacked[name].shape[1] for name in vectors if _kind(name) == kind) for kind in kinds]
        of_vectors = self.buffer[:, :, : sum(widths)]
        self.joined = dict(zip(kinds, of_vectors.split(widths, dim=2), strict=True))

    def storages(self) -> dict[str, Tensor]:
        """The tensors that hold them all: large matrices by name, and the buffer."""
        return {**self.own, "shared": self.buffer}

    def named(self, storages: dict[str, Tensor]) -> dict[str, Tensor]:
        """Parameters, or what there is as much of, by name: views of tensors that are as `storages` gives them."""
        pieces = storages["shared"].squeeze(1).split([size.numel() for size in self.shared.values()], dim=1)
        views = {name: piece.view(-1, *size) for (name, size), piece in zip(self.shared.items(), pieces, strict=True)}
        return {name: values for name, values in storages.items() if name != "shared"} | views

    def parameters(self) -> dict[str, Tensor]:
        """All of them by name; changing one in place changes the network."""
        return self.named(self.storages())

    def assemble(self, vectors: dict[str, Tensor], gradients: "dict[str, Factors]") -> Tensor:
        """The buffer's gradient: of vectors (M, U), or of all layers' vectors of one kind, and of small matrices."""
        pieces: list[Tensor] = []
        for kind in self.joined:
            whole = vectors.get(kind)
            pieces += [whole] if whole is not None else [vectors[name] for name in self.vectors if _kind(name) == kind]
        pieces += [gradients[name].flat() for name in self.small]
        return torch.cat(pieces, dim=1).unsqueeze(1)


def _kind(name: str) -> str:
    """The parameter's name without its layer: "prior.mean"."""
    return name.split(".", 2)[2] if name.startswith("layers.") else name


def forward(stack: Stack, x: Tensor, kernels: Kernels) -> Tensor:
    """Outputs (M, B, outputs) for rows x (M, B, features), in evaluation."""
    for depth in range(len(stack.shape.hidden)):
        name = f"layers.{depth}.linear"
        z = torch.bmm(x, stack.matrices[f"{name}.weight"].mT)
        x = kernels.rectify(z, stack.vectors[f"{name}.bias"], z)
    return torch.bmm(x, stack.matrices["head.weight"].mT).add_(stack.vectors["head.bias"])


class Trainer:
    """One training step of all members at once.

    Args:
        stack: the parameters, which steps change in place.
        head: the base loss.
        hyper: the members' own numbers.
        optimizer: "sgd" or "adamw".
        clip: largest norm of a member's gradient.
        kernels: elementwise functions.
    """

    def __init__(self, stack: Stack, head: Head, hyper: Hyper, optimizer: str, clip: float | None, kernels: Kernels):
        self.stack, self.head, self.hyper, self.clip, self.kernels = stack, head, hyper, clip, kernels
        self.drops, self.decays = bool((hyper.dropout > 0).any()), bool((hyper.weight_decay > 0).any())
        self.adapts = optimizer == "adamw"
        self.memory: dict[str, tuple[Tensor, Tensor]] = {}
        if self.adapts:
            self.memory = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in stack.storages().items()}

    def step(self, x: Tensor, y: Tensor, schedule: Tensor, count: Tensor) -> Losses:
        """Learn from rows x (M, B, features) and targets y (M, B, ...).

        Args:
            x: rows.
            y: targets.
            schedule: what learning rates are multiplied by in each step.
            count: number of this step, from 0; a whole number, one element.
        """
        gradients, shared, losses = self._gradients(x, y, count)
        written = {name: g.product() for name, g in gradients.items() if self.adapts or not g.wide}
        norms = [
            self.kernels.square_sum(written[name])
            if name in written
            else self.kernels.product_sum(torch.bmm(g.delta, g.delta.mT), torch.bmm(g.seen, g.seen.mT))
            for name, g in gradients.items()
        ]
        written["shared"] = shared
        numbers = schedule, count, self.hyper.learning_rate, self.hyper.weight_decay
        norm, factor, rates, decays = self.kernels.scale(norms, shared, self.clip, *numbers)
        if self.adapts:
            self._adapt(written, factor, *self.kernels.unbias(rates, decays, count))
        else:
            self._descend(gradients, written, rates * factor, 1 - decays if self.decays else None)
        return losses._replace(norm=norm)

    def _descend(
        self, gradients: dict[str, Factors], written: dict[str, Tensor], rates: Tensor, left: Tensor | None
    ) -> None:
        for name, parameter in self.stack.storages().items():
            if name in written:
                self.kernels.descend(parameter, written[name], rates, left)
                continue
            if left is not None:
                parameter.mul_(left)
            parameter.baddbmm_((gradients[name].delta * rates).mT, gradients[name].seen, alpha=-1)

    def _adapt(self, written: dict[str, Tensor], factor: Tensor, rates: Tensor, least: Tensor, left: Tensor) -> None:
        for name, parameter in self.stack.storages().items():
            self.kernels.adapt(parameter, written[name], *self.memory[name], factor, rates, least, left)

    def _gradients(self, x: Tensor, y: Tensor, count: Tensor) -> tuple[dict[str, Factors], Tensor, Losses]:
        """The gradient of each large matrix, in factors; that of the shared buffer; and the losses."""
        stack, kernels = self.stack, self.kernels
        tape, expected = self._forward(x, count)
        seen = tape[-1].passed_on
        output = torch.bmm(seen, stack.matrices["head.weight"].mT)
        base, delta, by_bias = kernels.judge(self.head, output, stack.vectors["head.bias"], y)
        energies = [layer.dense.energy for layer in tape if layer.dense is not None]
        if expected is not None:
            energies = [expected.energy]
        inner, coefficient, weight = kernels.balance(base, energies, self.hyper.alpha, x.shape[1])

        gradients = {"head.weight": Factors(delta, seen)}
        vectors = {"head.bias": by_bias}
        if expected is not None:
            vectors |= zip(_SUMS, kernels.weigh(expected.sums, weight), strict=False)
        by_activity = () if expected is None else expected.by_activity.split(stack.shape.hidden, dim=2)
        upstream = torch.bmm(delta, stack.matrices["head.weight"])
        of_activity = of_sigma = None
        for depth in reversed(range(len(tape))):
            layer, linear, prior = tape[depth], f"layers.{depth}.linear", f"layers.{depth}.prior"
            if layer.factor is not None:
                upstream = upstream.mul_(layer.factor)
            if layer.dense is not None:
                delta, by_bias, by_drive, by_drive_bias, by_mean = kernels.backward_dense(
                    upstream, of_activity, of_sigma, layer.activity, layer.dense, weight
                )
                vectors |= {f"{prior}.mean": by_mean, f"{prior}.bias": by_drive_bias}
                gradients[f"{prior}.weight"] = Factors(by_drive, layer.fed)
                if layer.fed_sigma is not None:
                    gradients[f"{prior}.sigma_weight"] = Factors(by_drive, layer.fed_sigma)
                    of_activity = torch.bmm(by_drive, stack.matrices[f"{prior}.weight"])
                    of_sigma = torch.bmm(by_drive, stack.matrices[f"{prior}.sigma_weight"])
            elif by_activity:
                delta, by_bias = kernels.backward_expected(upstream, layer.activity, by_activity[depth], weight)
            else:
                delta, by_bias = kernels.backward_plain(upstream, layer.activity)
            vectors[f"{linear}.bias"] = by_bias
            gradients[f"{linear}.weight"] = Factors(delta, layer.seen)
            if depth:
                upstream = torch.bmm(delta, stack.matrices[f"{linear}.weight"])
        shared = stack.assemble(vectors, gradients)
        return {name: gradients[name] for name in stack.own}, shared, Losses(base, inner, coefficient, base)

    def _forward(self, x: Tensor, count: Tensor) -> "tuple[list[_Layer], Expected | None]":
        """What the backward pass needs: of each layer, and of all priors together unless they are dense."""
        stack, kernels, variance = self.stack, self.kernels, self.stack.shape.variance
        joined, floor, hidden = stack.joined, self.hyper.floor, stack.shape.hidden
        alike = variance in ("constant", "sparse")  # then one operation serves the priors of all layers
        activities = x.new_empty(x.shape[0], x.shape[1], sum(hidden) if alike else 0)
        outs = activities.split(hidden, dim=2) if alike else ()
        tape: list[_Layer] = []
        seen, fed, sigma = x, x, None
        for depth in range(len(hidden)):
            linear, prior = f"layers.{depth}.linear", f"layers.{depth}.prior"
            z = torch.bmm(seen, stack.matrices[f"{linear}.weight"].mT)
            activity = kernels.rectify(z, stack.vectors[f"{linear}.bias"], outs[depth] if outs else z)
            dense, fed_sigma = None, sigma
            if variance == "dense":
                drive = torch.bmm(fed, stack.matrices[f"{prior}.weight"].mT)
                if sigma is not None:
                    drive = drive.baddbmm_(sigma, stack.matrices[f"{prior}.sigma_weight"].mT)
                numbers = stack.vectors[f"{prior}.mean"], stack.vectors[f"{prior}.bias"], floor
                dense = kernels.expect_dense(activity, drive, *numbers)
                sigma = dense.sigma
            passed_on, factor = activity, None
            if self.drops:
                passed_on, factor = kernels.drop(activity, self.hyper.key, count, depth, self.hyper.dropout)
            tape.append(_Layer(seen, fed, fed_sigma, activity, passed_on, factor, dense))
            seen, fed = passed_on, activity
        if not alike:
            return tape, None
        weight = joined["prior.weight"] if variance == "sparse" else None
        return tape, kernels.expect(activities, weight, joined["prior.mean"], joined["prior.bias"], floor)


class _Layer(NamedTuple):
    """What the backward pass needs of a layer.

    Args:
        seen: what its activities saw, (M, B, in).
        fed: what its dense variances saw: the same before dropout.
        fed_sigma: σ of the layer before, if it has a dense prior.
        activity: its own, (M, B, U).
        passed_on: the same after dropout.
        factor: what dropout multiplied it by.
        dense: what its dense prior made of it.
    """

    seen: Tensor
    fed: Tensor
    fed_sigma: Tensor | None
    activity: Tensor
    passed_on: Tensor
    factor: Tensor | None
    dense: ExpectedDense | None


def initial_state(shape: Shape, seed: int) -> dict[str, Tensor]:
    """The parameters that a member begins with: those of a `GaussianMLP` made after `torch.manual_seed(seed)`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return shape.network().state_dict()


def member_network(shape: Shape, state: dict[str, Tensor], floor: float, dropout: float) -> nn.Module:
    """An ordinary network with a member's parameters, in evaluation mode: a `GaussianMLP`, or its plain half."""
    with torch.device("meta"):  # initial weights would be for nothing, and take from the global random numbers
        net = GaussianMLP(
            shape.features, shape.outputs, shape.hidden, shape.variance or "constant", dropout=dropout, floor=floor
        )
    like = next(iter(state.values()))
    net = net.to(like.dtype).to_empty(device=like.device)
    net.load_state_dict(state, strict=shape.variance is not None)
    return (net if shape.variance else net.plain()).eval()
