"""Files to frames."""

import csv
import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ganns.table.reading import batches, read

cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)
tables = st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=tables,
    separator=st.sampled_from(",\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    start=st.sampled_from(["", "\ufeff"]),
)
def test_every_cell_comes_back_as_it_was_written(tmp_path: Path, rows, separator, end, start):
    names = [f"c{number}" for number in range(len(rows[0]))]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        file.write(start)
        csv.writer(file, delimiter=separator, lineterminator=end).writerows([names, *rows])
    frame = read(tmp_path / "t.csv", separator)
    assert frame.columns == names
    assert frame.rows() == [tuple(row) for row in rows]


def test_a_file_reads_as_pandas_reads_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('a,"b, c", d\n1,"two\r\nlines",\n\n "x" ,"say ""no""",ä\n'.encode())
    expected = pd.read_csv(path, dtype=str, keep_default_na=False).rename(columns=str.strip)
    assert read(path).to_dicts() == expected.to_dict("records")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_pieces_are_bounded_and_make_the_whole(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    whole = pl.DataFrame({"a": range(10), "b": [f"word {number}" for number in range(10)]})
    if suffix == "parquet":
        whole.write_parquet(path, row_group_size=4)
    else:
        whole.write_csv(path, separator={"csv": ",", "tsv": "\t"}[suffix])
    pieces = list(batches(path, rows=3))
    assert max(piece.height for piece in pieces) == 3
    assert pl.concat(pieces).cast({"a": pl.Int64}).equals(whole)
    assert read(path).cast({"a": pl.Int64}).equals(whole)


def test_a_piece_is_there_before_the_rest_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n5\n")
    pieces = batches(path, rows=2)
    assert next(pieces).rows() == [("1", "2"), ("3", "4")]
    with pytest.raises(ValueError, match=r"line 4 has 1 value for 2 columns"):
        next(pieces)


def test_a_column_alone_may_have_gaps(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n\n2\n")
    assert read(tmp_path / "t.csv")["a"].to_list() == ["1", "", "2"]


def test_semicolons_go_with_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;x,y\n-20,25 ;1,2,3\n1,5e3;2.5\n")
    assert read(tmp_path / "t.csv", ";").rows() == [("1.5", "x,y"), ("-20.25 ", "1,2,3"), ("1.5e3", "2.5")]
    (tmp_path / "t.tsv").write_text("a\tb\n1,500\t2\n")
    assert read(tmp_path / "t.tsv").rows() == [("1,500", "2")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty; give a table with a header and rows"),
        (b"\xef\xbb\xbf\n\r\n", "is empty; give a table with a header and rows"),
        (b"  \n1\n", "is empty; give a table with a header and rows"),
        (b"a,b\n", "has a header but no rows"),
        (b"a;b\n1;2\n", "seems to be separated by a semicolon: .* 'a;b'; give --separator ';'"),
        (b"a\tb\n1\t2\n", "seems to be separated by a tab"),
        (b"a|b\n1|2\n", "seems to be separated by a bar"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 value for 2 columns; correct that line"),
        (b"a,b\n1,2,3\n", "line 2 has 3 values for 2 columns"),
        (b"a\n1,2\n", "line 2 has 2 values for 1 column;"),
        (b"a,b, a ,b\n1,2,3,4\n", "has more than one column 'a', 'b'; give each its own name"),
        (b'a,b\n1,"2\n3,4\n', "line 3: .* look for a quotation mark that is not closed"),
        (b'a,b\n"1"2,3\n', "line 2: .* look for a quotation mark that is not closed"),
        ("a,ä\n".encode("latin-1"), r"is not UTF-8 text \(byte 0xe4\); save it with that encoding"),
        ("a,b\n1,2\n".encode("utf-16"), r"is not UTF-8 text \(byte 0xff\)"),
        (b"a,b\n1,2\n3,\0\n", "line 3 holds a zero byte"),
    ],
)
def test_a_broken_text_file_is_refused_in_a_sentence(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.csv.* ?{sentence}"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("separator", ["", ";;", "tab"])
def test_a_separator_is_one_character(tmp_path, separator):
    with pytest.raises(ValueError, match=f"separator={separator!r}: give one character"):
        batches(tmp_path / "t.csv", separator)


def test_missing_files_and_other_kinds_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError):
        batches(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.xlsx is of no known kind; give a \.csv"):
        batches(tmp_path / "t.xlsx")


def test_parquet_keeps_its_types(tmp_path):
    table = pa.table(
        {
            "category": pa.array(["a", "b"]).dictionary_encode(),
            "decimal": [Decimal("1.50"), None],
            "length": pa.array([1, 2], pa.duration("s")),
            "there": pa.array([0, None], pa.timestamp("ns", "Europe/Vienna")),
            "half": pa.array(np.array([0.5, 1], np.float16)),
            "none": pa.nulls(2),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    frame = pl.concat(list(batches(tmp_path / "t.parquet", rows=1)))
    assert frame["there"].dtype == pl.Datetime("ns", "Europe/Vienna")
    assert frame.drop("there").rows() == [
        ("a", Decimal("1.50"), dt.timedelta(seconds=1), 0.5, None),
        ("b", None, dt.timedelta(seconds=2), 1.0, None),
    ]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([b"x"]), "binary"),
        (pa.array([b"x"]).dictionary_encode(), "binary"),
        (pa.array([[1]]), "list<element: int64>"),
        (pa.array([{"a": 1}]), "struct<a: int64>"),
        (pa.array([1], pa.decimal256(50)), "decimal256(50, 0)"),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))), "extension<arrow.uuid>"),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_columns_that_cannot_be_features_are_refused_by_name(tmp_path, column, kind):
    parquet.write_table(pa.table({"y": [1], "thing": column}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=rf"column 'thing' holds {re.escape(kind)}; give numbers, text"):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    "dates",
    [pa.array([2**31 - 1, 0], pa.date32()), *(pa.array([2**62, 0], pa.timestamp(unit)) for unit in ("ms", "us"))],
    ids=lambda dates: str(dates.type),
)
def test_dates_beyond_the_year_9999_are_gaps(tmp_path, dates):
    parquet.write_table(pa.table({"day": dates}), tmp_path / "t.parquet", store_schema=False)
    assert read(tmp_path / "t.parquet")["day"].is_null().to_list() == [True, False]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (pa.table({}), "is empty"),
        (pa.table({"a": pa.array([], pa.int64()), "d": pa.array([], pa.date32())}), "has a header but no rows"),
        (pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "has more than one column 'a'"),
        (pa.table({"a": pa.array([0], pa.timestamp("s", "Mars/Base"))}), "unable to parse time zone"),
    ],
    ids=["nothing", "no rows", "twice", "zone"],
)
def test_parquet_without_a_table_is_refused(tmp_path, table, sentence):
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=sentence):
        read(tmp_path / "t.parquet")


def test_broken_parquet_is_refused_before_polars_aborts(tmp_path):
    path = tmp_path / "t.parquet"
    names = pa.array(["name of some length", "another name"]).dictionary_encode()
    parquet.write_table(pa.table({"a": names}), path, compression="none", use_dictionary=False, write_statistics=False)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"ARROW:schema", b"\xffRROW:schema"))
    assert read(path)["a"].to_list() == ["name of some length", "another name"]
    parquet.write_table(pa.table({"heading": [1]}), path, store_schema=False)
    heading = path.read_bytes().replace(b"heading", b"h\xffading")
    for broken in (whole.replace(b"some", b"s\xffme"), heading, whole[:-1], whole[:100], b"PAR1", b"a,b\n1,2\n"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"t\.parquet is not a whole Parquet file \(.*\); write it again"):
            read(path)
