"""Whatever a file holds, there is a table or a sentence: a traceback is a failure."""

import contextlib
import datetime as dt
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing.parametric import column, dataframes, series

from ganns.cli import explain, main
from ganns.table.columns import encode, oddities
from ganns.table.preparing import Prepared, prepare
from ganns.table.reading import read

ROWS = 40
NASTY = (b"\0", b"\xff\xfe", b"\xe4", b'"', b"\n", b"\r", b",", b";", b"\t", b"inf", b"-1e308", b"nan", b"1e999", b"y")
UNWORRIED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example]


def good() -> pl.DataFrame:
    """A table with a column of each kind, and a target."""
    random = np.random.default_rng(0)
    x = random.normal(size=ROWS).round(3)
    return pl.DataFrame(
        {
            "x": x,
            "gaps": [None if number % 7 == 0 else number for number in range(ROWS)],
            "word": pl.Series(["red", "blue"] * (ROWS // 2), dtype=pl.Categorical),
            "flag": [True, False] * (ROWS // 2),
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=number) for number in range(ROWS)],
            "time": [dt.datetime(2024, 1, 1, number % 24) for number in range(ROWS)],
            "y": (2 * x + random.normal(size=ROWS)).round(3),
        }
    )


def written(frame: pl.DataFrame, suffix: str) -> bytes:
    """A file's content; Parquet as it is, for compressed pages mostly break alike."""
    file = io.BytesIO()
    if suffix == "csv":
        frame.write_csv(file)
    else:
        frame.write_parquet(file, compression="uncompressed", row_group_size=16)
    return file.getvalue()


WHOLE = {suffix: written(good(), suffix) for suffix in ("csv", "parquet")}


@st.composite
def mutated(draw: Callable, suffix: str) -> bytes:
    """The good table, with a few things wrong with its file."""
    content = WHOLE[suffix]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        stop = start + draw(st.integers(0, 30))
        content = draw(
            st.sampled_from(
                [
                    content[:start],
                    content[:start] + content[stop:],
                    content[:stop] + content[start:],
                    content[:start] + draw(st.sampled_from(NASTY)) + content[start:],
                    content[:start] + draw(st.binary(min_size=1, max_size=4)) + content[stop:],
                    content[:start]
                    + bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in content[start : start + 1])
                    + content[start + 1 :],
                    content.replace(b",", draw(st.sampled_from([b";", b"\t", b"|", b",,"]))),
                    content.decode("latin-1").encode("utf-16"),
                ]
            )
        )
    return content


KINDS = [pl.Int64, pl.UInt8, pl.Float32, pl.Float64, pl.Decimal, pl.String, pl.Categorical, pl.Boolean, pl.Null]
KINDS += [pl.Date, pl.Datetime("us"), pl.Datetime("ns", "UTC"), pl.Time, pl.Duration]
CELLS = ["1", "2.5", "-1e308", "1e999", "inf", "9" * 400, "٣", "", "NA", "a", "b", "TRUE", "2024-02-30", "31.12.99"]
size = {"min_size": ROWS, "max_size": ROWS}
texts = [column(name, dtype=pl.String, strategy=st.sampled_from(CELLS)) for name in ("col0", "col1")]
numbers = st.just(pl.Series("y", range(ROWS))) | series(name="y", dtype=pl.Float64, allow_null=False, **size)
frames = st.builds(
    lambda frame, y: frame.with_columns(y),
    dataframes(min_cols=1, max_cols=4, allowed_dtypes=KINDS, **size) | dataframes(texts, **size),
    numbers,
)


def prepared_or_sentence(path: Path) -> Prepared | None:
    """What the file holds, complete; or None where it is refused as people should be told."""
    try:
        found = prepare(read(path), "y")
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        assert sentence.endswith((".", "?")), sentence
        assert "\n" not in sentence
        return None
    names = [name for each in found.columns for name in each.features()]
    assert found.x.shape == (found.frame.height, len(names))
    assert np.isfinite(found.x).all()
    assert len(found.y) == found.frame.height
    return found


@pytest.mark.parametrize("suffix", WHOLE)
@settings(max_examples=150, suppress_health_check=UNWORRIED)
@given(data=st.data())
def test_a_mutated_file_is_a_table_or_a_sentence(tmp_path: Path, suffix: str, data):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(data.draw(mutated(suffix)))
    prepared_or_sentence(path)


@settings(suppress_health_check=UNWORRIED)
@given(frame=frames, other=frames)
def test_a_random_table_is_a_table_or_a_sentence(tmp_path: Path, frame: pl.DataFrame, other: pl.DataFrame):
    frame.write_parquet(tmp_path / "t.parquet")
    other.write_parquet(tmp_path / "other.parquet")
    if found := prepared_or_sentence(tmp_path / "t.parquet"):
        new = read(tmp_path / "other.parquet")
        columns = [each for each in found.columns if each.name in new.columns]
        if columns:
            assert np.isfinite(encode(columns, new)).all()
            assert len(oddities(columns, new)) == ROWS


def run(*arguments: str) -> tuple[int, str]:
    """The exit code of the command, and what it says on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(arguments)
    return code, " ".join(said.getvalue().split())


def fit(data: Path, out: Path) -> tuple[int, str]:
    """A model of one network after one epoch."""
    return run("fit", str(data), "--target", "y", "--out", str(out), "--epochs", "1", "--members", "1")


def check(code: int, said: str, made: list[Path], folder: Path, before: set[str]) -> None:
    """All was written, or nothing and one sentence said."""
    if code == 0:
        assert {path.name for path in folder.iterdir()} == before | {path.name for path in made}
    else:
        assert code == 2
        assert re.search(r"ganns: [^.].*[.?]$", said)
        assert "Traceback" not in said
        assert {path.name for path in folder.iterdir()} == before
    for path in made:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "good.csv").write_bytes(WHOLE["csv"])
    code, said = fit(folder / "good.csv", folder / "model")
    assert code == 0, said
    return folder / "model"


@pytest.mark.parametrize("suffix", WHOLE)
@settings(max_examples=25, suppress_health_check=UNWORRIED)
@given(data=st.data())
def test_predict_writes_all_or_says_why_not(tmp_path: Path, model: Path, suffix: str, data):
    path, out = tmp_path / f"t.{suffix}", tmp_path / "predicted.csv"
    path.write_bytes(data.draw(mutated(suffix)))
    code, said = run("predict", str(model), str(path), "--out", str(out))
    check(code, said, [out], tmp_path, {path.name})


@settings(max_examples=12, suppress_health_check=UNWORRIED)
@given(frame=frames)
def test_fit_writes_all_or_says_why_not(tmp_path: Path, frame: pl.DataFrame):
    path, out = tmp_path / "t.parquet", tmp_path / "model"
    frame.write_parquet(path)
    code, said = fit(path, out)
    check(code, said, [out, tmp_path / "model.html"], tmp_path, {path.name})
