"""The pages of `ganns fit` and `ganns compare` say what came out, escape what comes from tables, and draw offline."""

from dataclasses import replace

import pytest
from browsing import column, opened, widths
from made_up_tables import fitted, prepared

from ganns.page import Page, Table, render, save
from ganns.table.comparing import Comparison, compare
from ganns.table.comparing_page import compare_page
from ganns.table.reporting import fit_page
from ganns.table.rivals import METHODS
from ganns.table.verdict import verdict

TASKS = ("regression", "classification")
NASTY = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def comparisons() -> dict[str, Comparison]:
    return {task: compare(prepared(task), splits=2, epochs=1, hidden=(4,)) for task in TASKS}


@pytest.fixture
def compared(comparisons):
    """The page of a comparison."""
    return lambda task: compare_page(prepared(task), comparisons[task], "ganns compare …", "ganns fit …")


def tables(page: Page) -> list[Table]:
    return [block for section in page.sections for block in section.blocks if isinstance(block, Table)]


@pytest.mark.parametrize("task", TASKS)
def test_a_fit_is_told_with_its_numbers(task):
    fit = fitted(task)
    page = fit_page(fit, "flats-model", "ganns fit flats.csv")
    assert fit.prepared.target in page.title
    assert page.lead.startswith(
        f"Learned from 96 rows and {len(fit.prepared.columns)} columns. On rows it has not seen"
    )
    assert [fact.label for fact in page.facts][1::2] == ["NLL", "rows held out"]
    assert len(page.figure.data_rows) == (24 if task == "regression" else 5)
    surprising = tables(page)[-2]
    assert [row[0].text for row in surprising.rows] == [str(each.row) for each in fit.surprising]
    columns = {row[0] if isinstance(row[0], str) else row[0].text: row[1] for row in tables(page)[-1].rows}
    assert columns["area"].startswith("numbers, 2")
    assert columns["floor"].endswith("; with gaps")
    assert columns["country"].text == "left out: always 'here'"
    assert "1 rows of the table repeat an earlier one." in page.footer[-1]
    assert "ganns predict flats-model NEW.csv" in render(page)


def test_a_model_that_learned_nothing_is_not_praised():
    fit = fitted("regression")
    page = fit_page(replace(fit, scores={**fit.scores, "mae": fit.blind["mae"] + 1}), "m", "c")
    assert "no better than always giving the same answer" in page.lead
    page = fit_page(replace(fit, scores={**fit.scores, "mae": fit.blind["mae"] / 2}), "m", "c")
    assert "no better" not in page.lead


def test_a_chart_shows_as_many_rows_as_can_be_seen(monkeypatch):
    monkeypatch.setattr("ganns.table.reporting._POINTS", 10)
    chart = fit_page(fitted("regression"), "m", "c").figure
    assert len(chart.data_rows) == 8
    assert chart.caption.endswith(" 8 of the 24 rows held out are shown.")


@pytest.mark.parametrize("task", TASKS)
def test_a_comparison_is_told_with_its_verdict(task, comparisons, compared):
    comparison, page = comparisons[task], compared(task)
    first, *rest = verdict(comparison)
    assert page.lead == first
    assert page.sections[0].blocks[0].paragraphs == rest
    assert len(page.facts) == 4
    levels, differences, settings = tables(page)
    assert [row[0] for row in levels.rows] == [row[0] for row in settings.rows] == [each.title for each in METHODS]
    assert [row[0] for row in differences.rows] == [each.title for each in METHODS if each.key != "plain"]
    for number in range(1, 4):
        best = [row[number] for row in levels.rows if row[number].bold]
        accuracy = task == "classification" and number == 1
        ends = [(max if accuracy else min)(row[number].sort for row in levels.rows)]
        assert [cell.sort for cell in best] == ends
    rows = page.figure.data_rows
    assert len(rows) == 2 * 5 * (1 + comparison.splits)
    for row in rows:
        assert row["split"] != "mean" or row["low"] <= row["gain"] <= row["high"]
    assert len(page.sections[2].blocks[0].data_rows) == 3 * 6 * comparison.splits
    assert "72 to train, 12 to stop in time, 12 to choose" in page.sections[3].blocks[0].paragraphs[0]
    assert "corrected resampled t-test" in page.footer[0]


def test_names_from_tables_are_escaped(comparisons):
    table = prepared("regression")
    for page in (
        fit_page(replace(fitted("regression"), prepared=replace(table, target=NASTY)), NASTY, NASTY),
        compare_page(replace(table, target=NASTY), comparisons["regression"], NASTY, NASTY),
    ):
        html = render(page)
        assert NASTY not in html
        assert html.count("&lt;img src=x onerror") > 3


@pytest.mark.parametrize(
    ("kind", "task"), [("fit", "regression"), ("fit", "classification"), ("compare", "regression")]
)
def test_pages_are_drawn_without_any_request(tmp_path, kind, task, compared):
    page = fit_page(fitted(task), "model", "command") if kind == "fit" else compared(task)
    path = save(page, tmp_path / "page.html")
    with opened(path) as seen:
        assert seen.requests == [path.as_uri()]
        assert seen.complaints == []
        assert seen.locator("figure.chart svg").count() == (1 if kind == "fit" else 2)
        for box in (figure.bounding_box() for figure in seen.locator("figure.chart svg").all()):
            assert 600 < box["width"] <= 1088
            assert box["height"] > 150
        seen.set_viewport_size({"width": 390, "height": 800})
        seen.wait_for_function("document.querySelector('#first svg').getBoundingClientRect().width <= 360")
        assert widths(seen) == [390, 390]


def test_the_numbers_of_a_comparison_sort(tmp_path, compared):
    path = save(compared("regression"), tmp_path / "page.html")
    with opened(path) as seen:
        table = "#numbers table >> nth=0"
        seen.locator(table).locator("thead button").nth(1).click()
        found = [float(text.split(" ")[0].replace(",", "")) for text in column(seen, table, 2)]
        assert found == sorted(found)
