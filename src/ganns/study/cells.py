"""Scores as cells of a table: ours, the paper's, and how far they are apart."""

import math
from collections.abc import Sequence

from ganns.page.blocks import Cell
from ganns.study.paper import PRINTED, Printed
from ganns.study.scores import Metric, Score


def cell(score: Score | None, printed: Printed | None, metric: Metric, why: str) -> Cell:
    """Our number, and below it the paper's with the difference between them; or why there is none."""
    note = printed.text if printed else ""
    if score is None or not score.values:
        return Cell(why if score is None else "diverged", sort=math.nan, note=note, faint=True)
    text = _number(score.mean, metric.digits)
    text += f" ± {_number(score.std, metric.digits)}" if math.isfinite(score.std) else ""
    if printed and (distance := _distance(score, printed)) is not None:
        note += f"\nΔ {signed(distance, 1)}"
    lost = len(score.by_seed) - len(score.values)
    note += f"\n{lost} of {len(score.by_seed)} diverged" if lost else ""
    seeds = ", ".join(f"seed {seed}: {value:.5g}" for seed, value in score.by_seed.items())
    return Cell(text, sort=score.mean, note=note.strip(), title=seeds)


def difference(score: Score, metric: str, dataset: str, method: str) -> float | None:
    """Ours minus the paper's in units of spread; None where the paper has no number or nothing spreads."""
    printed = PRINTED[metric].get((dataset, method))
    return _distance(score, printed) if printed else None


def _distance(score: Score, printed: Printed) -> float | None:
    """Where the paper prints no standard deviation ours counts alone."""
    spread = math.hypot(score.std, printed.std or 0.0)
    return (score.mean - printed.mean) / spread if spread > 0 else None


def best_in_bold(cells: Sequence[Cell], metric: Metric) -> list[Cell]:
    """The best of a row, and what prints the same."""
    values = [round(c.sort, metric.digits) if isinstance(c.sort, float) else math.nan for c in cells]
    present = [value for value in values if math.isfinite(value)]
    best = max((metric.sign * value for value in present), default=math.nan) if len(present) > 1 else math.nan
    return [
        Cell(c.text, c.sort, metric.sign * value == best, c.note, c.title, c.faint)
        for c, value in zip(cells, values, strict=True)
    ]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.2g}"


def signed(value: float, digits: int) -> str:
    """With its sign, and a real minus."""
    return f"{value:+.{digits}f}".replace("-", "−")
