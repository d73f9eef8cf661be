"""From names to work: which recipe a dataset gets, which jobs there are, and which of them share a fleet."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ganns.recipes import Member, Recipe
from ganns.study.catalogue import DATASETS, Dataset
from ganns.study.methods import METHODS, Method
from ganns.study.records import Job

ALPHAS = (0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 1.0)
FLOORS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
BATCHES = (32, 64, 128, 256)
SCALES = ("raw", "standardised")  # beside the recipe's own
SWEPT = {"sweep": "gann-sparse", "floors": "gann-sparse", "search": "ann"}  # one method under many recipes
HIDDEN = (1024, 512, 256)
PUBLISHED_SPLIT = (0.8, 0.2, 0.0)  # of the published training rows
_OWN = ("alpha", "floor", "dropout", "weight_decay", "learning_rate")  # what members of one fleet may differ in
_BOOSTED = 5  # about as much work as so many epochs of a small network
_MANY_CLASSES = 0.01  # the paper's α for CIFAR-100 and Tiny ImageNet


@dataclass(frozen=True)
class Unit:
    """Jobs that are trained as one fleet.

    Args:
        jobs: of one dataset, with one shape and recipe but for what a `Member` has of its own.
        synthetic: random data stand in for the dataset, for timing only.
    """

    jobs: tuple[Job, ...]
    synthetic: bool = False

    @property
    def name(self) -> str:
        """Short, and different for different jobs."""
        first = self.jobs[0]
        kind = METHODS[first.method].variance or first.recipe.head
        digest = hashlib.sha256("\n".join(job.name for job in self.jobs).encode()).hexdigest()[:12]
        return f"{first.dataset}-{kind}-{first.style}-{digest}"

    @property
    def title(self) -> str:
        """For people."""
        first, methods = self.jobs[0], dict.fromkeys(METHODS[job.method].title for job in self.jobs)
        title = f"{DATASETS[first.dataset].title}: {', '.join(methods)}"
        match first.style:
            case "sweep":
                return f"{title}, α = {', '.join(f'{job.recipe.alpha:g}' for job in self.jobs)}"
            case "floors":
                return f"{title}, v = {', '.join(f'{job.recipe.floor:g}' for job in self.jobs)}"
            case "search":
                return f"{title}, {first.recipe.features}, batches of {first.recipe.batch_size}"
            case _:
                return title

    @property
    def work(self) -> float:
        """A rough measure of how long it takes, for the order of units and the time that is left."""
        first, dataset = self.jobs[0], DATASETS[self.jobs[0].dataset]
        rows = _rows(dataset) * first.recipe.split[0]
        widths = (dataset.features, *first.hidden)
        weights = sum(wide * units for wide, units in pairwise(widths))
        epochs = first.recipe.epochs if METHODS[first.method].network else _BOOSTED
        return rows * epochs * len(members(self)) * (weights + 1e5)


def recipe_for(dataset: Dataset, style: str) -> Recipe:
    """How a style trains on a dataset; the method's own numbers come on top (`Method.apply`)."""
    split = PUBLISHED_SPLIT if dataset.split else (0.6, 0.2, 0.2)
    if style == "modern":
        return replace(Recipe.modern(dataset.task), split=split)
    recipe = Recipe.paper(dataset.task)
    alpha = _MANY_CLASSES if (dataset.classes or 0) >= 100 else recipe.alpha
    return replace(recipe, alpha=alpha, epochs=dataset.epochs, features=_features(dataset), split=split)


def _rows(dataset: Dataset) -> int:
    """Rows that are divided into parts for training, validation and, where no test set is published, test."""
    return dataset.split[0] if dataset.split else dataset.rows


def _features(dataset: Dataset) -> str:
    if dataset.kind == "table":
        return "standardised"
    return "unit" if dataset.dtype == "uint8" else "raw"


def _varied(dataset: Dataset, style: str, recipe: Recipe) -> list[Recipe]:
    """The recipes of a style: one, or many that differ in what the style is about."""
    match style:
        case "sweep":
            return [replace(recipe, alpha=alpha) for alpha in ALPHAS]
        case "floors":
            return [replace(recipe, floor=floor) for floor in FLOORS]
        case "search":  # of what the paper does not state, by the column that has nothing of ours
            most = _rows(dataset) * recipe.split[0]
            sizes = [replace(recipe, batch_size=size) for size in BATCHES if size <= most]
            return sizes + [replace(recipe, features=scale) for scale in SCALES if scale != recipe.features]
        case _:
            return [recipe]


def jobs_for(
    dataset: Dataset,
    data: str,
    *,
    style: str = "paper",
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = range(5),
    epochs: int | None = None,
    hidden: Sequence[int] = HIDDEN,
) -> list[Job]:
    """The jobs of one dataset.

    Args:
        dataset: which.
        data: fingerprint of its arrays.
        style: "paper" or "modern"; "sweep" or "floors" for sparse priors under many α or v; "search" for the plain
            network under many batch sizes and feature scales.
        methods: keys of `METHODS`; those that do not exist for the task are left out. None: all.
        seeds: one training each.
        epochs: in place of the recipe's.
        hidden: units of each hidden layer.
    """
    recipe = recipe_for(dataset, style)
    recipe = replace(recipe, epochs=epochs) if epochs else recipe
    keys = (SWEPT[style],) if style in SWEPT else tuple(METHODS) if methods is None else methods
    varied = _varied(dataset, style, recipe)
    chosen = [METHODS[key] for key in keys if exists(METHODS[key], dataset)]
    return [
        Job(
            dataset=dataset.name,
            method=method.key,
            style=style,
            recipe=method.apply(recipe, "modern" if style == "modern" else "paper"),
            seeds=tuple(seeds),
            hidden=tuple(hidden) if method.network else (),
            data=data,
        )
        for method in chosen
        for recipe in varied
    ]


def exists(method: Method, dataset: Dataset) -> bool:
    """Whether a method is run on a dataset; gradient boosting is for tables."""
    return method.fits(dataset.task) and (method.network or dataset.kind == "table")


def units(jobs: Iterable[Job], *, merge: bool, synthetic: bool = False) -> list[Unit]:
    """Jobs joined into fleets.

    Args:
        jobs: in any order.
        merge: whether to join all that can share a fleet, as pays on a GPU; otherwise those alone whose members are
            the same, as an ensemble and the network that it is made of.
        synthetic: see `Unit`.
    """
    groups: dict[tuple, list[Job]] = {}
    for job in jobs:
        method = METHODS[job.method]
        recipe = replace(job.recipe, **dict.fromkeys(_OWN, 0.5)) if merge else job.recipe
        groups.setdefault((job.dataset, method.network, method.variance, recipe, job.hidden, job.data), []).append(job)
    return [Unit(tuple(group), synthetic) for group in groups.values()]


def teams(job: Job) -> list[list[Member]]:
    """The members behind each of a job's results: one, or an ensemble's.

    Where the authors publish a split, all seeds share it, and an ensemble is one result. Elsewhere a seed decides the
    split, and each has an ensemble of its own, whose members share that split.
    """
    method, published = METHODS[job.method], DATASETS[job.dataset].split is not None
    numbers = {name: getattr(job.recipe, name) for name in _OWN}

    def team(seed: int, split: int) -> list[Member]:
        return [Member(seed=seed + i, split=split, **numbers) for i in range(method.size)]

    if published:
        return [team(seed, 0) for seed in (job.seeds if method.size == 1 else job.seeds[:1])]
    return [team(seed, seed) for seed in job.seeds]


def members(unit: Unit) -> list[Member]:
    """Each member of the unit's fleet once."""
    return list(dict.fromkeys(member for job in unit.jobs for team in teams(job) for member in team))
