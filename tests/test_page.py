import json
import math
from html.parser import HTMLParser

import pytest
from browsing import column, opened, widths

from ganns.page import Cell, Chart, Code, Column, Fact, Page, Section, Table, Text, render, save
from ganns.page.charts import altair, choice, faded, legend, payload

NASTY = "</script><img src=x onerror=alert(1)> & \u2028 \"'"
ROWS = [{"x": float(x), "y": x * x / 4, "kind": kind, "bad": math.nan} for kind in ("a", "b") for x in range(5)]


def chart(rows=ROWS, **options):
    alt = altair()
    picked, shown = legend("kind"), choice("kind_shown", "Kind", ["a", "b"])
    lines = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(alt.datum.kind == shown)
        .mark_line(point=True)
        .encode(x="x:Q", y="y:Q", color="kind:N", opacity=faded(picked))
        .add_params(picked, shown)
    )
    return Chart(lines, "It rises.", "Line chart that rises.", rows, "make it", **options)


def facets():
    alt = altair()
    points = alt.Chart(alt.NamedData("rows")).mark_point().encode(x="x:Q", y="y:Q")
    return Chart(points.facet("kind:N", columns=2), "Two.", "Two panels.", ROWS, "make them")


def numbers():
    rows = [
        [Cell("row b", title=NASTY), 10, Cell("2 ± 1", sort=2.0, bold=True, note="of 5")],
        ["row a", 9.5, Cell("none", sort=math.nan, faint=True)],
        ["row c", -3, Cell("11", sort=11.0)],
        ["row d", None, Cell("1", sort=1.0)],
    ]
    return Table(["Name", "Count", Column("Score", hint="a hint")], rows, "Numbers", ["A note."])


def page(*blocks, figure=None, **options):
    facts = [Fact("rows", "7", "a note"), Fact(NASTY, NASTY, NASTY)]
    return Page(
        f"Title {NASTY}", "Lead", facts, [Section("First", blocks, "one")], [f"Foot {NASTY}"], figure, **options
    )


class Elements(HTMLParser):
    """What a browser would see: elements with their attributes, and texts outside of scripts."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open, self.texts, self.scripts = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        self.open.append(f"/{tag}")

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.texts).append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_everything_from_data_is_text():
    spec = {"mark": "point", "data": {"name": "rows"}, "title": NASTY}
    nasty = Chart(spec, NASTY, NASTY, [{NASTY: NASTY}], NASTY, title=NASTY)
    table = Table([NASTY, "b"], [[NASTY, Cell(NASTY, sort=NASTY, note=NASTY, title=NASTY)]], NASTY, [NASTY])
    seen = Elements(render(page(Text([NASTY]), Code(NASTY, NASTY), table, nasty)))
    assert not seen.of("img")
    assert len(seen.of("script")) == 3  # the chart's data, the library, and the page's own
    assert sum(NASTY in text for text in seen.texts) >= 13
    assert seen.of("td")[0]["data-sort"] == NASTY
    data = json.loads(next(script for script in seen.scripts if script.startswith("{")))
    assert data["spec"]["title"] == data["columns"][0] == data["rows"][0][0] == NASTY


def test_a_page_names_no_other_place():
    html = render(page(numbers(), Text(["So."])))
    assert "://" not in html
    assert "url(" not in html


def test_the_library_comes_once_and_only_for_charts():
    without, one, two = (len(render(page(*blocks))) for blocks in ([], [chart()], [chart(), chart()]))
    assert without < 40_000
    assert 500_000 < one < 1_500_000
    assert two - one < 5_000


def test_tables_have_scopes_and_buttons():
    seen = Elements(render(page(numbers())))
    assert [cell["scope"] for cell in seen.of("th")] == ["col"] * 3 + ["row"] * 4
    assert "caption" in dict(seen.found)
    assert len(seen.of("button")) == 1 + 3
    assert {"#content", "#one"} <= {link["href"] for link in seen.of("a")}


def test_numbers_are_rounded_and_gaps_are_null():
    data = json.loads(payload(chart([{"x": 1 / 3, "y": math.inf, "kind": "a"}, {"x": 2, "kind": "b"}])))
    assert data["columns"] == ["x", "y", "kind"]
    assert data["rows"] == [[0.33333, None, "a"], [2, None, "b"]]


@pytest.mark.parametrize("anchor", ["", "two words", "7", "content", "one"])
def test_anchors_must_be_usable(anchor):
    sections = [Section("A", [], "one"), Section("B", [], anchor)]
    with pytest.raises(ValueError, match="anchor="):
        render(Page("T", "L", [], sections))


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="table 'T': a row has 1 cells for 2 columns"):
        render(page(Table(["a", "b"], [["x"]], "T")))


def test_saving_replaces_the_file_or_leaves_it(tmp_path):
    path = save(page(), tmp_path / "new" / "page.html")
    before = path.read_text()
    with pytest.raises(ValueError, match="a row has"):
        save(page(Table(["a", "b"], [["x"]], "T")), path)
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    words = Table([Column("Said", numeric=False), Column("Done", numeric=False)], [["a " * 40, "b"]], "Words")
    blocks = [Text(["Text."]), numbers(), words, facets(), Code("ganns " * 60)]
    return save(page(*blocks, figure=chart()), tmp_path_factory.mktemp("page") / "page.html")


def test_charts_are_drawn_without_any_request(path):
    with opened(path) as seen:
        assert seen.requests == [path.as_uri()]
        assert seen.complaints == []
        assert seen.locator("figure.chart svg").count() == 2
        assert seen.locator("#first svg path[aria-roledescription='line mark']").count() == 1
        for box in (figure.bounding_box() for figure in seen.locator("figure.chart svg").all()):
            assert box["width"] <= 1088
            assert box["width"] > 900
            assert box["height"] > 100
        plot = seen.locator("#first [role=img]")
        assert plot.get_attribute("aria-label") == "Line chart that rises."
        assert seen.locator("#first .controls select").count() == 1


def test_the_list_above_a_chart_changes_it(path):
    line = "#first path[aria-roledescription='line mark'][aria-label$='kind: {}']"
    label = "document.querySelector('#first svg text')?.getAttribute('fill')"
    with opened(path) as seen:
        assert seen.locator(line.format("a")).count() == 1
        seen.locator("#first select").select_option("b")
        seen.wait_for_selector(line.format("b"), state="attached")
        assert seen.locator(line.format("a")).count() == 0
        before = seen.evaluate(label)
        seen.locator("#theme").click()
        seen.wait_for_function(f"{label} !== {before!r}")
        seen.wait_for_selector(line.format("b"), state="attached")
        assert seen.locator("#first select").input_value() == "b"


def test_headings_sort_by_click_and_by_keyboard(path):
    with opened(path) as seen:
        heading = seen.locator("#one-2-caption ~ thead th").nth(2)
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == "ascending"
        assert column(seen, "#one table:not(.words)", 1) == ["row d", "row b", "row c", "row a"]
        seen.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == "descending"
        assert column(seen, "#one table:not(.words)", 1) == ["row c", "row b", "row d", "row a"]
        seen.keyboard.press("Shift+Tab")
        seen.keyboard.press("Space")
        assert heading.get_attribute("aria-sort") is None
        assert column(seen, "#one table:not(.words)", 1) == ["row c", "row a", "row b", "row d"]


def test_the_first_tab_skips_to_the_content(path):
    with opened(path) as seen:
        seen.keyboard.press("Tab")
        assert seen.evaluate("document.activeElement.className") == "skip"
        seen.keyboard.press("Enter")
        assert seen.evaluate("document.activeElement.id") == "content"


def test_data_open_as_a_table_with_their_command(path):
    with opened(path) as seen:
        seen.locator("#first summary").press("Enter")
        seen.wait_for_selector("#first .data tbody tr")
        assert seen.locator("#first .data tbody tr").count() == len(ROWS)
        assert seen.locator("#first .data tbody tr").nth(3).all_inner_texts() == ["3\t2.25\ta\t–"]
        assert seen.locator("#first details code").inner_text() == "make it"


def test_colours_follow_the_system_and_the_button(path):
    ground = "getComputedStyle(document.body).backgroundColor"
    label = "document.querySelector('#first svg text').getAttribute('fill')"
    with opened(path) as seen:
        light = seen.evaluate(ground), seen.evaluate(label)
    with opened(path, color_scheme="dark") as seen:
        dark = seen.evaluate(ground), seen.evaluate(label)
        assert dark[0] != light[0]
        assert dark[1] != light[1]
        button = seen.get_by_role("button", name="Dark colours")
        assert button.get_attribute("aria-pressed") == "true"
        button.click()
        seen.wait_for_function(f"{label} === {light[1]!r}")
        assert seen.evaluate(ground) == light[0]
        assert button.get_attribute("aria-pressed") == "false"
        seen.emulate_media(color_scheme="light")
        assert seen.evaluate(ground) == light[0]


def test_a_phone_need_not_scroll_sideways(path):
    with opened(path, viewport={"width": 360, "height": 740}) as seen:
        assert widths(seen) == [360, 360]
        assert all(figure.bounding_box()["width"] <= 320 for figure in seen.locator("figure.chart svg").all())
        assert seen.locator("table.words td").first.bounding_box()["width"] > 250
        seen.set_viewport_size({"width": 1000, "height": 740})
        seen.wait_for_function("document.querySelector('#first svg').getBoundingClientRect().width > 800")
