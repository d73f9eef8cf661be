"""One unit of work: train a fleet, evaluate each of its jobs, and write their records."""

import math
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ganns.progress import Listener
from ganns.recipes import Member, Split, split_rows
from ganns.study import datasets, diagnostics, records
from ganns.study.boosting import Boosting
from ganns.study.catalogue import DATASETS, Arrays
from ganns.study.evaluation import SCORES, Evaluation, Networks, evaluate
from ganns.study.locks import locked
from ganns.study.methods import METHODS
from ganns.study.plain_loop import step_seconds
from ganns.study.plan import Unit, members, teams
from ganns.study.records import Job, Record, SeedResult
from ganns.training import Fleet, fit_fleet

WORK = ".work"
CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True)
class Settings:
    """Where and how units run; all that decides how long it takes, and nothing of what comes out.

    Args:
        folder: of the records, and of checkpoints while there are any.
        device: "cpu", "cuda" or another name that PyTorch knows.
        plain_loop: whether to time a few steps of an ordinary training loop, for the comparison in `loop_seconds`.
    """

    folder: Path
    device: str = "cpu"
    plain_loop: bool = True


class Data(NamedTuple):
    """A dataset on the device, as it is stored; the test rows are None where no split is published."""

    x: Tensor
    y: Tensor
    test_x: Tensor | None
    test_y: Tensor | None

    def test(self, split: Split) -> tuple[Tensor, Tensor]:
        """Test rows and targets."""
        if self.test_x is not None and self.test_y is not None:
            return self.test_x, self.test_y
        return self.part(split.test)

    def part(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Some of the rows, with their targets."""
        chosen = torch.from_numpy(rows).to(self.x.device)
        return self.x[chosen], self.y[chosen]


def load(name: str, *, synthetic: bool) -> Arrays:
    """The dataset, or random numbers of its shape."""
    return datasets.synthetic(DATASETS[name]) if synthetic else datasets.load(name)


@lru_cache(maxsize=1)  # units come dataset by dataset
def held(name: str, synthetic: bool, device: str) -> Data:
    """A dataset on the device. Regression targets are (N, 1)."""
    arrays = load(name, synthetic=synthetic)

    def put(array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array).to(device)
        return tensor.unsqueeze(1) if array.ndim == 1 and tensor.is_floating_point() else tensor

    test = [None if array is None else put(array) for array in (arrays.test_x, arrays.test_y)]
    return Data(put(arrays.x), put(arrays.y), *test)


def missing(unit: Unit, folder: Path) -> bool:
    """Whether any of the unit's records is not there yet."""
    return not all((folder / job.name).exists() for job in unit.jobs)


def run(unit: Unit, settings: Settings, listener: Listener | None = None) -> bool:
    """Make the unit's records; nothing happens if they are all there. False: another process is at it."""
    work = settings.folder / WORK / unit.name
    with locked(work.with_suffix(".lock")) as mine:
        if not mine:
            return False
        if missing(unit, settings.folder):
            network = METHODS[unit.jobs[0].method].network
            for record in _trained(unit, settings, work, listener) if network else _boosted(unit):
                records.write(record, settings.folder)
        shutil.rmtree(work, ignore_errors=True)
    return True


def forget(unit: Unit, folder: Path) -> None:
    """Delete the unit's records and checkpoint, so that it is made anew; unless another process is at it."""
    work = folder / WORK / unit.name
    with locked(work.with_suffix(".lock")) as mine:
        if mine:
            shutil.rmtree(work, ignore_errors=True)
            for job in unit.jobs:
                (folder / job.name).unlink(missing_ok=True)


def _trained(unit: Unit, settings: Settings, work: Path, listener: Listener | None) -> list[Record]:
    first, resumed = unit.jobs[0], work.exists()
    data = held(first.dataset, unit.synthetic, settings.device)
    wanted = members(unit)
    if data.x.is_cuda:
        torch.set_float32_matmul_precision("high")  # tf32, which records name
    start = time.perf_counter()
    fleet = fit_fleet(
        data.x,
        data.y,
        first.recipe,
        wanted,
        variance=METHODS[first.method].variance,
        hidden=first.hidden,
        checkpoint=work,
        checkpoint_seconds=CHECKPOINT_SECONDS,
        device=settings.device,
        progress=listener or False,
    )
    seconds = time.perf_counter() - start
    places = {member: place for place, member in enumerate(wanted)}
    plain = step_seconds(first, METHODS[first.method].variance, data.x, data.y) if settings.plain_loop else None
    return [
        _record(job, unit, data, fleet, [[places[m] for m in team] for team in teams(job)], seconds, plain, resumed)
        for job in unit.jobs
    ]


def _record(
    job: Job,
    unit: Unit,
    data: Data,
    fleet: Fleet,
    places: Sequence[Sequence[int]],
    seconds: float,
    plain: float | None,
    resumed: bool,
) -> Record:
    start = time.perf_counter()
    results, figures = [], {}
    for number, team in enumerate(places):
        result, found = _result(job, data, fleet, team, figures=number == 0)
        results.append(result)
        figures |= found
    trainings = [fleet.trainings[place] for team in places for place in team]
    of_epoch = len(trainings[0].split.train) // job.recipe.batch_size
    steps = [of_epoch * len(training.history["base"]) for training in trainings]
    longest = of_epoch * max(len(training.history["base"]) for training in fleet.trainings)
    timings = {
        "train": seconds * len(trainings) / len(fleet),
        "evaluate": time.perf_counter() - start,
        "fleet": float(len(fleet)),
        "steps": float(sum(steps)),
        "step_seconds": seconds / longest,
    }
    if plain is not None:
        timings["loop_seconds"] = plain * sum(steps)
    if resumed:
        timings["resumed"] = 1.0
    return Record(
        job=job,
        rows=_rows(job, data, trainings[0].split),
        seeds=tuple(results),
        diagnostics=figures,
        timings=timings,
        environment=environment(data.x.device),
        synthetic=unit.synthetic,
    )


def _result(
    job: Job, data: Data, fleet: Fleet, places: Sequence[int], *, figures: bool
) -> tuple[SeedResult, dict[str, list[dict]]]:
    """One result and, if asked for, its figures' data."""
    trainings, method = [fleet.trainings[place] for place in places], METHODS[job.method]
    one = trainings[0]
    raw, calibrated = (dict.fromkeys(SCORES[job.recipe.task], math.nan) for _ in range(2))
    validation, found = one.best_metric, {}
    if all(training.best_epoch for training in trainings):
        networks = [fleet[place] for place in places]
        predictor = Networks(
            networks, one.scaling, job.recipe.task, _head(job), method.variance is not None, method.dropout
        )
        watched = data.part(one.split.validation)
        evaluation = evaluate(predictor, watched, data.test(one.split))
        raw, calibrated = evaluation.scores()
        if len(places) > 1:
            validation = _metric(predictor.point(watched[0]), watched[1])
        if figures:
            train = data.part(one.split.train[: diagnostics.ROWS])[0]
            network = networks[0] if method.variance else None
            found = diagnostics.collect(evaluation, network, one.scaling, train, data.test(one.split)[0])
    history = {name: series.tolist() for name, series in one.history.items()} if len(places) == 1 else {}
    return SeedResult(
        seed=one.member.seed,
        best_epoch=one.best_epoch,
        diverged=next((training.diverged for training in trainings if training.diverged), None),
        raw=raw,
        calibrated=calibrated,
        validation=validation,
        history=history,
    ), found


def _boosted(unit: Unit) -> list[Record]:
    return [_boosting_record(job, unit) for job in unit.jobs]


def _boosting_record(job: Job, unit: Unit) -> Record:
    data, dataset = held(job.dataset, unit.synthetic, "cpu"), DATASETS[job.dataset]
    results, figures, train, check = [], {}, 0.0, 0.0
    for (member,) in teams(job):
        split = _split(job, data, member)
        start = time.perf_counter()
        model = Boosting(job.recipe.task, member.seed, *data.part(split.train), dataset.classes or 0)
        middle = time.perf_counter()
        watched = data.part(split.validation)
        evaluation: Evaluation = evaluate(model, watched, data.test(split))
        raw, calibrated = evaluation.scores()
        figures = figures or diagnostics.collect(evaluation)
        metric = _metric(model.point(watched[0]), watched[1])
        results.append(SeedResult(member.seed, model.iterations, None, raw, calibrated, metric))
        train, check = train + middle - start, check + time.perf_counter() - middle
    return Record(
        job=job,
        rows=_rows(job, data, _split(job, data, teams(job)[0][0])),
        seeds=tuple(results),
        diagnostics=figures,
        timings={"train": train, "evaluate": check, "fleet": 1.0},
        environment=environment(data.x.device),
        synthetic=unit.synthetic,
    )


def _split(job: Job, data: Data, member: Member) -> Split:
    return split_rows(len(data.x), member.split or 0, job.recipe.split)


def _head(job: Job) -> str:
    return "variance" if job.recipe.head == "variance" else "mean"


def _metric(point: Tensor, y: Tensor) -> float:
    """What validation goes by: mean absolute error, or accuracy."""
    if y.is_floating_point():
        return float((point - y).abs().mean())
    return float((point.argmax(-1) == y).double().mean())


def _rows(job: Job, data: Data, split: Split) -> dict[str, int]:
    rows = {"train": len(split.train), "validation": len(split.validation), "test": len(data.test(split)[1])}
    published = DATASETS[job.dataset].split
    if published and len(data.x) < published[0]:
        rows["published_train"] = published[0]
    return rows


def environment(device: torch.device) -> dict[str, str]:
    """Versions, device and date."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "ganns": _version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "device": f"{device.type}: {name}",
        "matmul": torch.get_float32_matmul_precision(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version() -> str:
    try:
        return version("ganns")
    except PackageNotFoundError:  # run from its source folder
        return "uninstalled"
