"""The study's figures of training: what happens epoch by epoch."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ganns.page.blocks import Chart
from ganns.page.charts import altair, choice, faded, legend
from ganns.study.catalogue import DATASETS
from ganns.study.figures import SHOWN, Row, colours, command, label, order
from ganns.study.methods import METHODS
from ganns.study.records import Record
from ganns.study.scores import HEADLINE, METRICS

_POINTS = 60  # a curve has at most so many
_COLD, _WARM = (74, 134, 168), (208, 85, 58)


def sweep(records: Sequence[Record], field: str, symbol: str) -> Chart | None:
    """Validation over epochs for each value of α or v.

    Args:
        records: of one sweep on one dataset.
        field: of the recipe.
        symbol: as the paper writes it.
    """
    values = sorted({getattr(record.job.recipe, field) for record in records})
    rows = [
        {field: f"{getattr(record.job.recipe, field):g}", **row}
        for record in sorted(records, key=lambda record: getattr(record.job.recipe, field))
        for row in curve(record, ("validation",))
    ]
    if len(values) < 2 or not rows:
        return None
    alt = altair()
    picked = legend(field)
    labels = [f"{value:g}" for value in values]
    dataset = DATASETS[records[0].job.dataset]
    metric = METRICS[HEADLINE[dataset.task]].title
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("epoch:Q", title="epoch", scale=alt.Scale(nice=False)),
        color=alt.Color(f"{field}:N", scale=alt.Scale(domain=labels, range=_shades(len(labels))), title=symbol),
    )
    lines = base.mark_line().encode(
        y=alt.Y("validation:Q", title=f"validation {metric.lower()}", scale=alt.Scale(zero=False)),
        opacity=faded(picked),
        tooltip=[alt.Tooltip(f"{field}:N", title=symbol), "epoch:Q", alt.Tooltip("validation:Q", format=".4g")],
    )
    band = base.mark_area().encode(
        y=alt.Y("validation_low:Q"), y2="validation_high:Q", opacity=faded(picked, 0.14, 0.02)
    )
    return Chart(
        alt.layer(band, lines).add_params(picked).properties(height=320),
        f"Validation {metric.lower()} of a sparse GaNN on {dataset.title} for different {symbol}; shaded: one standard "
        "deviation over seeds, where there are several. A click on the legend singles a value out.",
        f"Line chart of validation {metric.lower()} over epochs, one line for each {symbol} from {labels[0]} to "
        f"{labels[-1]}.",
        rows,
        command(records),
        title=f"{symbol} on {dataset.title}",
    )


def learning(records: Iterable[Record], task: str) -> Chart | None:
    """Learning curves of a dataset to be chosen: validation metric, base loss, and inner loss (dashed)."""
    series = ("validation", "base", "inner")
    chosen = [r for r in records if r.job.method in SHOWN and DATASETS[r.job.dataset].task == task]
    rows = [
        {"dataset": label(record), "method": METHODS[record.job.method].title, **row}
        for record in sorted(chosen, key=order)
        for row in curve(record, series if METHODS[record.job.method].variance else series[:2])
    ]
    if not rows:
        return None
    alt = altair()
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    picked, shown = legend("method"), choice("learning_dataset", "Dataset", datasets)
    metric = METRICS[HEADLINE[task]].title

    def panel(name: str, title: str, log: bool, **line: Any) -> Any:
        scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
        base = alt.Chart(alt.NamedData("rows")).transform_filter(alt.datum.dataset == shown)
        base = base.transform_filter(f"isValid(datum.{name})").encode(
            x=alt.X("epoch:Q", title="epoch (log scale)", scale=alt.Scale(type="log", nice=False)),
            color=alt.Color("method:N", scale=colours(rows), title=None),
        )
        band = base.mark_area().encode(
            y=alt.Y(f"{name}_low:Q", scale=scale, title=None, axis=alt.Axis(format=",.3~r")),
            y2=f"{name}_high:Q",
            opacity=faded(picked, 0.16, 0.02),
        )
        lines = base.mark_line(**line).encode(
            y=alt.Y(f"{name}:Q", scale=scale, title=None),
            opacity=faded(picked),
            tooltip=["method:N", "epoch:Q", alt.Tooltip(f"{name}:Q", format=".4g", title=title)],
        )
        return alt.layer(band, lines).properties(height=250, title=title)

    panels = [panel("validation", f"Validation {metric if metric.isupper() else metric.lower()}", task == "regression")]
    panels[0] = panels[0].add_params(picked, shown)
    panels += [panel("base", "Base loss", True), panel("inner", "Inner loss", False, strokeDash=[5, 3])]
    return Chart(
        alt.concat(*panels, columns=3),
        "Learning curves, means over seeds with one standard deviation shaded; epochs on a logarithmic scale, "
        "averaged where "
        "several fall on one point. Each dataset's epochs are its own. The inner loss (dashed) exists for GaNNs alone.",
        f"Three line charts over epochs for {task}: validation metric, base loss, and inner loss of networks with "
        "priors.",
        rows,
        command(chosen),
        title=f"Learning curves, {task}",
    )


def curve(record: Record, names: Sequence[str]) -> list[Row]:
    """Some series of a record's histories, thinned: mean over seeds, and one standard deviation to either side."""
    histories = [result.history for result in record.seeds if result.history.get(names[0])]
    if not histories:
        return []
    epochs = max(len(history[names[0]]) for history in histories)
    edges = np.unique(np.geomspace(1, epochs + 1, _POINTS + 1).astype(int))
    rows: list[Row] = []
    for first, last in pairwise(edges):
        row: Row = {"epoch": int((first + last - 1) / 2)}
        for name in names:
            row |= _spread(name, [_mean(h.get(name, [])[first - 1 : last - 1]) for h in histories])
        rows.append(row)
    return rows


def _spread(name: str, values: Iterable[float]) -> Mapping[str, float | None]:
    given = [value for value in values if math.isfinite(value)]
    if not given:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    mean, std = statistics.fmean(given), statistics.stdev(given) if len(given) > 1 else 0.0
    low = mean - std if mean - std > 0 or mean <= 0 else min(given)  # a positive metric's band stays on a log scale
    return {name: mean, f"{name}_low": low, f"{name}_high": mean + std}


def _mean(values: Sequence[float]) -> float:
    given = [value for value in values if math.isfinite(value)]
    return statistics.fmean(given) if given else math.nan


def _shades(count: int) -> list[str]:
    """From cold to warm."""
    steps = [number / max(1, count - 1) for number in range(count)]
    mixed = [[round(c + (w - c) * step) for c, w in zip(_COLD, _WARM, strict=True)] for step in steps]
    return ["#" + "".join(f"{part:02x}" for part in colour) for colour in mixed]
