import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from made_up import record, study
from scipy import stats

from ganns.page import Cell, Column, Table, render
from ganns.page.blocks import Page, Section
from ganns.page.rendering import cells
from ganns.study.departures import departures
from ganns.study.formats import FORMATS, comma_separated, latex, markdown, together
from ganns.study.scores import Results, Score, paired_test
from ganns.study.tables import all_tables

OURS = [1.0, 1.2, 1.1, 1.4, 1.3]
THEIRS = [1.5, 1.3, 1.6, 1.4, 1.7]


def scored(dataset, method, values, metric="mae", **options):
    scores = [{metric: value} for value in values]
    return record(dataset, method, seeds=len(values), scores=scores, history=False, **options)


def table(records, start, missing=None):
    [found] = [table for table in all_tables(records, missing) if table.caption.startswith(start)]
    return found


def row(table, name):
    headings = [column.title if isinstance(column, Column) else column for column in table.columns]
    [found] = [found for found in map(cells, table.rows) if found[0].text == name]
    return dict(zip(headings, found, strict=True))


def test_the_paired_test_is_scipys():
    difference, p = paired_test(Score(dict(enumerate(OURS))), Score(dict(enumerate(THEIRS))))
    assert difference == pytest.approx(np.mean(np.subtract(OURS, THEIRS)))
    assert p == pytest.approx(stats.ttest_rel(OURS, THEIRS).pvalue)


def test_only_shared_seeds_are_paired():
    whole = Score(dict(enumerate(OURS)))
    part = Score({4: THEIRS[4], 1: THEIRS[1], 2: THEIRS[2], 3: math.nan, 9: 7.0})
    _, p = paired_test(whole, part)
    assert p == pytest.approx(stats.ttest_rel([OURS[i] for i in (1, 2, 4)], [THEIRS[i] for i in (1, 2, 4)]).pvalue)
    assert paired_test(whole, Score({0: 3.0})) is None
    assert paired_test(whole, whole) is None


def test_a_cell_has_ours_the_papers_and_the_difference_in_spreads():
    cells = row(table([scored("airfoil", "ann", OURS)], "Table 2, regression. MAE"), "Airfoil")
    mean, std = np.mean(OURS), np.std(OURS, ddof=1)
    assert cells["ANN"].text == f"{mean:.3f} ± {std:.3f}"
    assert cells["ANN"].sort == pytest.approx(mean)
    distance = (mean - 2.494) / np.hypot(std, 0.090)
    assert cells["ANN"].note == f"2.494 ± 0.090\nΔ −{abs(distance):.1f}"


def test_where_the_paper_prints_no_spread_ours_counts():
    values = [3.0, 3.2, 3.4]
    cells = row(
        table([scored("airfoil", "gann-sparse", values, "nll")], "Table 3, regression. Gaussian NLL, as"), "Airfoil"
    )
    assert cells["GaNN-sparse"].note == f"3.28\nΔ −{(3.28 - np.mean(values)) / np.std(values, ddof=1):.1f}"


def test_one_seed_has_no_spread():
    cells = row(
        table([scored("airfoil", "gann-sparse", [3.0], "nll")], "Table 3, regression. Gaussian NLL, as"), "Airfoil"
    )
    assert (cells["GaNN-sparse"].text, cells["GaNN-sparse"].note) == ("3.00", "3.28")


@pytest.mark.parametrize(
    ("dataset", "metric", "best"), [("airfoil", "mae", "ANN"), ("digits", "accuracy", "GaNN-dense")]
)
def test_the_best_is_bold_and_so_is_what_prints_the_same(dataset, metric, best):
    values = {
        "gann-dense": [0.93],
        "ann": [0.51],
        "ann-wd": [0.5101 if metric == "mae" else 0.93],
        "gann-sparse": [math.nan],
    }
    records = [scored(dataset, method, given, metric) for method, given in values.items()]
    cells = row(
        table(records, "Table 2, " + ("regression. " if metric == "mae" else "classification. ")),
        dataset.title().replace("Digits", "Digits-MNIST"),
    )
    assert {name for name, cell in cells.items() if cell.bold} == {best, "ANN + WD"}
    assert cells["GaNN-sparse"].text == "diverged"


def test_diverged_seeds_are_left_out_and_counted():
    cells = row(table([scored("airfoil", "ann", [1.0, math.nan, 3.0])], "Table 2, regression. MAE"), "Airfoil")
    assert cells["ANN"].text == "2.000 ± 1.414"
    assert cells["ANN"].note.endswith("1 of 3 diverged")


def test_absent_cells_say_why():
    records = [*study(["airfoil", "digits"], history=False), record("wine_regression", "ann"), record("utkface", "ann")]
    found = table(records, "Table 2, regression. MAE", {"yacht": "put it there"})
    assert row(found, "Wine Regression")["GaNN-dense"].text == "not run"
    assert found.notes[-1] == "Not run: Yacht (data missing), YearPredictionMSD."
    beyond = table([record("digits", "ensemble")], "Beyond the paper, classification. Accuracy")
    assert beyond.notes[-1].endswith("GaNN-sparse, ANN, GaNN-sparse × 5, Gradient boosting (only for tables).")
    assert (
        row(table(records, "Beyond the paper, regression. MAE"), "UTKFace")["Gradient boosting"].text
        == "only for tables"
    )
    first = table(records, "Table 1", {"yacht": "put it there"})
    assert row(first, "Yacht")["Rows used here"].text == "data missing"
    assert row(first, "Fashion-MNIST")["Rows used here"].text == "not run"
    assert first.notes == ["Yacht: put it there"]


def test_fewer_training_rows_than_published_are_shown():
    records = [record(dataset, "ann", epochs=120) for dataset in ("tiny_imagenet", "digits")]
    found = table(records, "Table 2, classification. Accuracy")
    assert row(found, "Tiny ImageNet")["Dataset"].note == "20,000 of 100,000 training rows"
    assert row(found, "Digits-MNIST")["Dataset"].note == ""


def test_what_there_was_less_of_than_in_the_paper_is_said():
    short = [record("airfoil", "ann", epochs=40, seeds=2), record("airfoil", "gann-dense", epochs=3000)]
    note = row(table(short, "Table 2, regression. MAE"), "Airfoil")["Dataset"].note
    assert note == "40 to 3,000 of 3,000 epochs, 2 to 5 of 5 seeds"
    boosted = record("airfoil", "boosting")
    boosted = replace(boosted, job=replace(boosted.job, hidden=()))
    small = record("airfoil", "ann", "modern", epochs=200)
    small = replace(small, job=replace(small.job, hidden=(64, 32)))
    assert departures([boosted]) == []
    assert departures([boosted, small]) == ["layers of 64-32 units"]


def test_ganns_are_tested_against_the_ann():
    records = [
        scored("airfoil", "gann-sparse", OURS),
        scored("airfoil", "ann", THEIRS),
        scored("airfoil", "gann-dense", [2.0]),
    ]
    cells = row(table(records, "Table 2, regression, tested"), "Airfoil")
    p = stats.ttest_rel(OURS, THEIRS).pvalue
    assert cells["GaNN-sparse − ANN"].text == "−0.300"
    assert cells["GaNN-sparse − ANN"].note == f"p = {p:.3f}"
    assert cells["GaNN-sparse − ANN"].bold
    assert cells["GaNN-dense − ANN"].text == cells["GaNN-sparse + D − ANN"].text == "no test"
    swapped = [scored("airfoil", "gann-sparse", THEIRS), scored("airfoil", "ann", OURS)]
    assert not row(table(swapped, "Table 2, regression, tested"), "Airfoil")["GaNN-sparse − ANN"].bold


def test_synthetic_data_and_other_styles_stay_out():
    assert (
        len(all_tables([replace(record("airfoil", "ann"), synthetic=True), record("digits", "gann-sparse", "sweep")]))
        == 1
    )
    assert any("modern" in found.caption for found in all_tables([record("airfoil", "ann", "modern")]))


def test_of_two_records_that_with_more_seeds_counts():
    few, many = scored("airfoil", "ann", [1.0, 2.0]), scored("airfoil", "ann", OURS)
    for pair in ([few, many], [many, few]):
        results = Results.of(pair, "paper")
        assert results.score("airfoil", "ann", "mae").mean == pytest.approx(np.mean(OURS))
        assert results.aside == 1


def test_the_search_marks_what_comes_nearest_to_the_papers_plain_network():
    means = {32: [1.2, 1.3], 64: [2.6, 2.7], 128: [3.8, math.nan]}
    records = [scored("airfoil", "ann", given, style="search", batch_size=size) for size, given in means.items()]
    found = table(records, "What the paper does not state, regression")
    cells = row(found, "Airfoil")
    assert [name for name, cell in cells.items() if cell.bold] == ["standardised, 64"]
    assert cells["standardised, 128"].text == "3.800"
    assert cells["Recipe"].text == "standardised, 64"


def small():
    rows = [
        [Cell("a_b & 50%", note="of 5"), Cell("1.05 ± 0.04", sort=1.0523, bold=True, note="2.0\nΔ −3.1"), 3],
        ["x|y", Cell("not run", sort=math.nan, faint=True), None],
    ]
    return Table(["Dataset", "Score", Column("Rows")], rows, "T_1", ["Note π."])


def test_markdown_is_a_pipe_table():
    lines = markdown(small()).splitlines()
    assert lines[0] == "T_1"
    assert lines[2:5] == [
        "| Dataset | Score | Rows |",
        "| --- | ---: | ---: |",
        "| a_b & 50% (of 5) | **1.05 ± 0.04** (2.0, Δ −3.1) | 3 |",
    ]
    assert lines[5] == r"| x\|y | not run |  |"
    assert "Note π." in lines


def test_latex_escapes_and_balances():
    text = latex(small())
    assert r"a\_b \& 50\% & \textbf{1.05 $\pm$ 0.04} & 3 \\" in text
    assert r"\footnotesize 2.0, $\Delta$ $-$3.1" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {2}
    assert all(ord(letter) < 128 for letter in text)


def test_csv_has_numbers_at_full_precision():
    first, second = csv.DictReader(io.StringIO(comma_separated(small())))
    assert first == {
        "Dataset": "a_b & 50% (of 5)",
        "Score": "1.0523",
        "Score (printed)": "1.05 ± 0.04 (2.0, Δ −3.1)",
        "Rows": "3",
    }
    assert second == {"Dataset": "x|y", "Score": "", "Score (printed)": "not run", "Rows": ""}


def test_csv_loses_no_spread():
    cells = ["a", Cell("1.05 ± 0.04", sort=1.0523), Cell("1,503", sort=1503)]
    text = comma_separated(Table(["Name", "Score", "Rows"], [cells], "T"))
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"Name": "a", "Score": "1.0523", "Score (printed)": "1.05 ± 0.04", "Rows": "1503"}
    ]


def test_tables_stand_one_after_another():
    one = Table(["Name"], [["a"]], "First, of two")
    assert together([one, one], "csv") == '"First, of two"\nName\na\n\n"First, of two"\nName\na'
    assert together([one], "markdown") == markdown(one).strip()


def test_all_tables_can_be_written_in_all_formats():
    tables = all_tables(
        study(["airfoil", "tiny_imagenet"], styles=("paper", "modern"), history=False), {"yacht": "a_b"}
    )
    assert len(tables) == 1 + 2 * (4 + 6 + 4)
    for found in tables:
        for write in FORMATS.values():
            assert write(found)
        assert all(ord(letter) < 128 for letter in latex(found)), found.caption
    assert render(Page("T", "L", [], [Section("S", tables, "s")])).count("<table") == len(tables)
