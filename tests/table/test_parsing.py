"""Text, numbers and dates, whatever type a file gives them."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganns.table.parsing import as_dates, as_numbers, as_text, date_format

EPOCH = dt.datetime(1970, 1, 1)
MOMENT = dt.datetime(2024, 7, 23, 18, 5, 59, 123456)
moments = st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31))


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, 20, None]),
        pl.Series([1.0, 20.0, None], dtype=pl.Float32),
        pl.Series([1.0, 20.0, float("nan")]),
        pl.Series([Decimal("1.00"), Decimal("20.00"), None]),
        pl.Series([dt.timedelta(seconds=1), dt.timedelta(seconds=20), None]),
        pl.Series([" 1", "20 ", ""]),
        pl.Series(["1", "20", "NA"], dtype=pl.Categorical),
    ],
    ids=lambda values: str(values.dtype),
)
def test_a_value_has_the_same_text_in_every_type(values):
    assert as_text(values).to_list() == ["1", "20", None]
    assert as_numbers(values).to_list() == [1.0, 20.0, None]


@pytest.mark.parametrize("gap", ["", "  ", "NA", "n/a", "NaN", "Null", "NONE", "nil", "missing", "?", "-"])
def test_gaps_have_many_spellings(gap):
    for read in (as_text, as_numbers, lambda values: as_dates(values, "%Y-%m-%d")):
        assert read(pl.Series([gap])).to_list() == [None]


@given(st.floats(allow_nan=False), st.sampled_from(["{!r}", "{:+.17g}", "{:.17e}", " {!r}\t"]))
def test_numbers_are_read_as_python_reads_them(value, style):
    text = style.format(value)
    assert as_numbers(pl.Series([text])).to_list() == [float(text)]


def test_dates_are_days_and_times_of_day_are_seconds():
    assert as_numbers(pl.Series([MOMENT])).to_list() == pytest.approx([(MOMENT - EPOCH) / dt.timedelta(days=1)])
    assert as_numbers(pl.Series([MOMENT.date()])).to_list() == [(MOMENT.date() - EPOCH.date()).days]
    assert as_numbers(pl.Series([dt.time(1, 2, 3, 500_000)])).to_list() == pytest.approx([3723.5])
    for unit in ("ms", "us", "ns"):
        assert as_numbers(pl.Series([dt.timedelta(minutes=1)], dtype=pl.Duration(unit))).to_list() == pytest.approx(
            [60]
        )


@pytest.mark.parametrize(
    "format",
    [
        *("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"),
        *("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%SZ"),
        *("%Y/%m/%d", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%m/%d/%Y %H:%M"),
    ],
)
@given(moment=moments)
def test_dates_are_read_as_python_reads_them(format, moment):
    text = moment.strftime(format)
    assert as_dates(pl.Series([text]), None).to_list() == [dt.datetime.strptime(text, format)]


@given(moment=moments, minutes=st.integers(-14 * 60, 14 * 60), between=st.sampled_from(" T"))
def test_times_with_a_zone_are_told_in_utc(moment, minutes, between):
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    text = moment.replace(tzinfo=zone).isoformat(between)
    earlier = moment - dt.timedelta(minutes=minutes)
    if earlier.year >= 1000:
        assert as_dates(pl.Series([text]), None).to_list() == [earlier]
    typed = pl.Series([moment]).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Kolkata")
    assert as_dates(typed, None).to_list() == [moment]


def test_the_day_comes_first_where_a_month_cannot():
    assert date_format(pl.Series(["01/02/2024", "13/02/2024"]), 0.9) == "%d/%m/%Y"
    assert date_format(pl.Series(["01/02/2024", "11/02/2024"]), 0.9) == "%m/%d/%Y"


def test_a_long_log_is_not_judged_by_its_first_day():
    log = [f"{day:02}/02/2024 {minute // 60:02}:{minute % 60:02}" for day in (1, 13) for minute in range(1440)]
    assert date_format(pl.Series(log), 0.95) == "%d/%m/%Y %H:%M"


def test_two_digits_are_a_year_of_our_time():
    dates = as_dates(pl.Series(["24.12.24", "01.01.99"]), None)
    assert dates.to_list() == [dt.datetime(2024, 12, 24), dt.datetime(1999, 1, 1)]


def test_what_is_mostly_no_date_has_no_format():
    mixed = pl.Series(["2024-01-01"] * 9 + ["soon"])
    assert date_format(mixed, 0.9) == "%Y-%m-%d"
    assert date_format(mixed, 0.95) is None
    assert date_format(pl.Series([], dtype=pl.String), 0.0) is None
    assert as_dates(pl.Series(["soon", None]), None).to_list() == [None, None]
