"""The commands for people's own tables, as people type them."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import polars as pl
import pytest
import torch

from ganns.cli import main
from ganns.cli.showing import board
from ganns.table import model as model_module
from ganns.table.model import TableModel
from ganns.table.reading import batches

QUICK = ["--epochs", "3"]
FIT = ["fit", "flats.csv", "--target", "rent", "--ignore", "kind", *QUICK]


def flats(rows: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(0)
    area = random.uniform(20, 120, rows).round(1)
    return pl.DataFrame(
        {
            "area": area,
            "district": random.choice(["North", "South"], rows),
            "floor": [number % 5 if number % 7 else None for number in range(rows)],
            "kind": np.where(area > 60, "large", "small"),
            "rent": (8 * area + random.normal(0, 20, rows)).round(2),
        }
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with a model for rents and one for kinds."""
    folder = tmp_path_factory.mktemp("models")
    flats().write_csv(folder / "flats.csv")
    for target, other in (("rent", "kind"), ("kind", "rent")):
        command = ["fit", str(folder / "flats.csv"), "--target", target, "--ignore", other, *QUICK]
        assert main([*command, "--out", str(folder / target)]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, models) -> Path:
    """A folder with a table and both models."""
    for name in ("rent", "kind"):
        shutil.copytree(models / name, tmp_path / name)
    flats().write_csv(tmp_path / "flats.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """All that is in a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(command: list[str], sentence: str, capsys, here: Path) -> None:
    """Exit code 2, one sentence, no traceback, and the folder as it was."""
    before = contents(here)
    capsys.readouterr()
    assert main(command) == 2
    said = capsys.readouterr()
    words = " ".join(said.err.split())
    assert re.search(sentence, words), words
    assert "Traceback" not in said.err
    assert said.out == ""
    told = [line for line in said.err.splitlines() if line.startswith("ganns: ")]
    assert len(told) == 1 or "Usage:" in said.err  # of options the parser speaks
    assert contents(here) == before


def test_from_a_table_to_a_program(here, capsys):
    assert main(FIT) == 0
    said = capsys.readouterr()
    assert re.search(r"rent by regression from 3 columns, fitted to 48 rows\.", said.out)
    assert re.search(r"Mean absolute error +[\d.]+ +[\d.]+", said.out)
    assert re.search(r"90 % +[\d.]+ % ± [\d.]+ % +[\d.]+", said.out)
    assert said.out.split("What stands out")[-1].count("\n") > 10
    assert "Report  flats-rent.html" in said.out
    assert (here / "flats-rent.html").stat().st_size > 10_000

    flats(25).drop("rent").write_csv("new.csv")
    assert main(["predict", "flats-rent", "new.csv", "--out", "predicted.parquet"]) == 0
    assert "25 predictions in predicted.parquet" in capsys.readouterr().err
    predicted = pl.read_parquet("predicted.parquet")
    model = TableModel.load("flats-rent")
    expected = model.predict(pl.read_csv("new.csv", infer_schema=False))
    np.testing.assert_allclose(predicted["prediction"], expected["prediction"], rtol=1e-9)

    assert main(["export", "flats-rent", "--format", "onnx"]) == 0
    assert main(["export", "flats-rent", "--format", "torch", "--out", "programs/flats.pt2"]) == 0
    assert re.search(r"flats\.pt2 deviates by at most \d", capsys.readouterr().out)
    rows = model.features(pl.read_csv("new.csv", infer_schema=False)).astype(np.float32)
    (found,) = onnxruntime.InferenceSession("flats-rent.onnx").run(None, {"features": rows})
    np.testing.assert_allclose(found[:, 0], predicted["prediction"], rtol=1e-4)
    traced = torch.export.load(here / "programs/flats.pt2").module()(torch.from_numpy(rows))
    np.testing.assert_allclose(traced.detach()[:, 0], predicted["prediction"], rtol=1e-4)
    for description in ("flats-rent.json", "programs/flats.json"):
        assert len(json.loads(Path(description).read_text())["input"]) == rows.shape[1]

    assert main(["compare", "flats.csv", "--target", "rent", "--ignore", "kind", "--splits", "2", *QUICK]) == 0
    said = capsys.readouterr()
    assert re.search(r"sparse GaNN +[\d.,]+ ± [\d.,]+ +[\d.,]+ ± [\d.,]+ +[\d.,−]+ ± [\d.,]+ +\d+", said.out)
    assert re.search(r"gradient boosting +[\d.,−]+ ± [\d.,]+ +(< )?[\d.]+ +[\d.,−]+ ± [\d.,]+ +(< )?[\d.]+", said.out)
    assert re.search(r"(A GaNN is|Priors help|Whether a GaNN)", said.out)
    assert "so few splits can tell almost nothing" in said.out
    assert said.out.strip().endswith("Report  flats-rent-compared.html")
    page = (here / "flats-rent-compared.html").read_text()
    assert "ganns fit flats.csv --target rent --ignore kind" in page


def test_classes_go_the_same_way(here, capsys):
    assert main(["fit", "flats.csv", "--target", "kind", "--ignore", "rent", "--out", "flat", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "kind by classification" in said
    assert re.search(r"Accuracy +[\d.]+ +[\d.]+", said)
    assert "Can its confidence be trusted?" in said
    assert main(["predict", "flat", "flats.csv", "--out", "predicted.tsv"]) == 0
    assert pl.read_csv("predicted.tsv", separator="\t").columns[:4] == ["row", "prediction", "probability", "p(large)"]
    assert main(["export", "flat", "--format", "onnx", "--out", "flat.onnx"]) == 0
    assert json.loads((here / "flat.json").read_text())["classes"] == ["large", "small"]
    assert main(["compare", "flats.csv", "--target", "kind", "--splits", "2", *QUICK, "--out", "pages/kind.html"]) == 0
    said = capsys.readouterr().out
    assert "in 90 % intervals" not in said
    assert "Report  pages/kind.html" in said
    assert (here / "pages" / "kind.html").exists()


def test_predictions_go_to_the_standard_output(capsysbinary):
    assert main(["predict", "rent", "flats.csv"]) == 0
    said = capsysbinary.readouterr()
    found = pl.read_csv(said.out)
    assert found.height == 60
    assert found.columns == ["row", "prediction", "sd", "lower", "upper", "surprise", "notes"]
    assert b"60 predictions; " in said.err


def test_columns_are_matched_by_name_and_oddities_flagged(capsys):
    odd = flats(20).with_columns(
        district=pl.when(pl.int_range(20) == 3).then(pl.lit("Moon")).otherwise("district"),
        area=pl.when(pl.int_range(20) == 5).then(9999.0).otherwise("area"),
    )
    odd.select("kind", "floor", "district", "area").write_csv("odd.csv")
    flats(20).write_csv("usual.csv")
    for name in ("odd", "usual"):
        assert main(["predict", "rent", f"{name}.csv", "--out", f"{name}-found.parquet"]) == 0
    assert "and 2 have notes" in capsys.readouterr().err
    found, usual = pl.read_parquet("odd-found.parquet"), pl.read_parquet("usual-found.parquet")
    assert found["notes"][3] == "district Moon is unknown"
    assert found["notes"][5].startswith("area 9999.0 is far outside 2")
    assert found["surprise"][5] > 99
    kept = ~found["row"].is_in([4, 6])
    np.testing.assert_allclose(found.filter(kept)["prediction"], usual.filter(kept)["prediction"], rtol=1e-9)


def test_a_long_file_is_predicted_piece_by_piece(monkeypatch):
    assert main(["predict", "rent", "flats.csv", "--out", "whole.parquet"]) == 0
    heights = []

    def pieces(path, separator):
        for frame in batches(path, separator, rows=11):
            heights.append(frame.height)
            yield frame

    monkeypatch.setattr(model_module, "batches", pieces)
    for suffix in ("csv", "parquet"):
        assert main(["predict", "rent", "flats.csv", "--out", f"pieces.{suffix}"]) == 0
    assert heights == 2 * [11, 11, 11, 11, 11, 5]
    whole = pl.read_parquet("whole.parquet")
    for found in (pl.read_csv("pieces.csv"), pl.read_parquet("pieces.parquet")):
        assert found["row"].to_list() == list(range(1, 61))
        for name in ("prediction", "sd", "lower", "upper", "surprise"):
            np.testing.assert_allclose(found[name], whole[name], rtol=1e-6)


HEADER = "area,rent\n"
NUMBERS = "".join(f"{number},{number * number % 17}\n" for number in range(40))
TABLES = {
    "missing file": (None, r"there is no file or folder 'broken\.csv'\."),
    "empty file": ("", r"broken\.csv is empty; give a table"),
    "header only": (HEADER, "has a header but no rows"),
    "no such target": ("area,Rents\n" + NUMBERS, "no column 'rent': did you mean 'Rents'"),
    "target with gaps": (HEADER + NUMBERS + "3,\n", "target 'rent' has 1 gap, the first in row 41"),
    "text for a number": (HEADER + NUMBERS + "3,cheap\n", "holds 'cheap' in row 41, which is no number"),
    "one class only": (HEADER + "".join(f"{n},dear\n" for n in range(40)), "has one class only, 'dear'"),
    "one value only": (HEADER + "".join(f"{n},5\n" for n in range(40)), "'rent' is always 5"),
    "too few rows": (HEADER + "1,2\n3,4\n", "has 2 rows, and 30 are needed"),
    "too few of a class": (HEADER + "".join(f"{n},{'ab'[n == 7]}\n" for n in range(40)), "'b' has 1 row of 5 needed"),
    "all constant": (HEADER + "".join(f"7,{n}\n" for n in range(40)), "no column can tell anything about 'rent'"),
    "no other column": ("rent\n" + "".join(f"{n}\n" for n in range(40)), "no column can tell anything"),
    "infinite value": (HEADER + NUMBERS + "inf,3\n", "column 'area' holds an infinite value in row 41"),
    "infinite target": (HEADER + NUMBERS + "3,inf\n", "target 'rent' holds an infinite value in row 41"),
    "duplicated names": ("rent,rent\n" + NUMBERS, "more than one column 'rent'"),
    "broken encoding": ((HEADER + NUMBERS).encode() + b"\xff\xfe,1\n", r"is not UTF-8 text \(byte 0xff\)"),
    "ragged rows": (HEADER + NUMBERS + "1,2,3\n", "line 42 has 3 values for 2 columns"),
    "wrong separator": ((HEADER + NUMBERS).replace(",", ";"), "seems to be separated by a semicolon"),
    "open quotation": (HEADER + NUMBERS + '"1,2\n', "quotation mark that is not closed"),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_table_that_cannot_be_used(command, case, here, capsys):
    content, sentence = TABLES[case]
    if content is not None:
        (here / "broken.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused([command, "broken.csv", "--target", "rent", *QUICK], sentence, capsys, here)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["fit", "flats.csv", "--target", "kind", "--task", "regression"], "holds '(large|small)' in row 1, which is"),
        (["fit", "flats.csv", "--target", "rent", "--task", "ranking"], "task='ranking' is unknown; choose auto"),
        (["fit", "flats.csv", "--target", "rent", "--ignore", "flor"], "no column 'flor': did you mean 'floor'"),
        (["fit", "flats.csv", "--target", "rent", "--ignore", "rent"], "is the target and cannot be ignored"),
        (["fit", "flats.csv", "--target", "rent", "--variance", "large"], "variance='large'"),
        (["fit", "flats.csv"], "Missing option '--target'"),
        (["fit", "rent", "--target", "rent"], "rent is of no known kind"),
        (["fit", "flats.csv", "--target", "rent", "--out", "flats.csv"], r"flats\.csv exists and is not a model"),
        (["fit", "flats.csv", "--target", "rent", "--out", "flats.csv/model"], "is a file, so .* cannot be inside it"),
        (["fit", "flats.csv", "--target", "rent", "--separator", "ab"], "give one character"),
        (["compare", "flats.csv", "--target", "rent", "--splits", "1"], "Invalid value for '--splits'"),
        (["compare", "flats.csv", "--target", "rent", "--out", "flats.csv"], r"give it a name that ends in \.html"),
        (["compare", "flats.csv", "--target", "rent", "--out", "flats.csv/a.html"], "is a file, so"),
        (["predict", "nowhere", "flats.csv"], "nowhere does not exist; give the folder"),
        (["predict", "rent", "nowhere.csv"], r"there is no file or folder 'nowhere\.csv'"),
        (["predict", "rent", "flats.csv", "--out", "out.xlsx"], "is of no known kind"),
        (["predict", "rent", "flats.csv", "--out", "flats.csv"], "is the data itself"),
        (["predict", "rent", "flats.csv", "--out", "flats.csv/out.csv"], "is a file, so"),
        (["predict", "rent", "flats.csv", "--coverage", "1.5"], r"coverage=1\.5: give a share"),
        (["export", "nowhere", "--format", "onnx"], "nowhere does not exist"),
        (["export", "rent", "--format", "pickle"], "format='pickle' is unknown; choose onnx or torch"),
        (["export", "rent", "--format", "onnx", "--out", "rent.json"], "is where the description would go"),
        (["export", "rent", "--format", "onnx", "--out", "kind"], "kind exists and is no ordinary file"),
    ],
)
def test_wrong_input_is_one_sentence_and_two(command, sentence, capsys, here):
    refused(command, sentence, capsys, here)


def test_a_column_that_new_rows_lack_is_named(capsys, here):
    flats(10).drop("floor").write_csv("new.csv")
    refused(["predict", "rent", "new.csv", "--out", "out.csv"], "no column 'floor': there are 'area'", capsys, here)


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
@pytest.mark.parametrize("command", [["predict", "rent", "flats.csv"], ["export", "rent", "--format", "torch"]])
def test_a_model_that_is_not_whole(name, command, capsys, here):
    file = here / "rent" / name
    content = file.read_bytes()
    file.write_bytes(content[:-40] + b"x" + content[-39:])
    refused(command, r"is not what was saved \(its checksum differs\)|is not JSON", capsys, here)
    file.write_bytes(content[:-1])
    refused(command, "it was cut or changed|is not JSON", capsys, here)
    file.unlink()
    refused(command, rf"(has no|{name} is missing)", capsys, here)


@pytest.mark.parametrize(
    "command",
    [
        FIT,
        [*FIT, "--out", "rent"],
        ["compare", "flats.csv", "--target", "rent", "--splits", "2", "--epochs", "1"],
        ["predict", "rent", "flats.csv", "--out", "new/out.csv"],
        ["predict", "rent", "flats.csv", "--out", "out.parquet"],
        ["export", "rent", "--format", "torch"],
    ],
    ids=lambda command: " ".join(command[:1] + command[-1:]),
)
def test_a_full_disk_leaves_everything_as_it_was(command, capsys, here, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(str(path) for path in here.rglob("*"))
    monkeypatch.setattr(os, "fsync", full)
    refused(command, "the disk is full", capsys, here)
    assert sorted(str(path) for path in here.rglob("*")) == before


def test_a_place_without_permission_is_refused_before_any_work(capsys, here, monkeypatch):
    def locked(**_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "there")

    monkeypatch.setattr("tempfile.TemporaryFile", locked)
    for command in (FIT, ["compare", *FIT[1:]], ["predict", "rent", "flats.csv", "--out", "out.csv"]):
        refused(command, "there is no permission for 'there'; choose another place", capsys, here)
    refused(["export", "rent", "--format", "torch"], "there is no permission", capsys, here)


def test_an_error_in_the_middle_of_a_file_leaves_nothing(capsys, here, monkeypatch):
    monkeypatch.setattr(model_module, "batches", partial(batches, rows=10))
    (here / "long.csv").write_text((here / "flats.csv").read_text() + "1,2\n")
    refused(["predict", "rent", "long.csv", "--out", "out.csv"], "line 62 has 2 values for 5 columns", capsys, here)
    refused(["predict", "rent", "long.csv", "--out", "out.parquet"], "line 62 has 2 values", capsys, here)


def test_a_semicolon_may_separate(here):
    flats().write_csv("flats.csv", separator=";")
    assert main([*FIT, "--separator", ";"]) == 0
    assert main(["predict", "flats-rent", "flats.csv", "--separator", ";", "--out", "out.csv"]) == 0


def test_the_board_draws_in_a_terminal_alone(monkeypatch, capsys):
    with board() as tell:
        tell("sparse GaNN", 0.5)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with board() as tell:
        tell("sparse GaNN", 0.5)
    shown = capsys.readouterr().err
    assert "sparse GaNN, about 0:00 left" in shown
    assert "50%" in shown


def command_line(*command: str, **options) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "ganns", *command], stderr=subprocess.PIPE, env=environment, **options
    )


def test_ctrl_c_leaves_nothing_behind(here):
    before = contents(here)
    process = command_line("compare", "flats.csv", "--target", "rent", "--epochs", "100000", stdout=subprocess.PIPE)
    assert b"Comparing six methods on 5 splits of 60 rows" in process.stderr.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().startswith("ganns: interrupted, and nothing is left half written")
    assert out == b""
    assert contents(here) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_the_standard_output_is_noticed():
    with open("/dev/full", "wb") as full:
        process = command_line("predict", "rent", "flats.csv", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"ganns: the disk is full" in err
    assert b"Traceback" not in err
