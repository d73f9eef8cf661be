"""Each figure from records: its rows, and what of them it draws."""

import json
import math
from dataclasses import replace

import pytest
from made_up import record, study

from ganns.page.charts import specification
from ganns.study import curves, diagrams, figures
from ganns.study.catalogue import DATASETS
from ganns.study.scores import Results


def drawn(chart):
    return json.dumps(specification(chart.spec))


def with_inner_of_zero(one):
    """As the loop keeps it for networks without priors."""
    history = {**one.seeds[0].history, "inner": [0.0] * len(one.seeds[0].history["base"])}
    return replace(one, seeds=(replace(one.seeds[0], history=history), *one.seeds[1:]))


def test_the_inner_loss_is_dashed_and_of_ganns_alone():
    records = [with_inner_of_zero(record("airfoil", "ann")), record("airfoil", "gann-sparse"), record("digits", "ann")]
    chart = curves.learning(records, "regression")
    assert {row["dataset"] for row in chart.data_rows} == {"Airfoil"}
    inner = {row["method"]: row.get("inner") for row in chart.data_rows}
    assert inner["ANN"] is None
    assert math.isfinite(inner["GaNN-sparse"])
    panels = specification(chart.spec)["concat"]
    assert [panel["title"] for panel in panels] == ["Validation MAE", "Base loss", "Inner loss"]
    assert ["strokeDash" in json.dumps(panel) for panel in panels] == [False, False, True]
    assert all('"type": "area"' in json.dumps(panel) for panel in panels)


def test_without_histories_there_are_no_curves():
    assert curves.learning([record("airfoil", "ann", history=False)], "regression") is None
    assert curves.sweep([record("cifar100", "gann-sparse", "sweep", alpha=0.1)], "alpha", "α") is None


def test_a_sweep_is_one_line_for_each_value_in_order():
    records = [record("cifar100", "gann-sparse", "sweep", seeds=2, alpha=alpha) for alpha in (1.0, 0.001, 0.1)]
    chart = curves.sweep(records, "alpha", "α")
    assert list(dict.fromkeys(row["alpha"] for row in chart.data_rows)) == ["0.001", "0.1", "1"]
    assert '"domain": ["0.001", "0.1", "1"]' in drawn(chart)
    for row in chart.data_rows:
        assert row["validation_low"] <= row["validation"] <= row["validation_high"]
    assert chart.title == "α on CIFAR-100"


def test_a_band_on_a_log_scale_stays_above_zero():
    assert curves._spread("mae", [1.0, 9.0])["mae_low"] == 1.0
    assert curves._spread("inner", [-1.0, -3.0])["inner_low"] == pytest.approx(-2 - 2**0.5)
    assert curves._spread("mae", [math.nan]) == {"mae": None, "mae_low": None, "mae_high": None}


@pytest.mark.parametrize(
    ("make", "dataset", "key", "x", "y"),
    [
        (diagrams.coverage, "airfoil", "coverage", "nominal", "observed"),
        (diagrams.reliability, "digits", "reliability", "confidence", "accuracy"),
        (diagrams.errors, "digits", "error", "uncertainty", "error"),
        (diagrams.surprise, "digits", "surprise", "middle", "share"),
        (diagrams.priors, "digits", "priors", "quantile", "value"),
    ],
)
def test_diagrams_show_the_records_own_rows(make, dataset, key, x, y):
    one = record(dataset, "gann-sparse")
    chart = make([one])
    assert len(chart.data_rows) == len(one.diagnostics[key]) * (2 if key == "priors" else 1)
    title = DATASETS[dataset].title
    assert {(row["dataset"], row["method"]) for row in chart.data_rows} == {(title, "GaNN-sparse")}
    assert f'"field": "{x}"' in drawn(chart)
    assert f'"field": "{y}"' in drawn(chart)
    assert f"ganns reproduce {dataset} --recipe paper" in chart.command
    assert make([replace(one, diagnostics={})]) is None


def test_priors_have_a_panel_for_each_layer_and_quantity():
    chart = diagrams.priors([record("digits", "gann-dense")])
    found = {row["panel"] for row in chart.data_rows}
    assert found == {f"Layer {n}: {words}" for n in (1, 2, 3) for words in ("standard deviation σ", "mean μ")}


def test_detection_is_a_row_for_each_dataset_and_method():
    table = diagrams.detection(
        [record("digits", "gann-sparse"), record("airfoil", "gann-dense"), record("yacht", "ann")]
    )
    assert [row[:2] for row in table.rows] == [["Airfoil", "GaNN-dense"], ["Digits-MNIST", "GaNN-sparse"]]
    assert table.rows[0][2].text == "0.950"
    assert "surprise 0.6" in table.rows[0][2].note
    assert diagrams.detection([record("yacht", "ann")]) is None


def test_gaps_in_diagnostics_are_left_out():
    one = record("digits", "gann-sparse")
    rows = [*one.diagnostics["error"], {"uncertainty": None, "error": 0.1, "rows": 3}]
    chart = diagrams.errors([replace(one, diagnostics={"error": rows})])
    assert len(chart.data_rows) == len(rows) - 1


def test_every_legend_can_be_clicked():
    """A selection belongs to a layer that has the legend's colours; elsewhere Vega-Lite leaves it without a legend."""
    records = study(["airfoil", "digits"])
    found = [curves.learning(records, "regression"), diagrams.coverage(records), diagrams.reliability(records)]
    found += [diagrams.errors(records), diagrams.surprise(records), diagrams.priors(records)]
    found += [figures.overview(Results.of(records, "paper"))]
    for chart in found:
        spec = specification(chart.spec)
        (pick,) = [param for param in spec["params"] if param["name"].startswith("picked_")]
        assert pick["bind"] == "legend"
        named = [part for part in _parts(spec) if part.get("name") in pick["views"]]
        assert named
        assert all("color" in part["encoding"] for part in named)


def _parts(spec):
    """All specifications inside one."""
    yield spec
    inner = [*spec.get("layer", ()), *spec.get("concat", ()), *([spec["spec"]] if "spec" in spec else ())]
    for part in inner:
        yield from _parts(part)


def test_times_without_any_are_not_drawn():
    assert figures.timings([replace(record(), timings={})]) is None
