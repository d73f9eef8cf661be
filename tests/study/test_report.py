import json
import re
from dataclasses import replace

import pytest
from browsing import column, opened, widths
from made_up import record, study

from ganns.study import report
from ganns.study.commands import commands
from ganns.study.curves import curve
from ganns.study.figures import overview, timings
from ganns.study.records import write
from ganns.study.scores import Results


def written(records, folder):
    for one in records:
        write(one, folder)
    return report.write(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    records = study(["airfoil", "utkface", "cifar100", "digits", "tiny_imagenet"])
    records += study(["airfoil", "digits"], styles=("modern",), history=False)
    records.append(replace(record("year_prediction_msd", "ann"), synthetic=True))
    return written(records, tmp_path_factory.mktemp("study"))


def test_a_whole_study_in_a_browser(whole):
    assert whole.stat().st_size < 5e6
    with opened(whole) as seen:
        assert seen.requests == [whole.as_uri()]
        assert seen.complaints == []
        figures = seen.locator("figure.chart").count()
        assert figures == 14
        assert seen.locator("figure.chart[data-drawn] svg").count() == figures
        assert seen.locator("svg [aria-roledescription='line mark'], svg [aria-roledescription='circle']").count() > 50
        assert seen.locator(".facts .value").count() == 4
        seen.locator("#performance thead button", has_text="GaNN-sparse").first.click()
        assert column(seen, "#performance .table:nth-of-type(1)", 3) == sorted(
            column(seen, "#performance .table:nth-of-type(1)", 3), key=lambda text: float(text.split()[0])
        )
        assert widths(seen) == [1280, 1280]
        seen.set_viewport_size({"width": 375, "height": 800})
        seen.wait_for_function(
            "Math.max(...[...document.querySelectorAll('.plot svg')].map((s) => s.clientWidth)) <= 335"
        )
        assert widths(seen) == [375, 375]


def _press(seen, figure, text=None):
    """A click on an entry of a figure's legend, or into its empty corner."""
    place = seen.locator(f"#{figure} svg" + (f" .role-legend-label text:text-is('{text}')" if text else "")).first
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    x, y = (box["width"] / 2, box["height"] / 2) if text else (box["width"] - 4, 4)
    seen.mouse.click(box["x"] + x, box["y"] + y)


def test_a_click_on_a_legend_singles_out_in_every_figure(whole):
    marks = "[...document.querySelectorAll('#{} .role-mark path')]"
    faint = f"{marks}.some((mark) => parseFloat(mark.getAttribute('opacity')) < 0.12)"
    with opened(whole) as seen:
        for figure, entry in (("first", "GaNN-sparse"), ("uncertainty-1", "GaNN-dense"), ("learning-1", "GaNN-sparse")):
            assert not seen.evaluate(faint.format(figure))
            _press(seen, figure, entry)
            for other in ("first", "uncertainty-1", "learning-2", "surprise-3"):
                seen.wait_for_function(faint.format(other))
            _press(seen, figure)
            for other in ("first", "uncertainty-1", "learning-2", "surprise-3"):
                seen.wait_for_function(f"!{faint.format(other)}")
        _press(seen, "uncertainty-1", "ANN")
        seen.wait_for_function(faint.format("learning-1"))
        assert not seen.evaluate(faint.format("first"))  # there is no ANN in it
        assert not seen.evaluate(faint.format("surprise-1"))  # another legend
        assert seen.complaints == []


def test_figures_hold_their_rows_once_and_say_what_made_them(whole):
    html = whole.read_text()
    charts = [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', html, re.S)]
    assert all(chart["rows"] and "values" not in json.dumps(chart["spec"]) for chart in charts)
    assert html.count("ganns report FOLDER") == len(charts) + 1
    assert "(random data)" in html
    assert "ganns reproduce year_prediction_msd --recipe paper --seeds 5 --methods ann --epochs 40 --synthetic" in html


@pytest.mark.parametrize(
    "records",
    [
        [record("digits", "gann-sparse", seeds=1)],
        [record("airfoil", "ann", seeds=2, history=False)],
        [record("digits", "ann", "modern"), record("digits", "gann-dense", "modern")],
        [record("cifar100", "gann-sparse", "sweep", alpha=alpha) for alpha in (0.1, 1.0)],
        [record("airfoil", "gann-sparse", "floors", floor=floor) for floor in (0.1, 1.0)],
        [replace(record("airfoil", "gann-sparse"), synthetic=True)],
        [replace(record("airfoil", "ann"), timings={}, environment={}, diagnostics={})],
        [record("airfoil", "ann", seeds=2, scores=[{"mae": float("nan")}] * 2)],
    ],
    ids=["one", "bare", "modern", "sweep", "floors", "synthetic", "empty", "diverged"],
)
def test_parts_of_a_study_make_a_page(records, tmp_path):
    html = written(records, tmp_path).read_text()
    assert html.count("<h2") >= 1
    assert "nan" not in re.sub(r"<script.*?</script>|data-sort=\"nan\"|seed \d: nan", "", html, flags=re.S)


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no records"):
        report.write(tmp_path)
    assert not any(tmp_path.iterdir())


def test_the_page_goes_where_it_is_told(tmp_path):
    write(record(), tmp_path / "records")
    assert report.write(tmp_path / "records", tmp_path / "page.html") == tmp_path / "page.html"


def test_the_overview_is_error_over_error():
    records = [
        record("digits", method, seeds=1, scores=[{"accuracy": value}])
        for method, value in (("ann", 0.8), ("gann-sparse", 0.9))
    ]
    records += [
        record("airfoil", method, seeds=1, scores=[{"mae": value}])
        for method, value in (("ann", 2.0), ("gann-sparse", 3.0))
    ]
    rows = overview(Results.of(records, "paper")).data_rows
    ratios = {(row["dataset"], row["source"]): row["ratio"] for row in rows}
    assert ratios == {
        ("Airfoil", "here"): pytest.approx(1.5),
        ("Airfoil", "in the paper"): pytest.approx(2.335 / 2.494),
        ("Digits-MNIST", "here"): pytest.approx(0.5),
        ("Digits-MNIST", "in the paper"): pytest.approx(1.0),
    }


def test_curves_are_thinned_means_with_their_spread():
    one = record("airfoil", "gann-sparse", seeds=2, epochs=1000)
    histories = [{"validation": [float(epoch + 2 * seed) for epoch in range(1, 1001)]} for seed in range(2)]
    one = replace(
        one, seeds=tuple(replace(result, history=history) for result, history in zip(one.seeds, histories, strict=True))
    )
    rows = curve(one, ("validation",))
    assert 30 < len(rows) <= 60
    assert rows[0] == {
        "epoch": 1,
        "validation": 2.0,
        "validation_low": pytest.approx(2 - 2**0.5),
        "validation_high": pytest.approx(2 + 2**0.5),
    }
    assert rows[-1]["validation"] == pytest.approx(rows[-1]["epoch"] + 1, abs=1)


def test_times_are_summed_by_dataset():
    records = [record("airfoil", "ann", seeds=2), record("airfoil", "gann-dense", seeds=2), record("digits", "ann")]
    airfoil, digits = timings(records).data_rows
    assert (airfoil["seconds"], airfoil["loop"], airfoil["trainings"]) == (27.5, 1800.0, 4)
    assert airfoil["in words"] == "30 min in a loop, 65 × as long"
    assert digits["dataset"] == "Digits-MNIST"
    slow = replace(records[0], timings={"train": 900.0, "evaluate": 100.0, "loop_seconds": 450.0})
    assert timings([slow]).data_rows[0]["in words"] == "7.5 min in a loop, 0.5 × as long"


def test_commands_name_what_is_not_as_usual():
    records = [
        record("airfoil", "ann", epochs=3000),
        record("yacht", "ann", epochs=5000),
        record("yacht", "ann", "modern", seeds=2),
    ]
    assert commands(records) == [
        "ganns reproduce airfoil yacht --recipe paper --seeds 5 --methods ann --out FOLDER",
        "ganns reproduce yacht --recipe modern --seeds 2 --methods ann --epochs 40 --out FOLDER",
        "ganns report FOLDER",
    ]
    assert commands(study(["digits"], epochs=120)) == [
        "ganns reproduce digits --recipe paper --seeds 5 --out FOLDER",
        "ganns report FOLDER",
    ]
