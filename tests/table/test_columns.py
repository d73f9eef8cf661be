"""What columns hold, how it becomes numbers, and what is odd about values."""

import datetime as dt
import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganns.table.columns import Category, Date, LeftOut, Number, encode, from_json, learn, oddities, to_json
from ganns.table.reading import read

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=number) for number in range(40)]
NUMBER = learn(pl.Series("size", ["2", "4", "3"]))
DATE = learn(pl.Series("day", DAYS))
CATEGORY = learn(pl.Series("colour", ["red", "blue", "red", "blue", "green"]))
WITH_GAPS = [
    learn(pl.Series("size", ["2", None, "3"])),
    learn(pl.Series("day", [*DAYS, None])),
    learn(pl.Series("colour", ["red", "blue", None])),
]

cells = st.one_of(
    st.none(),
    st.floats().map(str),
    st.dates().map(str),
    st.text(max_size=5),
    st.sampled_from(["red", "blue", "2", "inf", "9999-12-31", "?"]),
)
typed = st.one_of(
    st.lists(st.none()).map(lambda values: pl.Series(values, dtype=pl.Null)),
    st.lists(st.floats() | st.none()).map(lambda values: pl.Series(values, dtype=pl.Float64)),
    st.lists(st.booleans() | st.none()).map(lambda values: pl.Series(values, dtype=pl.Boolean)),
    st.lists(st.dates() | st.none()).map(lambda values: pl.Series(values, dtype=pl.Date)),
    st.lists(st.times() | st.none()).map(lambda values: pl.Series(values, dtype=pl.Time)),
    st.lists(st.timedeltas() | st.none()).map(lambda values: pl.Series(values, dtype=pl.Duration)),
    st.lists(cells).map(lambda values: pl.Series(values, dtype=pl.String)),
)


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        (["1", "2.5", "-3e2"], "numbers, -300 to 2.5"),
        ([1, None, 7], "numbers, 1 to 7"),
        (["1"] * 50 + ["2"] * 49 + ["many"], "numbers, 1 to 2"),
        (["1"] * 9 + ["many"], "2 categories: 1, many"),
        (DAYS, "dates, 2024-01-01 to 2024-02-09"),
        (["24.12.2024", "25.12.2024"], "dates, 2024-12-24 to 2024-12-25"),
        (["2024-12-24 18:00", "2024-12-24 20:30"], "times, 2024-12-24 to 2024-12-24"),
        ([dt.time(1), dt.time(2)], "numbers, 3600 to 7200"),
        ([dt.timedelta(minutes=1), dt.timedelta(minutes=2)], "numbers, 60 to 120"),
        ([True, False, True], "2 categories: true, false"),
        (["TRUE", "false", "True"], "2 categories: true, false"),
        (["no", None, "no"], "1 category: no"),
        (list("aaaabbbccde"), "5 categories: a, b, c, d …"),
    ],
)
def test_a_column_says_what_it_holds(values, holds):
    assert learn(pl.Series("c", values)).describe() == holds


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("c", ["", "NA", None], "all gaps"),
        ("c", [3, 3, 3], "always '3'"),
        ("c", ["1", "1.0", "1e0"], "always 1"),
        ("c", DAYS[:1] * 3, "always '2024-01-01'"),
        ("c", [f"row {number}" for number in range(30)], "text of which nearly every row has its own"),
        ("", [1, 2, 3], "without a name, like the row numbers of data frames"),
        ("__index_level_0__", [1, 2, 3], "without a name, like the row numbers of data frames"),
    ],
)
def test_a_column_of_no_use_is_left_out_with_a_reason(name, values, reason):
    assert learn(pl.Series(name, values)) == LeftOut(name, reason)


@pytest.mark.parametrize("values", [[1.0, 2.0, math.inf], ["1", "2", "-inf"], ["1", "2", "1e999"]])
def test_an_infinite_value_is_named_with_its_row(values):
    with pytest.raises(ValueError, match="column 'c' holds an infinite value in row 3; correct or remove it"):
        learn(pl.Series("c", values))


@pytest.mark.parametrize("values", [[1e308, -1e308], [0.0, 1e151]])
def test_numbers_too_large_to_square_are_refused(values):
    with pytest.raises(ValueError, match=r"column 'c' spans .* too much for arithmetic"):
        learn(pl.Series("c", values))


@given(st.lists(st.floats(-1e100, 1e100) | st.none(), min_size=1))
def test_numbers_go_ten_ranges_beyond_those_seen_and_no_further(values):
    filled = np.array([3.0 if value is None else value for value in values])
    found = NUMBER.encode(pl.Series("size", values, dtype=pl.Float64))
    np.testing.assert_array_equal(found, np.clip(filled, 2 - 20, 4 + 20)[:, None])


def test_dates_are_days_and_places_on_circles():
    found = dict(zip(DATE.features(), DATE.encode(pl.Series("day", DAYS)).T, strict=True))
    assert found["day"].tolist() == [(day - dt.date(1970, 1, 1)).days for day in DAYS]
    angle = np.arctan2(found["day in the week, sine"], found["day in the week, cosine"])
    steps = np.diff(np.unwrap(angle))
    np.testing.assert_allclose(steps, 2 * np.pi / 7)
    year = np.arctan2(found["day in the year, sine"], found["day in the year, cosine"])
    np.testing.assert_allclose(np.diff(np.unwrap(year)), 2 * np.pi / 365.2425)


def test_times_know_the_hour():
    times = [dt.datetime(2024, 1, day, hour) for day in (1, 2, 3) for hour in (0, 6, 12, 18)]
    column = learn(pl.Series("t", times))
    found = dict(zip(column.features(), column.encode(pl.Series("t", times)).T, strict=True))
    np.testing.assert_allclose(found["t in the day, sine"], [0, 1, 0, -1] * 3, atol=1e-9)
    np.testing.assert_allclose(found["t in the day, cosine"], [1, 0, -1, 0] * 3, atol=1e-9)


@given(st.lists(st.sampled_from(["red", "blue", "green", "pink", None]), min_size=1))
def test_categories_are_one_hot(values):
    assert (CATEGORY.levels, CATEGORY.rare) == (("blue", "red"), ("green",))
    expected = [[value == "blue", value == "red"] for value in values]
    np.testing.assert_array_equal(CATEGORY.encode(pl.Series("colour", values, dtype=pl.String)), expected)


def test_only_frequent_categories_have_a_feature():
    counts = {f"level {number:02}": 40 - number for number in range(40)}
    column = learn(pl.Series("c", [name for name, count in counts.items() for _ in range(count)]))
    assert column.levels == tuple(counts)[:30]
    assert column.rare == tuple(counts)[30:]
    assert len(column.features()) == 30


@pytest.mark.parametrize("column", WITH_GAPS, ids=lambda column: column.kind)
def test_gaps_seen_in_training_are_a_feature_and_not_odd(column):
    values = pl.Series(column.name, [None, "2024-01-02", "2", "red"])
    read_as = {"size": [1, 1, 0, 1], "day": [1, 0, 1, 1], "colour": [1, 0, 0, 0]}[column.name]
    assert column.features()[-1] == f"{column.name} is a gap"
    assert column.encode(values)[:, -1].tolist() == read_as
    assert column.odd(values)[0] is None


def test_what_cannot_be_read_is_a_gap_in_training_too():
    values = pl.Series("size", ["1"] * 50 + ["2"] * 49 + ["many"])
    column = learn(values)
    assert column.encode(values)[-2:].tolist() == [[2.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (NUMBER, "2", None),
        (NUMBER, "4.9", None),
        (NUMBER, "5.1", "size 5.1 is far outside 2 to 4"),
        (NUMBER, "0.9", "size 0.9 is far outside 2 to 4"),
        (NUMBER, "inf", "size inf cannot be read"),
        (NUMBER, "big", "size big cannot be read"),
        (NUMBER, "NA", "size is a gap"),
        (DATE, "2024-01-02", None),
        (DATE, "2030-01-02", "day 2030-01-02 is far outside 2024-01-01 to 2024-02-09"),
        (DATE, "soon", "day soon cannot be read"),
        (DATE, "", "day is a gap"),
        (CATEGORY, " red ", None),
        (CATEGORY, "green", None),
        (CATEGORY, "pink", "colour pink is unknown"),
        (CATEGORY, "?", "colour is a gap"),
    ],
)
def test_odd_values_are_told_in_words(column, value, words):
    assert column.odd(pl.Series(column.name, [value])).to_list() == [words]


def test_a_row_tells_all_that_is_odd_about_it():
    frame = pl.DataFrame({"size": ["3", "99", "x"], "colour": ["red", "pink", "blue"]})
    assert oddities([NUMBER, CATEGORY], frame) == [
        "",
        "size 99 is far outside 2 to 4; colour pink is unknown",
        "size x cannot be read",
    ]


@given(typed, st.sampled_from([NUMBER, DATE, CATEGORY, *WITH_GAPS]))
def test_whatever_comes_the_features_are_finite(values, column):
    frame = pl.DataFrame({column.name: values})
    found = encode([column], frame)
    assert found.shape == (len(values), len(column.features()))
    assert np.isfinite(found).all()
    assert len(oddities([column], frame)) == len(values)


@pytest.mark.parametrize("column", [NUMBER, DATE, CATEGORY, *WITH_GAPS], ids=lambda column: column.kind)
def test_columns_come_back_from_json(column):
    assert from_json(json.loads(json.dumps(to_json(column)))) == column


def test_a_table_means_the_same_as_csv_and_as_parquet(tmp_path):
    count = len(DAYS)
    whole = pl.DataFrame(
        {
            "number": np.linspace(-1, 1, count),
            "whole": range(count),
            "flag": [True, False] * (count // 2),
            "word": ["a", "b", None, "c"] * (count // 4),
            "code": pl.Series([1.0, 2.0] * (count // 2)).cast(pl.Decimal(10, 2)),
            "day": DAYS,
            "time": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=number) for number in range(count)],
        }
    ).with_columns(pl.col("time").dt.replace_time_zone("Europe/Vienna").alias("there"))
    whole.write_parquet(tmp_path / "t.parquet")
    whole.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    typed_frame, text = read(tmp_path / "t.parquet"), read(tmp_path / "t.csv")
    for learned_from, other in ((typed_frame, text), (text, typed_frame)):
        columns = [learn(learned_from[name]) for name in whole.columns]
        assert [type(column) for column in columns] == [Number, Number, Category, Category, Number, Date, Date, Date]
        np.testing.assert_allclose(encode(columns, other), encode(columns, learned_from), rtol=1e-12, atol=1e-9)
        assert oddities(columns, other) == [""] * count
