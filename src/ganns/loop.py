"""The one training loop of this library: a group of networks of one shape, step by step on one device.

Everything that the next step depends on is in tensors on the device, counters included, so that a step reads nothing
from the host and waits for nothing. On a GPU each of the three parts of an epoch (its order, its steps, its end) is one
CUDA graph; elsewhere, or with `compiled=False`, the same functions run as they stand and give the same numbers.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ganns.feeding import Feed, Rows, Scaling
from ganns.heads import make_head
from ganns.kernels import FUNCTIONS, Kernels, mix
from ganns.progress import Listener, Progress
from ganns.recipes import Member, Recipe, Split
from ganns.stacked import Hyper, Shape, Stack, Trainer, forward, initial_state

SERIES = ("base", "inner", "coefficient", "norm", "validation")
_VARIANTS = 64  # of a function, for as many combinations of depth, head and optimizer; beyond, it runs uncompiled
EVALUATED = {"cuda": 2**28, "cpu": 2**18}  # numbers of the widest layer at a time, all members together
AHEAD = {"cuda": 0, "cpu": 2**22}  # numbers in an epoch's rows, all members together, if they are taken at once


@cache
def kernels(compiled: bool) -> Kernels:
    """The functions of `ganns.kernels`: as they stand, or as a GPU likes them, compiled once for all shapes."""
    if not compiled:
        return Kernels(**{function.__name__: function for function in FUNCTIONS})
    from ganns import launches  # needs Triton

    functions = {function.__name__: torch.compile(function, dynamic=True) for function in FUNCTIONS}
    return Kernels(**functions | {function.__name__: function for function in launches.FUNCTIONS})


class Group:
    """M members, trained together.

    Args:
        shape: of each network.
        recipe: how all are trained.
        members: with all their numbers (`Member.resolved`).
        rows: the data, on the device.
        splits: each member's part of it.
        scaled: each member's scaling.
        dtype: of parameters and activities.
        compiled: whether to compile, and capture graphs; None: on a GPU.
    """

    def __init__(
        self,
        shape: Shape,
        recipe: Recipe,
        members: Sequence[Member],
        rows: Rows,
        splits: Sequence[Split],
        scaled: Sequence[Scaling],
        dtype: torch.dtype,
        compiled: bool | None = None,
    ):
        device = rows.x.device
        self.shape, self.recipe, self.members = shape, recipe, members
        self.graphs = device.type == "cuda" if compiled is None else compiled
        self.kernels = kernels(self.graphs)
        self.feed = Feed(rows, splits, scaled, self.kernels)
        self.head = make_head(recipe.head, recipe.beta)
        states = [initial_state(shape, member.seed) for member in members]
        self.stack = Stack(shape, states, device, dtype)
        self.key = _column([member.seed for member in members], device, torch.int64)
        hyper = Hyper(
            **{
                name: _column([getattr(member, name) for member in members], device, dtype)
                for name in ("alpha", "floor", "learning_rate", "weight_decay", "dropout")
            },
            key=self.key,
        )
        self.trainer = Trainer(self.stack, self.head, hyper, recipe.optimizer, recipe.clip_norm, self.kernels)
        self.steps = self.feed.train.shape[1] // recipe.batch_size
        rates = [recipe.rate(step, self.steps) for step in range(recipe.epochs * self.steps)]
        self.rates = torch.tensor(rates, device=device, dtype=dtype)

        count = len(members)
        whole = {"device": device, "dtype": torch.int64}
        self.done = 0  # steps, as the host counts them
        self.count = torch.zeros(1, **whole)  # the same on the device
        self.epoch = torch.zeros(1, **whole)  # epochs that have ended
        self.order = self.feed.train[:, : self.steps * recipe.batch_size].clone()
        self.ahead: list[Tensor] = []  # the epoch's rows and targets, (M, steps, B, ...), where they are few
        self.sums = torch.zeros(4, count, device=device, dtype=dtype)
        self.history = torch.full((recipe.epochs, len(SERIES), count), torch.nan, device=device, dtype=dtype)
        self.best = {name: p.clone() for name, p in self.stack.storages().items()}
        worst = -torch.inf if self.head.higher_is_better else torch.inf
        self.best_metric = torch.full((count,), worst, device=device, dtype=dtype)
        self.best_epoch, self.diverged, self.stopped = (torch.zeros(count, **whole) for _ in range(3))
        self._graphs: list[Callable[[], None]] = []

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or all members have stopped. Looking waits for the device."""
        return self.done == len(self.rates) or bool((self.stopped > 0).all())

    def advance(self) -> bool:
        """One step, and at an epoch's ends what belongs there. Returns whether an epoch has just ended."""
        if self.graphs and not self._graphs:
            self._graphs = self._capture()
        begin, step, end = self._graphs or (self._begin, self._step, self._end)
        if self.done % self.steps == 0:
            begin()
        step()
        self.done += 1
        if ended := self.done % self.steps == 0:
            end()
        return ended

    def state(self) -> dict[str, Tensor]:
        """Everything that what comes next depends on; each tensor is the group's own."""
        own = ("count", "epoch", "order", "sums", "history", "best_metric", "best_epoch", "diverged", "stopped")
        state = {name: getattr(self, name) for name in own}
        kinds = {"now": self.stack.storages(), "best": self.best}
        for place, kind in enumerate(("first", "second") if self.trainer.memory else ()):
            kinds[kind] = {name: both[place] for name, both in self.trainer.memory.items()}
        for kind, storages in kinds.items():
            state |= {f"{kind}.{name}": values for name, values in self.stack.named(storages).items()}
        return state

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a state."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        self.done, self.ahead = int(self.count), []

    def best_parameters(self, member: int) -> dict[str, Tensor]:
        """A copy of one member's weights at its best epoch, by the names of `GaussianMLP`."""
        return {name: values[member].clone() for name, values in self.stack.named(self.best).items()}

    def _begin(self) -> None:
        """Shuffle: the order of an epoch follows from the member's seed and the epoch's number alone."""
        rows = torch.arange(self.feed.train.shape[1], device=self.order.device).unsqueeze(0)
        seed = mix(mix(self.key[:, :, 0] + _ORDER) ^ mix(self.epoch))
        order = _sorted(mix(mix(rows) ^ seed), rows)
        self.order.copy_(self.feed.train.gather(1, order[:, : self.order.shape[1]]))
        self.sums.zero_()
        # Where an epoch is small, take its batches at once: a CPU spends more time on asking than on copying.
        if self.order.numel() * self.feed.rows.features <= AHEAD[self.order.device.type]:
            size = self.steps, self.recipe.batch_size
            self.ahead = [rows.unflatten(1, size) for rows in self.feed.batch(self.order)]

    def _step(self) -> None:
        if self.ahead:
            x, y = (batches[:, self.done % self.steps] for batches in self.ahead)
        else:
            x, y = self.feed.batch(self.kernels.place(self.order, self.count, self.recipe.batch_size))
        losses = self.trainer.step(x, y, self.rates, self.count)
        self.kernels.note(self.sums, list(losses), self.count)

    def _end(self) -> None:
        """Evaluate, keep the best weights, and see who has diverged or learns no more."""
        metric = self._validate()
        self.epoch.add_(1)
        running = self.stopped == 0
        seen = torch.cat([self.sums / self.steps, metric.unsqueeze(0)])
        broken = running & ~seen.isfinite().all(0)
        better = metric > self.best_metric if self.head.higher_is_better else metric < self.best_metric
        better &= running & ~broken
        self.best_metric.copy_(torch.where(better, metric, self.best_metric))
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))
        for name, now in self.stack.storages().items() if self.graphs or better.any() else ():
            chosen = better.view(-1, *[1] * (now.ndim - 1))
            torch.where(chosen, now, self.best[name], out=self.best[name])
        seen = torch.where(running, seen, torch.nan)
        self.history.index_copy_(0, self.epoch - 1, seen.unsqueeze(0))
        self.diverged.copy_(torch.where(broken, self.epoch, self.diverged))
        ends = broken
        if self.recipe.patience is not None:
            ends = ends | (running & (self.epoch - self.best_epoch >= self.recipe.patience))
        self.stopped.copy_(torch.where(ends, self.epoch, self.stopped))

    def _validate(self) -> Tensor:
        """Each member's mean metric over its validation rows, (M,)."""
        chosen, scale = self.feed.validation, self.feed.target_scale
        widest = max(self.shape.features, *self.shape.hidden)
        together = max(1, EVALUATED[chosen.device.type] // (len(self.members) * widest))
        total = torch.zeros_like(self.best_metric)
        for rows in chosen.split(together, dim=1):
            x, y = self.feed.batch(rows)
            total += self.head.metrics(forward(self.stack, x, self.kernels), y, scale).sum(1)
        return total / chosen.shape[1]

    def _capture(self) -> list[Callable[[], None]]:
        """The parts of an epoch as CUDA graphs."""
        from torch._dynamo import config as dynamo  # a second to import, for those alone who compile

        before = {name: tensor.clone() for name, tensor in self.state().items()}

        def restore() -> None:
            for name, tensor in self.state().items():
                tensor.copy_(before[name])

        pool = torch.cuda.graph_pool_handle()
        with dynamo.patch(recompile_limit=_VARIANTS):
            return [_captured(part, restore, pool) for part in (self._begin, self._step, self._end)]


class Report:
    """Tells a listener how far a fleet is, whose groups are trained one after another."""

    def __init__(self, listener: Listener, members: int):
        self.listener, self.members = listener, members
        self.before, self.metrics = 0, torch.empty(0, dtype=torch.float64, device="cpu")  # of earlier groups
        self.last: tuple[float, int] | None = None
        self.rate = 0.0

    def over(self, group: Group) -> None:
        """Count a group that has been trained."""
        self.before, self.metrics, self.last = self.before + len(group.members), self._metrics(group), None

    def __call__(self, group: Group) -> None:
        """Look at the group that is being trained, which waits for the device."""
        now = time.monotonic()
        if self.last is not None and group.done > self.last[1]:
            self.rate = (group.done - self.last[1]) / max(now - self.last[0], 1e-9)
        self.last = now, group.done
        members, total = len(group.members), len(group.rates)
        done = total if group.finished else group.done
        waiting = self.members - self.before - members
        left = total - done + total * waiting / members
        best = self._metrics(group)
        leading = (best.max() if group.head.higher_is_better else best.min()) if len(best) else torch.tensor(torch.nan)
        epochs = group.done // group.steps
        self.listener(
            Progress(
                members=self.members,
                epochs=epochs,
                of_epochs=group.recipe.epochs,
                share=(self.before + members * done / total) / self.members,
                steps_a_second=self.rate,
                seconds_left=left / self.rate if self.rate else float("inf") if left else 0.0,
                best=float(leading),
                median=float(best.median()) if len(best) else float("nan"),
                balance=float(group.history[max(0, epochs - 1), SERIES.index("coefficient")].nanmedian()),
                running=int((group.stopped == 0).sum()) * (done < total) + waiting,
            )
        )

    def _metrics(self, group: Group) -> Tensor:
        """The best of each member so far."""
        return torch.cat([self.metrics, group.best_metric[group.best_epoch > 0].double().cpu()])


_ORDER = 0x10001  # keeps its random numbers apart from those of dropout


def _sorted(keys: Tensor, rows: Tensor) -> Tensor:
    """Numbers of rows (1, N) in the order of their keys (M, N), which have 32 bits; rows of one key in their own."""
    if keys.is_cuda:
        return torch.sort(keys, dim=1, stable=True).indices
    pairs = np.sort((keys << 31 | rows).numpy(), axis=1)  # 18 times as fast
    return torch.from_numpy(pairs) & (2**31 - 1)


def _column(values: list, device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, device=device, dtype=dtype).view(-1, 1, 1)


def _captured(part: Callable[[], None], restore: Callable[[], None], pool: Any) -> Callable[[], None]:
    """The same part as a CUDA graph. Warming up runs it, and compiles what is to be compiled."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            part()
            restore()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        part()
    return graph.replay
