"""Where records fall short of what the paper did, so that tables can say it."""

from collections.abc import Iterable, Sequence

from ganns.study.catalogue import DATASETS
from ganns.study.plan import HIDDEN, recipe_for
from ganns.study.records import Record

SEEDS = 5  # of the paper


def departures(records: Sequence[Record]) -> list[str]:
    """What there was less of, in words.

    Args:
        records: of one dataset and style.
    """
    found = []
    if published := max(record.rows.get("published_train", 0) for record in records):
        used = _span(record.rows["train"] + record.rows["validation"] for record in records)
        found.append(f"{used} of {published:,} training rows")
    networks = [record.job for record in records if record.job.hidden]
    if any(shortened(record) for record in records):
        usual = recipe_for(DATASETS[networks[0].dataset], networks[0].style).epochs
        found.append(f"{_span(job.recipe.epochs for job in networks)} of {usual:,} epochs")
    if any(job.hidden != HIDDEN for job in networks):
        found.append(f"layers of {' or '.join(sorted({'-'.join(map(str, job.hidden)) for job in networks}))} units")
    seeds = [len(record.job.seeds) for record in records]
    if min(seeds) < SEEDS:
        found.append(f"{_span(seeds)} of {SEEDS} seeds")
    return found


def shortened(record: Record) -> bool:
    """Whether it was trained for fewer epochs than its recipe has."""
    job = record.job
    return bool(job.hidden) and job.recipe.epochs < recipe_for(DATASETS[job.dataset], job.style).epochs


def _span(counts: Iterable[int]) -> str:
    """One number, or from the least to the greatest."""
    found = sorted(set(counts))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
