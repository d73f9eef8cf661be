"""The study's figures of trained networks, from the diagnostics of each record's first seed."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ganns.page.blocks import Cell, Chart, Column, Table
from ganns.page.charts import altair, choice, faded, legend
from ganns.study.figures import SHOWN, Row, colours, command, label, order
from ganns.study.methods import METHODS
from ganns.study.records import Record

_KINDS = {"test": "#4a86a8", "shuffled": "#d99a34", "noise": "#d0553a", "inverted": "#9068bd", "upside down": "#55a79a"}
_QUANTITIES = {"sd": "standard deviation σ", "mean": "mean μ"}
_FIRST_SEED = "First seed of each method."


def reliability(records: Sequence[Record]) -> Chart | None:
    """Accuracy against confidence."""
    return _against_the_diagonal(
        records,
        "reliability",
        ("confidence", "accuracy"),
        "Reliability: how often a prediction is right that is so confident. On the dashed diagonal confidence is "
        f"deserved; below it the network is overconfident. {_FIRST_SEED}",
        "Reliability",
    )


def coverage(records: Sequence[Record]) -> Chart | None:
    """Share of targets inside intervals against what they promise."""
    return _against_the_diagonal(
        records,
        "coverage",
        ("nominal", "observed"),
        "Interval coverage: share of test targets inside the central interval that promises to hold so many. Below the "
        f"dashed diagonal intervals are too narrow. {_FIRST_SEED}",
        "Interval coverage",
    )


def _against_the_diagonal(
    records: Sequence[Record], key: str, axes: tuple[str, str], caption: str, title: str
) -> Chart | None:
    used = _used(records, key, (*SHOWN, "varhead", "varhead-d"))
    rows = _rows(used, key)
    if not rows:
        return None
    alt = altair()
    x, y = axes
    variants = [variant for variant in ("calibrated", "raw") if any(row["variant"] == variant for row in rows)]
    picked, shown = legend("method"), choice(f"{key}_variant", "Uncertainty", variants)
    share = alt.Scale(domain=[0, 1])
    base = alt.Chart(alt.NamedData("rows")).transform_filter(alt.datum.variant == shown)
    base = base.encode(x=alt.X(f"{x}:Q", scale=share, axis=alt.Axis(format="~p", tickCount=3)))
    diagonal = base.mark_line(strokeDash=[3, 3], color="#8c8c84", strokeWidth=1).encode(y=alt.Y(f"{x}:Q", scale=share))
    lines = base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(
        y=alt.Y(f"{y}:Q", scale=share, title=y, axis=alt.Axis(format="~p", tickCount=3)),
        color=alt.Color("method:N", scale=colours(rows), title=None),
        opacity=faded(picked),
        tooltip=["dataset:N", "method:N", alt.Tooltip(f"{x}:Q", format=".1%"), alt.Tooltip(f"{y}:Q", format=".1%")],
    )
    both = alt.layer(diagonal, lines.add_params(picked)).properties(height=170)
    return _small_multiples(both, rows, (shown,), caption, title, used)


def errors(records: Sequence[Record]) -> Chart | None:
    """Error against uncertainty."""
    used = _used(records, "error", SHOWN)
    rows = _rows(used, "error")
    if not rows:
        return None
    alt = altair()
    picked = legend("method")
    lines = (
        alt.Chart(alt.NamedData("rows"))
        .mark_line(point=alt.OverlayMarkDef(size=22))
        .encode(
            x=alt.X("uncertainty:Q", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
            y=alt.Y("error:Q", title="error", axis=alt.Axis(tickCount=4)),
            color=alt.Color("method:N", scale=colours(rows), title=None),
            opacity=faded(picked),
            tooltip=["dataset:N", "method:N", "rows:Q", *_precise("uncertainty", "error")],
        )
        .properties(height=170)
    )
    caption = (
        "Error against uncertainty, in ten groups of equally many test rows, after calibration. Regression: mean "
        "absolute "
        "error against predicted standard deviation; classification: share of wrong classes against entropy in nats. A "
        f"curve that rises knows where it will be wrong. {_FIRST_SEED}"
    )
    title = "Error against uncertainty"
    return _small_multiples(lines, rows, (picked,), caption, title, used, scales="independent")


def surprise(records: Sequence[Record]) -> Chart | None:
    """Typicality of test rows against that of shifted rows."""
    used = _used(records, "surprise", SHOWN[:3])
    rows = _rows(used, "surprise")
    if not rows:
        return None
    alt = altair()
    methods = list(dict.fromkeys(row["method"] for row in rows))
    kinds = [kind for kind in _KINDS if any(row["rows"] == kind for row in rows)]
    scale = alt.Scale(domain=kinds, range=[_KINDS[kind] for kind in kinds])
    picked, shown = legend("rows"), choice("surprise_method", "Method", methods)
    steps = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(alt.datum.method == shown)
        .transform_calculate(middle=(alt.datum["from"] + alt.datum.to) / 2)
        .mark_line(interpolate="step")
        .encode(
            x=alt.X("middle:Q", title="percentile of surprise", scale=alt.Scale(domain=[0, 100], nice=False)),
            y=alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="~p", tickCount=3)),
            color=alt.Color("rows:N", scale=scale, title=None),
            opacity=faded(picked),
            tooltip=["dataset:N", "rows:N", "from:Q", "to:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(height=150)
    )
    caption = (
        "How surprising rows are, as the percentile among training rows of how untypical their activity is. Test rows "
        "spread "
        "evenly if they are like training rows; rows that are something else should pile up at the right. Shuffled: "
        f"each feature's values in another order; noise: random numbers of the same range. {_FIRST_SEED}"
    )
    return _small_multiples(steps, rows, (picked, shown), caption, "Surprise of test rows and of shifted rows", records)


def priors(records: Sequence[Record]) -> Chart | None:
    """What the priors of each layer have learned."""
    used = _used(records, "priors", SHOWN[:3])
    rows = [
        {
            "dataset": r["dataset"],
            "method": r["method"],
            "panel": f"Layer {r['layer']}: {words}",
            "quantile": r["quantile"],
            "value": r[key],
        }
        for key, words in _QUANTITIES.items()
        for r in sorted(_rows(used, "priors"), key=lambda row: row["layer"])
    ]
    if not rows:
        return None
    alt = altair()
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    picked, shown = legend("method"), choice("prior_dataset", "Dataset", datasets)
    lines = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(alt.datum.dataset == shown)
        .mark_line(point=alt.OverlayMarkDef(size=22))
        .encode(
            x=alt.X("quantile:Q", title="share of the layer's units", axis=alt.Axis(format="~p", tickCount=3)),
            y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4)),
            color=alt.Color("method:N", scale=colours(rows), title=None),
            opacity=faded(picked),
            tooltip=["method:N", "panel:N", alt.Tooltip("quantile:Q", format=".0%"), *_precise("value")],
        )
        .properties(height=150)
    )
    facet = alt.Facet("panel:N", sort=panels, title=None)
    chart = lines.facet(facet, columns=3).resolve_scale(y="independent").resolve_axis(x="independent")
    return Chart(
        chart.add_params(picked, shown),
        "What the priors learned to expect: quantiles over a layer's units of their standard deviation and mean, "
        f"averaged over test rows. {_FIRST_SEED}",
        "Line charts of quantiles of the priors' standard deviations and means, one panel for each layer.",
        rows,
        command(used),
        title="Learned priors",
    )


def detection(records: Sequence[Record]) -> Table | None:
    """How well surprise, typicality and entropy tell shifted rows from test rows."""
    used = _used(records, "detection", SHOWN[:2])
    rows = _rows(used, "detection")
    if not rows:
        return None
    kinds = [kind for kind in _KINDS if any(row["rows"] == kind for row in rows)]
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["method"]), {})[row["rows"]] = row
    return Table(
        [
            Column("Dataset", numeric=False),
            Column("Method", numeric=False),
            *(Column(kind.capitalize()) for kind in kinds),
        ],
        [[*key, *(_areas(own.get(kind)) for kind in kinds)] for key, own in found.items()],
        "Telling shifted rows from test rows by typicality: area under the ROC curve (0.5 is chance, 1 is perfect).",
        [
            "Small: the same by plain surprise, the inner loss of each row; and for classification by the entropy of "
            f"the predicted classes. {_FIRST_SEED}"
        ],
    )


def _areas(row: Row | None) -> Cell:
    if row is None:
        return Cell("–", sort=math.nan, faint=True)
    note = f"surprise {row['surprise']:.3f}"
    note += f"\nentropy {row['entropy']:.3f}" if row.get("entropy") is not None else ""
    return Cell(f"{row['typicality']:.3f}", row["typicality"], note=note)


def _small_multiples(
    chart: Any,
    rows: Sequence[Row],
    params: Iterable[Any],
    caption: str,
    title: str,
    used: Sequence[Record],
    scales: str = "shared",
) -> Chart:
    """One panel for each dataset."""
    alt = altair()
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    facet = alt.Facet("dataset:N", sort=names, title=None)
    faceted = chart.facet(facet, columns=_columns(len(names))).resolve_axis(x="independent", y="independent")
    if scales == "independent":
        faceted = faceted.resolve_scale(x="independent", y="independent")
    description = f"{title}: small line charts, one for each of {len(names)} datasets: {', '.join(names)}."
    return Chart(faceted.add_params(*params), caption, description, rows, command(used), title=title)


def _columns(panels: int) -> int:
    """Rows of panels that are about full."""
    return 3 if panels in (5, 6, 9) else min(4, max(2, panels))


def _used(records: Iterable[Record], key: str, methods: Sequence[str]) -> list[Record]:
    """Those of some methods that have a diagnostic, in order."""
    return sorted((r for r in records if r.job.method in methods and r.diagnostics.get(key)), key=order)


def _rows(used: Iterable[Record], key: str) -> list[Row]:
    """A diagnostic's rows with dataset and method in front; those without a value are left out."""
    return [
        {"dataset": label(record), "method": METHODS[record.job.method].title, **row}
        for record in used
        for row in record.diagnostics[key]
        if all(value is not None for name, value in row.items() if name != "entropy")
    ]


def _precise(*fields: str) -> list[Any]:
    return [altair().Tooltip(f"{field}:Q", format=".4g") for field in fields]
