"""The study's figures of training: records to charts, each with its rows and the command that makes it again."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ganns.page.blocks import Chart
from ganns.page.charts import altair, faded, legend
from ganns.study.catalogue import DATASETS
from ganns.study.commands import commands
from ganns.study.costs import Cost, cost
from ganns.study.methods import METHODS
from ganns.study.paper import PRINTED
from ganns.study.records import Record
from ganns.study.scores import HEADLINE, METRICS, Results

Row = dict[str, Any]

COLOURS = {
    "gann-dense": "#9068bd",
    "gann-sparse": "#d0553a",
    "gann-sparse-d": "#d99a34",
    "ann": "#4a86a8",
    "ann-d": "#55a79a",
    "ann-wd": "#8c8c84",
    "ann-wd-d": "#a9a28b",
    "varhead": "#6f8f4e",
    "varhead-d": "#9fb36a",
    "varhead-wd-d": "#b9c596",
    "gann-ensemble": "#b04a63",
    "ensemble": "#4f6fa8",
    "boosting": "#8a7560",
}
SHOWN = ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d")
_GANNS = SHOWN[:3]


def overview(results: Results) -> Chart | None:
    """How far each GaNN's error is from the ANN's, on every dataset, here and in the paper."""
    rows = list(_relative(results))
    if not rows:
        return None
    alt = altair()
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    picked = legend("method")
    base = alt.Chart(alt.NamedData("rows"))
    base = base.encode(
        x=alt.X(
            "ratio:Q", scale=alt.Scale(type="log", nice=False, padding=14), axis=alt.Axis(format="~g", grid=True)
        ).title("error relative to the ANN's, log scale (left: better)"),
        y=alt.Y("dataset:N", sort=names, title=None, axis=alt.Axis(labelFontSize=12.5, labelLimit=200)),
        yOffset=alt.YOffset("method:N", sort=[METHODS[key].title for key in _GANNS]),
        color=alt.Color("method:N", scale=colours(rows), title=None),
        opacity=faded(picked),
        tooltip=["dataset:N", "method:N", "source:N", "score:N", "plain:N", alt.Tooltip("ratio:Q", format=".3f")],
    )
    paper = base.transform_filter(alt.datum.source == "in the paper").mark_tick(orient="vertical", size=15, thickness=2)
    here = base.transform_filter(alt.datum.source == "here").mark_circle(size=80).add_params(picked)
    rule = alt.Chart(alt.NamedData("rows")).mark_rule(strokeDash=[2, 3], size=1).encode(x=alt.datum(1))
    chart = alt.layer(rule, here, paper).properties(height=36 * len(names))
    ours = [row for row in rows if row["source"] == "here"]
    won = sum(row["ratio"] < 1 for row in ours)
    return Chart(
        chart,
        "Mean absolute error (regression) or share of wrong classes (classification) of each GaNN, divided by the "
        "plain network's on the same rows. Dots: here; ticks: the paper. A click on the legend singles a method out, "
        "in this figure and in the others; a click beside it ends that.",
        f"Dot plot. Each row is a dataset; dots show each GaNN's error divided by the plain network's. {won} of "
        f"{len(ours)} dots from this study lie left of 1, where the GaNN is better.",
        rows,
        command(results.cells.values()),
    )


def _relative(results: Results) -> Iterator[Row]:
    for name, dataset in DATASETS.items():
        metric = METRICS[HEADLINE[dataset.task]]
        for method in _GANNS:
            pair = [results.score(name, key, metric.key) for key in (method, "ann")]
            printed = [PRINTED[metric.key].get((name, key)) for key in (method, "ann")]
            if not (pair[0] and pair[1]):
                continue
            means = [score.mean for score in pair if score]
            for source, (ours, plain) in (
                ("here", means),
                ("in the paper", [number.mean for number in printed if number]),
            ):
                errors = (ours, plain) if metric.sign < 0 else (1 - ours, 1 - plain)
                if all(math.isfinite(error) and error > 0 for error in errors):
                    yield {
                        "dataset": dataset.title,
                        "method": METHODS[method].title,
                        "source": source,
                        "ratio": errors[0] / errors[1],
                        "score": f"{metric.title} {ours:.{metric.digits}f}",
                        "plain": f"{metric.title} {plain:.{metric.digits}f}",
                    }


def timings(records: Iterable[Record]) -> Chart | None:
    """Measured time for each dataset beside the plain loop, extrapolated from measured steps."""
    records = list(records)
    rows = list(_times(records))
    if not rows:
        return None
    alt = altair()
    longest = max(row["loop"] or row["seconds"] for row in rows)
    ends = [min(row["seconds"] for row in rows) / 2, 30 * longest]  # room for words
    scale = alt.Scale(type="log", domain=ends, nice=False)
    near = alt.X("seconds:Q", scale=scale, title="seconds (log scale)", axis=alt.Axis(format="~s", grid=True))
    far = alt.X("far:Q", scale=scale)
    base = alt.Chart(alt.NamedData("rows")).transform_calculate(far="max(datum.seconds, datum.loop)")
    base = base.encode(y=alt.Y("dataset:N", sort=None, title=None, axis=alt.Axis(labelFontSize=12.5, labelLimit=260)))
    bridge = base.mark_rule(size=1.5).encode(x=near, x2="far:Q")
    dots = base.mark_circle(size=80, color=COLOURS["gann-sparse"], opacity=1).encode(
        x=near, tooltip=["dataset:N", "trainings:Q", alt.Tooltip("seconds:Q", format=",.1f")]
    )
    loops = base.transform_filter("isValid(datum.loop)").mark_point(
        size=80, color=COLOURS["ann"], opacity=1, strokeWidth=1.8, filled=False
    )
    loops = loops.encode(x=far, tooltip=["dataset:N", alt.Tooltip("loop:Q", format=",.0f")])
    text = base.mark_text(align="left", dx=10).encode(x=far, text="in words:N")
    return Chart(
        alt.layer(bridge, dots, loops, text).properties(height=30 * len(rows)),
        "Seconds for all trainings of a dataset with their evaluation, as they ran here (filled; those of processes "
        "side by side are added up), and for the same trainings one after another in a plain loop (hollow), "
        "extrapolated from measured steps on the same device and without evaluation.",
        "Dot plot of seconds by dataset, measured and extrapolated, on a logarithmic scale.",
        rows,
        command(records),
    )


def _times(records: Sequence[Record]) -> Iterator[Row]:
    for name, dataset in DATASETS.items():
        for synthetic in (False, True):
            own = [r for r in records if r.job.dataset == name and r.synthetic == synthetic]
            found = cost(own)
            if not found.seconds:
                continue
            yield {
                "dataset": f"{dataset.title} (random data)" if synthetic else dataset.title,
                "trainings": found.trainings,
                "seconds": found.seconds,
                "loop": found.loop or None,
                "in words": _compared(found),
            }


def _compared(found: Cost) -> str:
    if not (found.loop and found.seconds):
        return ""
    ratio = found.loop / found.seconds
    return f"{duration(found.loop)} in a loop, {ratio:.{1 if ratio < 10 else 0}f} × as long"


def duration(seconds: float) -> str:
    """For people.

    >>> [duration(s) for s in (3.2, 150, 6300, 8000, 250000)]
    ['3.2 s', '2.5 min', '105 min', '2.2 h', '69 h']
    """
    unit, size = next(((unit, size) for unit, size in (("h", 3600), ("min", 60)) if seconds >= 2 * size), ("s", 1))
    return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"


def colours(rows: Sequence[Row]) -> Any:
    """Methods' colours, the same in all figures, in the order of the tables."""
    titles = {row["method"] for row in rows}
    shown = [method for method in METHODS.values() if method.title in titles]
    return altair().Scale(domain=[m.title for m in shown], range=[COLOURS[m.key] for m in shown])


def label(record: Record) -> str:
    """The dataset's title."""
    return DATASETS[record.job.dataset].title


def order(record: Record) -> tuple[int, int]:
    """The paper's order of datasets and methods."""
    return list(DATASETS).index(record.job.dataset), list(METHODS).index(record.job.method)


def command(records: Iterable[Record]) -> str:
    """What makes the records of a figure again, and the page with the figure."""
    return "\n".join(commands(records))
