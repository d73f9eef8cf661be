"""Many trainings as one: `fit_fleet` trains members side by side, and a `Fleet` is what they came to."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ganns.checkpoints import Checkpoint, Interrupt, fingerprint, own_folder
from ganns.families import choose
from ganns.feeding import Rows, Scaling, check_rows, divide, scalings
from ganns.heads import make_head
from ganns.loop import EVALUATED, SERIES, Group, Report
from ganns.priors import WEIGHT_SHAPES
from ganns.progress import Clock, Display, Listener
from ganns.recipes import Member, Recipe, Split
from ganns.stacked import Shape, member_network

FORMAT = 3
_WIDE = 2**16  # weights in a layer: beyond, a CPU's cores are busy with one member


@dataclass(frozen=True)
class Training:
    """What became of one member.

    Args:
        member: its seed and numbers, none of them None.
        split: its rows for training, validation and test.
        scaling: how its features and targets are scaled.
        parameters: the weights of its best epoch, on the CPU.
        history: one value an epoch, by name: base and inner loss, the coefficient of Eq. 9, the gradient's norm before
            clipping (each a mean over the epoch's steps) and the validation metric.
        best_epoch: counted from 1; 0 if no epoch could be evaluated.
        best_metric: mean absolute error or accuracy of its validation rows in that epoch.
        diverged: the epoch in which a loss became NaN or infinite, after which the member was left alone; or None.
    """

    member: Member
    split: Split
    scaling: Scaling
    parameters: dict[str, Tensor]
    history: dict[str, np.ndarray]
    best_epoch: int
    best_metric: float
    diverged: int | None


class Fleet(Sequence[nn.Module]):
    """Trained members: `fleet[i]` is an ordinary network with its best weights, in evaluation mode.

    It takes and gives scaled numbers: `fleet.trainings[i].scaling` says how.
    """

    def __init__(self, shape: Shape, recipe: Recipe, trainings: Sequence[Training]):
        self.shape, self.recipe, self.trainings = shape, recipe, tuple(trainings)

    @property
    def history(self) -> list[dict[str, np.ndarray]]:
        """Each member's arrays by name, one value an epoch."""
        return [training.history for training in self.trainings]

    def __len__(self) -> int:
        return len(self.trainings)

    @overload
    def __getitem__(self, index: int) -> nn.Module: ...
    @overload
    def __getitem__(self, index: slice) -> "Fleet": ...
    def __getitem__(self, index: int | slice) -> "nn.Module | Fleet":
        """A member's network: a `GaussianMLP`, or a Sequential where there are no priors; or part of the fleet."""
        if isinstance(index, slice):
            return Fleet(self.shape, self.recipe, self.trainings[index])
        training = self.trainings[index]
        net = member_network(
            self.shape, training.parameters, training.member.floor or 0.0, training.member.dropout or 0.0
        )
        return net.to(training.scaling.mean.device)

    def __iter__(self) -> Iterator[nn.Module]:
        return (self[index] for index in range(len(self)))


def fit_fleet(
    x: Any,
    y: Any,
    recipe: Recipe,
    members: Sequence[Member] = (Member(),),
    *,
    variance: str | None = "sparse",
    hidden: Sequence[int] = (1024, 512, 256),
    checkpoint: str | os.PathLike | None = None,
    checkpoint_seconds: float = 5.0,
    device: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
    compiled: bool | None = None,
    progress: bool | Listener = True,
) -> Fleet:
    """Train members, all of one shape and recipe, as one batched computation.

    A member's initial weights, split, order of rows and dropout follow from its seeds alone, never from its company. A
    member whose loss becomes NaN or infinite keeps its best weights so far, and the others do not notice.

    In a process group (torchrun) each process trains its share of the members, and all return the whole fleet.

    Args:
        x: rows of features (N, ...), array or tensor; pictures may be bytes (uint8), which are scaled on the way.
        y: targets (N,) or (N, targets), or class numbers (N,) from 0.
        recipe: how all members are trained.
        members: one training each.
        variance: "constant", "sparse" or "dense" priors; None: plain networks.
        hidden: units of each hidden layer.
        checkpoint: a folder to continue from after an interruption; a new or an earlier one of the same fleet.
        checkpoint_seconds: how often to write there, at most.
        device: where to train; None: a GPU if there is one, and under torchrun each process its own.
        dtype: of parameters and activities; None: float32.
        compiled: compile and capture CUDA graphs; None: on a GPU.
        progress: whether to show a live line in a terminal, or a function to call with `Progress`.

    >>> x = torch.randn(200, 3)
    >>> recipe = Recipe(task="regression", head="mean", optimizer="adamw", learning_rate=0.01, epochs=3, batch_size=20)
    >>> fleet = fit_fleet(x, x.sum(1), recipe, [Member(seed=0), Member(seed=1, alpha=0.1)], hidden=(8,))
    >>> len(fleet), len(fleet.history[1]["base"])
    (2, 3)
    """
    if variance is not None:
        choose("variance", variance, WEIGHT_SHAPES)
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe={recipe!r}; give ganns.Recipe.paper(task), ganns.Recipe.modern(task) or your own.")
    members = [_member(member).resolved(recipe) for member in members]
    if not members:
        raise ValueError("members=[]: give at least one.")
    dtype = dtype or torch.float32
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"dtype={dtype}: train in torch.float32 or torch.float64.")
    chosen = _device(device)
    if chosen.type == "cpu":
        _keep_freed_memory()
    if compiled and chosen.type != "cuda":
        raise ValueError(f"compiled=True with device={str(chosen)!r}: CUDA graphs need a GPU; leave it at None.")
    rows = check_rows(x, y, recipe, dtype)
    splits = divide(len(rows.x), recipe, members)
    widths = tuple(int(units) for units in hidden)
    shape = Shape(rows.features, make_head(recipe.head).outputs(rows.targets), widths, variance)
    shape.network(meta=True)  # refuses widths that make no network

    world, rank = (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)
    mine = range(rank, len(members), world)
    shown = Display(f"{len(members)} members") if progress is True and rank == 0 else None
    told = None if isinstance(progress, bool) else progress
    with torch.cuda.device(chosen if chosen.type == "cuda" else -1), shown or nullcontext(told) as listener:
        trainer = _Trainer(
            rows.to(chosen), recipe, [members[i] for i in mine], [splits[i] for i in mine], shape, dtype, compiled
        )
        keep = None
        if checkpoint is not None and len(mine):
            keep = Checkpoint(own_folder(checkpoint, rank, world), trainer.description(), trainer.sizes)
            trainer.sizes = keep.sizes
        trainings = trainer.run(keep, checkpoint_seconds, listener)
        if world > 1:
            trainings = _gathered(trainings, len(members), world, chosen)
    return Fleet(shape, recipe, trainings)


def _device(given: str | torch.device | None) -> torch.device:
    there = torch.cuda.is_available()
    if given is not None or not there:
        chosen = torch.device(given or "cpu")
        if chosen.type not in ("cpu", "cuda"):
            raise ValueError(f"device={str(given)!r}: fleets train on cpu or cuda.")
        if chosen.type == "cuda" and not there:
            raise ValueError(f"device={str(given)!r}, but PyTorch finds no GPU here; leave it at None.")
        return chosen
    own = os.environ.get("LOCAL_RANK", torch.cuda.current_device())  # torchrun numbers the processes of a host
    return torch.device("cuda", int(own) % torch.cuda.device_count())


def _keep_freed_memory() -> None:
    """Let steps reuse the memory of those before, which glibc may give back to the system in between.

    It gives back free memory above twice the size of the largest mapped block that was ever freed, and counts blocks up
    to 32 MB. With one of nearly that size, which is never touched, `ganns fit` on 6,500 rows takes 18 s, else 28 to 36.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


def _gathered(own: list[Training], members: int, world: int, device: torch.device) -> list[Training]:
    """All processes' trainings, in the members' order."""
    parts: list[Any] = [None] * world
    dist.all_gather_object(parts, [replace(one, scaling=one.scaling.to("cpu")) for one in own])
    everyone = (parts[i % world][i // world] for i in range(members))
    return [replace(one, scaling=one.scaling.to(device)) for one in everyone]


def _member(member: Member) -> Member:
    if not isinstance(member, Member):
        raise TypeError(f"members holds {member!r}; give ganns.Member(seed=...) for each training.")
    return member


class _Trainer:
    """Trains the members of one process, group after group."""

    def __init__(
        self,
        rows: Rows,
        recipe: Recipe,
        members: Sequence[Member],
        splits: Sequence[Split],
        shape: Shape,
        dtype: torch.dtype,
        compiled: bool | None,
    ):
        self.rows, self.recipe, self.members, self.splits = rows, recipe, members, splits
        self.shape, self.dtype, self.compiled = shape, dtype, compiled
        self.scaled = scalings(rows, recipe, members, splits, dtype)
        size = _together(shape, recipe, rows.x.device, dtype)
        self.sizes = [min(size, len(members) - start) for start in range(0, len(members), size)]

    def description(self) -> dict[str, Any]:
        """All that decides what comes out, as JSON values."""
        return {
            "format": FORMAT,
            "recipe": asdict(self.recipe),
            "members": [asdict(member) for member in self.members],
            "shape": asdict(self.shape),
            "dtype": str(self.dtype),
            "data": {"rows": len(self.rows.x), "content": fingerprint(self.rows)},
        }

    def run(self, keep: Checkpoint | None, seconds: float, listener: Listener | None) -> list[Training]:
        """Train what the checkpoint does not hold already."""
        trainings: list[Training] = []
        report = Report(listener, len(self.members)) if listener else None
        for number, size in enumerate(self.sizes):
            trainings += self._group(number, slice(len(trainings), len(trainings) + size), keep, seconds, report)
        return trainings

    def _group(
        self, number: int, part: slice, keep: Checkpoint | None, seconds: float, report: Report | None
    ) -> list[Training]:
        """One of the groups, whose memory is free again afterwards."""
        data = self.rows, self.splits[part], self.scaled[part]
        group = Group(self.shape, self.recipe, self.members[part], *data, self.dtype, self.compiled)
        kept = keep.load(number) if keep else None
        if kept is not None:
            group.load(kept[0])
        if kept is None or not kept[1]:
            _train(group, keep, number, seconds, report)
        if report:
            report.over(group)
        return _results(group, self.splits[part], self.scaled[part])


def _train(group: Group, keep: Checkpoint | None, number: int, seconds: float, report: Report | None) -> None:
    """Advance until it is finished; checkpoint now and then, and whenever somebody interrupts."""
    looking, saving = Clock(0.25), Clock(seconds)
    on_gpu = group.count.is_cuda
    with Interrupt(enabled=keep is not None) as interrupt:
        while True:
            ended = group.advance()
            if ended and (not on_gpu or looking.due() or group.done == len(group.rates)):
                if group.finished:
                    break
                if looking.due():
                    looking.took(0.0)
                    if report:
                        report(group)
            if keep and (saving.due() or interrupt.asked):
                start = time.monotonic()
                keep.save(number, group.state(), done=False)
                saving.took(time.monotonic() - start)
            if interrupt.asked:
                raise KeyboardInterrupt
    if report:
        report(group)
    if keep:
        keep.save(number, group.state(), done=True)
    if interrupt.asked:
        raise KeyboardInterrupt


def _together(shape: Shape, recipe: Recipe, device: torch.device, dtype: torch.dtype) -> int:
    """How many members to train at a time.

    On a CPU a batched product over wide members is slower than the members one after another; on a GPU it is memory
    that sets the limit: parameters, best parameters, one gradient, and two moments for AdamW, beside what an evaluation
    holds at a time.
    """
    if device.type == "cpu":
        return 1 if max(wide * units for wide, units in shape.widths) > _WIDE else 64
    numbers = sum(p.numel() for p in shape.network(meta=True).parameters())
    copies = 4 + 2 * (recipe.optimizer == "adamw")
    each = dtype.itemsize * (copies * numbers + 8 * recipe.batch_size * (shape.features + sum(shape.hidden)))
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + cached - 3 * dtype.itemsize * EVALUATED["cuda"]
    return max(1, int(0.6 * free / each))


def _results(group: Group, splits: Sequence[Split], scaled: Sequence[Scaling]) -> list[Training]:
    history = group.history.cpu().numpy()
    stopped, diverged, best_epoch = (t.tolist() for t in (group.stopped, group.diverged, group.best_epoch))
    ended = group.done // group.steps
    return [
        Training(
            member=member,
            split=splits[i],
            scaling=scaled[i],
            parameters={name: p.cpu() for name, p in group.best_parameters(i).items()},
            history={name: history[: stopped[i] or ended, n, i].copy() for n, name in enumerate(SERIES)},
            best_epoch=best_epoch[i],
            best_metric=float(group.best_metric[i]) if best_epoch[i] else float("nan"),
            diverged=diverged[i] or None,
        )
        for i, member in enumerate(group.members)
    ]
