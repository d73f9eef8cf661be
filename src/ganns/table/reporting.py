"""What a fit has shown, as a page."""

from typing import Any

from ganns.page import Cell, Chart, Code, Column, Fact, Page, Section, Table
from ganns.predictive import Regression
from ganns.table.fitting import Fitted
from ganns.table.scoring import MEASURES, share_error
from ganns.table.wording import fixed, number, percent

_POINTS = 400  # rows that a chart shows at most; more hide one another
_QUIET = "#8c8c84"


def fit_page(fitted: Fitted, model: str, command: str) -> Page:
    """The report of `ganns fit`.

    Args:
        fitted: what came out.
        model: where the model is, as people type it.
        command: what was typed.
    """
    task = fitted.prepared.task
    first = MEASURES[task][0]
    value, without = fitted.scores[first.key], fitted.blind[first.key]
    rows = len(fitted.held_out)
    return Page(
        title=f"{fitted.prepared.target}, predicted",
        lead=_lead(fitted),
        facts=[
            Fact(first.noun, _plain(value, first.key), f"{_plain(without, first.key)} without looking at a row"),
            Fact("NLL", number(fitted.scores["nll"], 3), f"{number(fitted.blind['nll'], 3)} without looking at a row"),
            _trust(fitted),
            Fact("rows held out", f"{rows:,}", f"of {fitted.prepared.frame.height:,}; no part of the fit saw them"),
        ],
        figure=_truth_chart(fitted, command) if task == "regression" else _reliability_chart(fitted, command),
        sections=[
            Section("How good", [_scores(fitted), *([_coverage(fitted)] if task == "regression" else [])], "scores"),
            Section("The most surprising rows", [_surprising(fitted)], "surprise"),
            Section("Columns", [_columns(fitted)], "columns"),
            Section(
                "Use it", [Code(_usage(model), "Predict new rows, export the model"), Code(command, "Made by")], "use"
            ),
        ],
        footer=_footer(fitted),
    )


def _lead(fitted: Fitted) -> str:
    prepared, first = fitted.prepared, MEASURES[fitted.prepared.task][0]
    value, without = fitted.scores[first.key], fitted.blind[first.key]
    better = value > without if first.higher_is_better else value < without
    learned = len(prepared.frame) - len(fitted.held_out)
    start = f"Learned from {learned:,} rows and {len(prepared.columns)} columns. "
    if not better:
        return start + (
            f"On rows it has not seen the model is no better than always giving the same answer: these columns say "
            f"little about {prepared.target!r}, or there are too few rows."
        )
    return start + (
        f"On rows it has not seen its {first.noun} is {_plain(value, first.key)}, where always giving the same answer "
        f"has {_plain(without, first.key)}."
    )


def _plain(value: float, key: str) -> str:
    return percent(value) if key == "accuracy" else number(value, 3)


def _trust(fitted: Fitted) -> Fact:
    if fitted.prepared.task == "regression":
        nominal, observed, _ = next(each for each in fitted.coverage if each[0] == 0.9)
        error = share_error(observed, len(fitted.held_out))
        return Fact(
            "in the 90 % intervals", percent(observed), f"± {percent(error)}; {percent(nominal)} would be right"
        )
    confidence = sum(c * n for c, _, n in fitted.reliability) / len(fitted.held_out)
    return Fact("mean confidence", percent(confidence), "right as often, if it can be trusted")


def _truth_chart(fitted: Fitted, command: str) -> Chart:
    """Truth against prediction, with its interval."""
    import altair as alt

    assert isinstance(fitted.prediction, Regression)
    lower, upper = fitted.intervals[0.9]
    step = max(1, -(-len(fitted.held_out) // _POINTS))
    rows = [
        {"row": int(row) + 1, "prediction": p, "lower": low, "upper": high, "truth": y}
        for row, p, low, high, y in zip(
            fitted.held_out.tolist(),
            *(t.squeeze(-1).tolist() for t in (fitted.prediction.mean, lower, upper, fitted.truth)),
            strict=True,
        )
    ][::step]
    base = alt.Chart(alt.NamedData("rows"))
    near = alt.Scale(zero=False, nice=True)
    x = alt.X("prediction:Q", title="prediction", scale=near)
    bars = base.mark_rule(opacity=0.2).encode(x=x, y=alt.Y("lower:Q", title="truth", scale=near), y2="upper:Q")
    points = base.mark_circle(size=22, opacity=0.75).encode(
        x=x,
        y=alt.Y("truth:Q", scale=near),
        tooltip=[
            "row:Q",
            *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("truth", "prediction", "lower", "upper")),
        ],
    )
    line: Any = [{"at": end([row["prediction"] for row in rows])} for end in (min, max)]
    ends = alt.Chart(alt.InlineData(line))
    diagonal = ends.mark_line(strokeDash=[4, 4], color=_QUIET).encode(
        x=alt.X("at:Q", scale=near), y=alt.Y("at:Q", scale=near)
    )
    shown = f" {len(rows):,} of the {len(fitted.held_out):,} rows held out are shown." if step > 1 else ""
    return Chart(
        spec=(bars + diagonal + points).properties(height=360),
        title="Truth against prediction",
        caption="Each point is a row held out; its line is the 90 % interval, which should hold nine points of ten. "
        f"On the dashed diagonal a prediction is exact.{shown}",
        description=f"Scatter plot of {len(rows)} rows: predicted {fitted.prepared.target} against the truth.",
        data_rows=rows,
        command=command,
    )


def _reliability_chart(fitted: Fitted, command: str) -> Chart:
    """Accuracy against confidence."""
    import altair as alt

    rows = [
        {"confidence": c, "accuracy": a, "rows": n, "low": max(0.0, a - e), "high": min(1.0, a + e)}
        for c, a, n in fitted.reliability
        for e in [2 * share_error(a, n)]
    ]
    base = alt.Chart(alt.NamedData("rows"))
    lowest = max(0.0, min(row[key] for row in rows for key in ("confidence", "low")) - 0.05)
    scale = alt.Scale(domain=[lowest, 1.0])
    x = alt.X("confidence:Q", title="mean confidence", scale=scale, axis=alt.Axis(format="%"))
    whiskers = base.mark_rule(opacity=0.5).encode(x=x, y=alt.Y("low:Q", title="accuracy", scale=scale), y2="high:Q")
    points = base.mark_circle(size=90).encode(
        x=x,
        y=alt.Y("accuracy:Q", scale=scale, axis=alt.Axis(format="%")),
        tooltip=[alt.Tooltip("confidence:Q", format=".1%"), alt.Tooltip("accuracy:Q", format=".1%"), "rows:Q"],
    )
    line: Any = [{"at": lowest}, {"at": 1.0}]
    ends = alt.Chart(alt.InlineData(line))
    diagonal = ends.mark_line(strokeDash=[4, 4], color=_QUIET).encode(
        x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale)
    )
    return Chart(
        spec=(diagonal + whiskers + points).properties(height=360),
        title="Is it right as often as it says?",
        caption="Rows held out in five groups, from the least to the most confident; lines are two standard errors. "
        "On the dashed diagonal confidence can be taken at its word.",
        description="Accuracy against mean confidence of five groups of rows.",
        data_rows=rows,
        command=command,
    )


def _scores(fitted: Fitted) -> Table:
    measures = MEASURES[fitted.prepared.task]
    rows = []
    for measure in measures:
        value, without = fitted.scores[measure.key], fitted.blind[measure.key]
        rows.append([Cell(measure.title, title=measure.hint), fixed(value, value), fixed(without, value), measure.hint])
    return Table(
        ["", "this model", "without looking", Column("what it is", numeric=False)],
        rows,
        f"On {len(fitted.held_out):,} rows held out",
        ["Without looking: always the mean of the rows fitted to, or the shares of their classes."],
    )


def _coverage(fitted: Fitted) -> Table:
    rows = [
        [percent(nominal), f"{percent(held)} ± {percent(share_error(held, len(fitted.held_out)))}", number(width, 3)]
        for nominal, held, width in fitted.coverage
    ]
    return Table(
        ["Interval", "held the truth", "mean width"],
        rows,
        "Intervals, calibrated on other rows than these",
        ["± is the standard error of counting so many rows."],
    )


def _surprising(fitted: Fitted) -> Table:
    rows = [
        [
            Cell(f"{each.row:,}", sort=each.row),
            Cell(f"{each.percentile:.2f}", sort=each.percentile),
            each.truth,
            each.prediction,
            each.why,
        ]
        for each in fitted.surprising
    ]
    columns = [
        Column("Row", numeric=False),
        Column("Percentile", hint="Share of the rows fitted to that are less unusual"),
        Column("truth"),
        Column("prediction"),
        Column("What stands out", numeric=False),
    ]
    notes = ["Surprise looks at the activity that a row causes in the network, not at its target."]
    return Table(columns, rows, "Rows to look at first: mistakes in the data, or rare cases", notes)


def _columns(fitted: Fitted) -> Table:
    rows: list[Any] = [
        [column.name, column.describe() + ("; with gaps" if column.gaps else "")] for column in fitted.prepared.columns
    ]
    rows += [
        [Cell(column.name, faint=True), Cell(f"left out: {column.reason}", faint=True)]
        for column in fitted.prepared.left_out
    ]
    words = [Column("", numeric=False), Column("what it holds", numeric=False)]
    return Table(words, rows, f"What {fitted.prepared.target!r} is predicted from")


def _usage(model: str) -> str:
    return f"ganns predict {model} NEW.csv --out predictions.csv\nganns export {model} --format onnx"


def _footer(fitted: Fitted) -> list[str]:
    estimator = fitted.model.estimator
    words = (
        f"An ensemble of {estimator.members} networks with {estimator.variance} priors; α = {estimator.alpha_:g}"
        + (", chosen on validation rows." if estimator.alpha == "auto" else ".")
    )
    if estimator.alpha_ == 0:
        words += (
            " That is plain training: on this table the priors did not help, and were fitted afterwards for surprise."
        )
    notes = [words]
    if fitted.repeated:
        notes.append(
            f"{fitted.repeated:,} rows of the table repeat an earlier one. Where a row held out repeats one fitted "
            "to, the numbers flatter the model."
        )
    return notes
