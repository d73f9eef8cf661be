"""What a comparison has shown, as a page."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ganns.page import Cell, Chart, Code, Column, Fact, Page, Section, Table, Text
from ganns.page.charts import altair
from ganns.table.comparing import Comparison
from ganns.table.preparing import Prepared
from ganns.table.rivals import METHODS, Method, Setting
from ganns.table.scoring import MEASURES
from ganns.table.verdict import (
    GANNS,
    chance,
    difference,
    gains,
    headline,
    leader,
    level,
    verdict,
)
from ganns.table.wording import percent

_COLOURS = {"GaNN": "#d0553a", "other": "#8c8c84"}


def compare_page(prepared: Prepared, comparison: Comparison, command: str, fit: str) -> Page:
    """The report of `ganns compare`.

    Args:
        prepared: the table.
        comparison: what came out.
        command: what was typed.
        fit: what to type to fit a model to this table.
    """
    first, *rest = verdict(comparison)
    return Page(
        title=f"{prepared.target}: is a GaNN worth it?",
        lead=first,
        facts=_facts(comparison),
        figure=_differences_chart(comparison, command),
        sections=[
            Section("In words", [Text(rest)], "words"),
            Section("Numbers", [_levels(comparison), _differences(comparison)], "numbers"),
            Section("Each split", [_splits_chart(comparison, command)], "splits"),
            Section("How", [Text(_how(prepared, comparison)), _settings(comparison)], "how"),
            Section("Again", [Code(command, "Made by"), Code(fit, "Fit a model to this table")], "again"),
        ],
        footer=_footer(comparison),
    )


def _facts(comparison: Comparison) -> list[Fact]:
    regression = comparison.task == "regression"
    facts = []
    for measure in headline(comparison.task) if regression else MEASURES[comparison.task]:
        gann, best = leader(comparison, measure, GANNS), leader(comparison, measure)
        notes = [f"plain network {level(comparison, measure, 'plain')[0]}"]
        if best.key not in (gann.key, "plain"):
            notes.append(f"{best.title} {level(comparison, measure, best.key)[0]}")
        value, _ = level(comparison, measure, gann.key)
        facts.append(Fact(f"{measure.title} of the {gann.title}", value, "; ".join(notes)))
    if regression:
        gann = leader(comparison, headline(comparison.task)[1], GANNS)
        words = f"plain network {percent(comparison.held('plain'))}; 90 % would be right"
        facts.append(Fact(f"in 90 % intervals of the {gann.title}", percent(comparison.held(gann.key)), words))
    rows = comparison.rows
    return [
        *facts,
        Fact("splits", str(comparison.splits), f"{rows.train:,} rows to train, {rows.test:,} to measure on"),
    ]


def _differences_chart(comparison: Comparison, command: str) -> Chart:
    """How much better each method is than the plain network, a panel for each headline measure."""
    alt = altair()
    rows = list(_differences_rows(comparison))
    base = alt.Chart(alt.NamedData("rows"))
    y = alt.Y("method:N", sort=[method.title for method in METHODS], title=None, axis=alt.Axis(labelLimit=160))
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())), legend=None)
    zero = base.mark_rule(strokeDash=[3, 3], color="#8c8c84").encode(x=alt.datum(0))
    whiskers = base.transform_filter(alt.datum.split == "mean").mark_rule(strokeWidth=2)
    whiskers = whiskers.encode(x=alt.X("low:Q", title="better by"), x2="high:Q", y=y, color=colour)
    means = base.transform_filter(alt.datum.split == "mean").mark_circle(size=90, opacity=1)
    each = base.transform_filter(alt.datum.split != "mean").mark_circle(size=28, opacity=0.45)
    tooltip = ["method:N", "split:N", *_precise("gain", "low", "high")]
    dots = [
        marks.encode(x=alt.X("gain:Q", axis=alt.Axis(tickCount=3)), y=y, color=colour, tooltip=tooltip)
        for marks in (each, means)
    ]
    layers: Any = alt.layer(zero, whiskers, *dots).properties(height=200)
    measures = headline(comparison.task)
    return Chart(
        _panels(layers, [measure.title for measure in measures]),
        "Large dots: how much better than the plain network on average; right of the dashed line is better. Lines are "
        "95 % intervals of the corrected test: one that crosses the dashed line shows no difference. Small dots are "
        "single splits.",
        "Dot plot of the differences to the plain network, with intervals. "
        + " ".join(
            f"{measure.title}: {method.title} {difference(comparison, measure, method.key, 'plain')}."
            for measure in measures
            for method in GANNS
        ),
        rows,
        command,
        title="How much better than a plain network?",
    )


def _differences_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for measure in headline(comparison.task):
        for method in METHODS:
            if method.key == "plain":
                continue
            found = difference(comparison, measure, method.key, "plain")
            each = gains(comparison, measure, method.key, "plain")
            ends = found.gain - found.detectable, found.gain + found.detectable
            for split, gain, (low, high) in [
                ("mean", found.gain, ends),
                *((str(n), float(gain), (None, None)) for n, gain in enumerate(each, 1)),
            ]:
                yield {
                    "measure": measure.title,
                    "method": method.title,
                    "kind": _kind(method),
                    "split": split,
                    "gain": gain,
                    "low": low,
                    "high": high,
                }


def _splits_chart(comparison: Comparison, command: str) -> Chart:
    """Every measure of every method on every split."""
    alt = altair()
    measures = MEASURES[comparison.task]
    rows = [
        {
            "measure": measure.title,
            "method": method.title,
            "kind": _kind(method),
            "split": split,
            "value": float(value),
        }
        for measure in measures
        for method in METHODS
        for split, value in enumerate(comparison.values(method.key, measure.key), 1)
    ]
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())), legend=None)
    y = alt.Y("method:N", sort=[method.title for method in METHODS], title=None, axis=alt.Axis(labelLimit=160))
    base = alt.Chart(alt.NamedData("rows")).encode(y=y, color=colour)
    x = alt.X("value:Q", title=None, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=3))
    dots = base.mark_circle(size=45, opacity=0.6).encode(x=x, tooltip=["method:N", "split:N", *_precise("value")])
    means = base.mark_tick(thickness=2, size=16).encode(x=alt.X("mean(value):Q"))
    better = " ".join(f"{m.title}: {'higher' if m.higher_is_better else 'lower'} is better." for m in measures)
    return Chart(
        _panels(alt.layer(dots, means).properties(height=190), [measure.title for measure in measures]),
        f"Each dot is a split, each tick the mean. {better} Splits differ in how hard their test rows are, the same "
        "for all methods: differences on the same split, above, say more.",
        f"Dot plots of {', '.join(measure.title for measure in measures)} for each method and split.",
        rows,
        command,
    )


def _panels(layers: Any, names: list[str]) -> Any:
    """One for each measure, each with a scale of its own."""
    facet = altair().Facet("measure:N", sort=names, title=None)
    faceted = layers.facet(facet, columns=len(names))
    return faceted.resolve_scale(x="independent").resolve_axis(x="independent", y="independent")


def _precise(*fields: str) -> list[Any]:
    return [altair().Tooltip(f"{field}:Q", format=".4~g") for field in fields]


def _kind(method: Method) -> str:
    return "GaNN" if method.gann else "other"


def _levels(comparison: Comparison) -> Table:
    measures = MEASURES[comparison.task]
    columns = [Column(measure.title, hint=measure.hint) for measure in measures]
    if comparison.task == "regression":
        columns.append(Column("in 90 % intervals", hint="Share of test targets that they hold; 90 % would be right."))
    rows = []
    for method in METHODS:
        cells = [
            Cell(
                level(comparison, measure, method.key)[1],
                sort=float(comparison.values(method.key, measure.key).mean()),
                bold=leader(comparison, measure) is method,
            )
            for measure in measures
        ]
        if comparison.task == "regression":
            cells.append(Cell(percent(comparison.held(method.key)), sort=comparison.held(method.key)))
        rows.append([method.title, *cells])
    return Table(
        [Column("Method", numeric=False), *columns],
        rows,
        f"On {comparison.rows.test:,} rows that no method saw, {comparison.splits} times",
        ["± is the standard deviation over splits; bold is the best mean, whether or not it can be told apart."],
    )


def _differences(comparison: Comparison) -> Table:
    measures = headline(comparison.task)
    rows = []
    for method in METHODS:
        if method.key == "plain":
            continue
        cells = []
        for measure in measures:
            found = difference(comparison, measure, method.key, "plain")
            cells += [Cell(str(found), sort=found.gain, bold=found.sign > 0), Cell(chance(found.p), sort=found.p)]
        rows.append([method.title, *cells])
    hint = "Probability of so large a difference if there were none"
    columns = [part for m in measures for part in (Column(m.title, hint=m.hint), Column(f"p ({m.title})", hint=hint))]
    return Table(
        [Column("Method", numeric=False), *columns],
        rows,
        "How much better than the plain network on the same split",
        [
            "Above 0 is better, for every measure; ± is the standard error of the corrected test, bold is better with "
            "p below 0.05. With so many differences side by side some p will be small by chance."
        ],
    )


def _settings(comparison: Comparison) -> Table:
    """What each method could choose from, and what it took."""
    rows = []
    for method in METHODS:
        values = {name: dict.fromkeys(setting[name] for setting in method.settings) for name in method.settings[0]}
        choice = "; ".join(f"{_plain(name)} {' or '.join(f'{v:g}' for v in each)}" for name, each in values.items())
        taken = Counter(_words(outcome.setting) for outcome in comparison.outcomes[method.key])
        chosen = "; ".join(f"{words} ({count})" for words, count in taken.most_common())
        rows.append([method.title, Cell(choice, note=f"chosen: {chosen}")])
    return Table(
        [Column("Method", numeric=False), Column("could choose from", numeric=False)],
        rows,
        "Settings",
        [
            "Small: what was chosen, and on how many splits. The ensemble takes over what the plain network chose, and "
            "trains it five times."
        ],
    )


def _words(setting: Setting) -> str:
    return ", ".join(f"{_plain(name)} {value:g}" for name, value in setting.items())


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _how(prepared: Prepared, comparison: Comparison) -> list[str]:
    rows = comparison.rows
    layers = " and ".join(str(units) for units in comparison.hidden)
    words = [
        f"{comparison.splits} times the {prepared.frame.height:,} rows were shuffled and divided, the same for all "
        f"methods: {rows.train:,} to train, {rows.stop:,} to stop in time, {rows.choose:,} to choose a setting and to "
        f"calibrate by, {rows.test:,} to measure on. {len(prepared.columns)} columns were used.",
        f"Each method could choose from four settings by its NLL on the rows held back for that. Networks have layers "
        f"of {layers} units and at most {comparison.epochs} epochs; gradient boosting has at most 300 trees, as many "
        "as suit the rows to stop by.",
    ]
    if prepared.left_out:
        reasons = "; ".join(f"{column.name}: {column.reason}" for column in prepared.left_out)
        words.append(f"Columns left out: {reasons}.")
    repeated = prepared.frame.height - prepared.frame.n_unique()
    if repeated:
        words.append(
            f"{repeated:,} rows of the table repeat an earlier one. Where one to measure on repeats one trained on, "
            "numbers flatter every method, and those most that remember best."
        )
    return words


def _footer(comparison: Comparison) -> list[str]:
    return [
        "Differences are tested with the corrected resampled t-test (C. Nadeau and Y. Bengio, Inference for the "
        "generalization error, 2003), two-sided: splits share training rows, so that their spread alone makes "
        "differences look surer than they are. A difference counts with p below 0.05; for the answer on top, which is "
        "asked of two GaNNs and two measures, with p below a quarter of that.",
    ]
