"""What the study keeps: a job says what to train, a record what came out; one JSON file a job, named by its content."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ganns.files import write_atomically
from ganns.recipes import Recipe

FORMAT = 1
_MISSING = "missing"


@dataclass(frozen=True)
class Job:
    """One method on one dataset, trained once for each seed.

    Args:
        dataset: a key of `ganns.study.catalogue.DATASETS`.
        method: a key of `ganns.study.methods.METHODS`.
        style: the recipe's name: "paper" or "modern"; "sweep", "floors" and "search" are the paper's with many α,
            many v, or many batch sizes and feature scales.
        recipe: all of it, with the method's own numbers.
        seeds: one training each; a seed also decides the split where none is published.
        hidden: units of each hidden layer.
        data: fingerprint of the arrays, so that a record speaks of the very data it was made from.
    """

    dataset: str
    method: str
    style: str
    recipe: Recipe
    seeds: tuple[int, ...]
    hidden: tuple[int, ...]
    data: str

    @property
    def name(self) -> str:
        """The record's file name: readable, and different for every difference in the job."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.dataset}-{self.method}-{self.style}-{digest}.json"


@dataclass(frozen=True)
class SeedResult:
    """What one training came to.

    Args:
        seed: of the job.
        best_epoch: the epoch, from 1, whose weights were tested: the one with the best validation metric.
        diverged: the epoch in which the training broke off with NaN or inf; None: it did not.
        raw: metrics of the test rows: errors of the network without noise, and its own uncertainty (γ = 1, no
            calibration). Regression: mae, rmse, and where there is a variance nll, crps, coverage, width (both of the
            90 % interval); classification: accuracy, nll, auroc (of error detection; absent where no row or every row
            is an error), ece, brier. NaN where no epoch of the training could be evaluated.
        calibrated: the same of the predictions that were calibrated on validation rows.
        validation: the best validation metric: mean absolute error or accuracy.
        history: values an epoch, by name: base, inner, coefficient, norm, validation. Empty where they were left out.
    """

    seed: int
    best_epoch: int
    diverged: int | None
    raw: dict[str, float]
    calibrated: dict[str, float]
    validation: float
    history: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """What a job came to.

    Args:
        job: what was asked.
        rows: how many rows were used: train, validation, test; and published_train, how many the dataset has for
            training where fewer were at hand.
        seeds: one result a seed; an ensemble on a dataset with a published test set is one for all seeds.
        diagnostics: of the first seed, for figures; each a list of rows (see `ganns.study.diagnostics`).
        timings: seconds: train (this job's share of its fleet's), evaluate, step_seconds (one step of the whole fleet)
            and loop_seconds (what its steps would take one after another in a plain loop, from steps measured on the
            same device); steps, of all its trainings; fleet, how many trainings were one with these; resumed is 1
            where the training was interrupted, so that train is too short.
        environment: versions, device, date.
        synthetic: random data of the dataset's shape stood in for it: only the timings mean anything.
    """

    job: Job
    rows: dict[str, int]
    seeds: tuple[SeedResult, ...]
    diagnostics: dict[str, list[dict[str, Any]]]
    timings: dict[str, float]
    environment: dict[str, str]
    synthetic: bool = False

    def to_json(self) -> str:
        """One JSON object, with NaN as null; `from_json` reads it back."""
        return json.dumps(_plain({"format": FORMAT, **asdict(self)}), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """The record that `to_json` wrote."""
        given = json.loads(text)
        if given.pop("format", None) != FORMAT:
            raise ValueError("the file is not a record of this version of ganns; run the job again with --fresh.")
        job = given.pop("job")
        recipe = Recipe.from_json(json.dumps(job.pop("recipe")))
        job = Job(**{**job, "recipe": recipe, "seeds": tuple(job["seeds"]), "hidden": tuple(job["hidden"])})
        seeds = tuple(SeedResult(**_with_nan(result)) for result in given.pop("seeds"))
        return cls(job=job, seeds=seeds, **given)


def write(record: Record, folder: Path) -> Path:
    """Write the record's file whole or not at all, so that readers and other writers never see half of one."""
    path = folder / record.job.name
    write_atomically(path, record.to_json().encode())
    return path


def read(path: Path) -> Record:
    """The record in a file."""
    try:
        return Record.from_json(path.read_text())
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a record of the study: {error}. Delete it and run the job again.") from error


def read_all(folder: Path) -> Iterator[Record]:
    """All records of a folder, by file name."""
    for path in sorted(folder.glob("*.json")):
        if not path.name.startswith("."):
            yield read(path)


def note_missing(folder: Path, reasons: Mapping[str, str], there: Iterable[str] = ()) -> None:
    """Keep why datasets are left out, so that tables can say it, and forget it of those that are there now.

    Args:
        folder: of the records.
        reasons: by name.
        there: names of datasets that were found.
    """
    for name, reason in reasons.items():
        write_atomically(folder / _MISSING / f"{name}.txt", reason.encode())
    for name in there:
        (folder / _MISSING / f"{name}.txt").unlink(missing_ok=True)


def read_missing(folder: Path) -> dict[str, str]:
    """Why datasets were left out, by name."""
    return {path.stem: path.read_text() for path in sorted((folder / _MISSING).glob("*.txt"))}


def _plain(value: Any) -> Any:
    """The same with None for NaN and inf, and numbers to seven digits: as much as float32 holds."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            return float(f"{value:.7g}") if value == value and abs(value) != float("inf") else None
        case _:
            return value


def _with_nan(result: dict[str, Any]) -> dict[str, Any]:
    nan = float("nan")
    fill = {name: [nan if v is None else v for v in values] for name, values in result["history"].items()}
    numbers = {
        part: {name: nan if v is None else v for name, v in result[part].items()} for part in ("raw", "calibrated")
    }
    validation = nan if result["validation"] is None else result["validation"]
    return {**result, **numbers, "validation": validation, "history": fill}
