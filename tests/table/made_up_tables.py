"""Flats that nobody rents: a table with every kind of column, and models fitted to it for a moment."""

import functools

import numpy as np
import polars as pl

from ganns.table.fitting import Fitted, fit_table
from ganns.table.preparing import Prepared, prepare

SMALL = {"hidden": (8,), "members": 2, "alpha": 0.1, "epochs": 5, "learning_rate": 1e-2}
TARGETS = {"regression": "rent", "classification": "kind"}


def flats(rows: int = 120, seed: int = 0) -> pl.DataFrame:
    """Rents (numbers) and kinds (three classes) of flats; the second row repeats the first."""
    random = np.random.default_rng(seed)
    area = random.uniform(20, 120, rows).round(1)
    district = random.choice(["North", "South", "Altstadt, west"], rows)
    kind = np.select([area < 45, area < 80], ["studio", "shared"], "family")
    rent = 8 * area + 150 * (district == "North") + random.normal(0, 1 + area / 4)
    days = random.integers(0, 20_000, rows)
    frame = pl.DataFrame(
        {
            "area": area,
            "floor": [
                None if gap else int(floor) for gap, floor in zip(random.random(rows) < 0.1, days % 7, strict=True)
            ],
            "district": district,
            "built": pl.Series(days, dtype=pl.Int32).cast(pl.Date),
            "balcony": random.random(rows) < 0.5,
            "country": ["here"] * rows,
            "kind": kind,
            "rent": rent.round(2),
        }
    )
    return pl.concat([frame[:1], frame[:1], frame[2:]])


def prepared(task: str, **options) -> Prepared:
    """Flats with the target of a task; the other's is not looked at."""
    other = next(name for name in TARGETS.values() if name != TARGETS[task])
    return prepare(flats(**options), TARGETS[task], ignore=[other])


@functools.cache
def fitted(task: str) -> Fitted:
    """A model for flats, fitted once."""
    return fit_table(prepared(task), **SMALL)
