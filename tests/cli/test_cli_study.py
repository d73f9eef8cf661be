"""The commands for the paper, as people type them."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ganns.cli import main
from ganns.study import datasets, runs
from ganns.study.catalogue import DATASETS

QUICK = ["--seeds", "1", "--epochs", "2", "--hidden", "8", "--device", "cpu"]


def _stand_in(name, folder):
    """Random data that pass for a table's own."""
    dataset, arrays = DATASETS[name], datasets.synthetic(DATASETS[name])
    np.savez(folder / f"{name}.npz", x=arrays.x.clip(*dataset.values), y=arrays.y.clip(*dataset.targets))


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    """A folder with Yacht and nothing else; Digits come with scikit-learn."""
    folder = tmp_path / "data"
    folder.mkdir()
    _stand_in("yacht", folder)
    monkeypatch.setenv("GANNS_DATA", str(folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_reproduce_makes_records_and_a_report_and_does_nothing_twice(tmp_path, capsys):
    command = ["reproduce", "digits", "--methods", "ann,gann-sparse", *QUICK, "--out", "study"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.out.strip().endswith("report.html")
    assert "[2/2] Digits-MNIST" in said.err
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "study").glob("*.json")}
    assert len(made) == 2
    assert main(command) == 0
    assert "2 of 2 fleets have their records" in capsys.readouterr().err
    assert made == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "study").glob("*.json")}
    assert main([*command, "--fresh"]) == 0
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "study").glob("*.json")}
    assert again.keys() == made.keys()
    assert all(again[name] > made[name] for name in made)


def test_without_the_reports_needs_the_records_are_kept_and_that_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ganns.study.report", None)
    assert main(["reproduce", "yacht", "--methods", "ann", *QUICK, "--out", "study"]) == 0
    assert "ganns[study]" in capsys.readouterr().err
    assert len(list((tmp_path / "study").glob("*.json"))) == 1


def test_a_missing_dataset_is_skipped_and_tables_say_why(capsys):
    assert main(["reproduce", "yacht", "airfoil", "--methods", "ann", *QUICK, "--out", "study"]) == 0
    assert "skipped: Airfoil is missing" in capsys.readouterr().err
    assert main(["tables", "study"]) == 0
    printed = capsys.readouterr().out
    assert "Airfoil is missing" in printed
    assert re.search(r"\| Yacht .*308", printed)


def test_random_data_stand_in_only_where_asked_for(tmp_path, capsys):
    assert main(["reproduce", "airfoil", "--synthetic", "--methods", "ann", *QUICK, "--out", "study"]) == 0
    (path,) = (tmp_path / "study").glob("*.json")
    assert json.loads(path.read_text())["synthetic"]
    assert "timed on random data: Airfoil is missing" in capsys.readouterr().err


def test_what_was_missing_and_is_there_now_is_forgotten(tmp_path, capsys):
    (tmp_path / "data" / "yacht.npz").rename(tmp_path / "elsewhere.npz")
    command = ["reproduce", "yacht", "--methods", "ann", *QUICK, "--out", "study"]
    assert main(command) == 1
    assert "skipped: Yacht is missing" in capsys.readouterr().err
    (tmp_path / "elsewhere.npz").rename(tmp_path / "data" / "yacht.npz")
    assert main(command) == 0
    assert main(["tables", "study"]) == 0
    assert "Yacht is missing" not in capsys.readouterr().out


def test_tables_come_in_three_formats_with_the_claims(tmp_path, capsys):
    _stand_in("airfoil", tmp_path / "data")
    names = ["yacht", "digits", "airfoil"]
    assert main(["reproduce", *names, "--methods", "ann,gann-sparse", *QUICK, "--out", "study"]) == 0
    capsys.readouterr()
    assert main(["tables", "study"]) == 0
    printed = capsys.readouterr().out
    assert "| Yacht (2 of 5,000 epochs, layers of 8 units, 1 of 5 seeds) |" in printed
    assert "| “The sparse architecture outperforms the ANN on nine out of ten datasets" in printed
    assert main(["tables", "study", "--format", "latex"]) == 0
    assert r"\toprule" in capsys.readouterr().out
    assert main(["tables", "study", "--format", "csv"]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert any(row and row[0].startswith("Yacht") for row in rows)
    assert ["Table 1. The datasets, and how many rows of each were used here."] in rows


def test_report_is_made_anew(tmp_path, capsys):
    assert main(["reproduce", "yacht", "--methods", "ann", *QUICK, "--out", "study"]) == 0
    assert main(["report", "study", "--out", "page.html"]) == 0
    assert capsys.readouterr().out.strip().endswith("page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_datasets_are_listed_with_what_is_missing(capsys):
    assert main(["datasets"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"yacht +308 .*there", printed)
    assert re.search(r"cifar100 .*missing", printed)
    assert "ganns datasets fetch cifar100" in printed


def test_fetching_what_is_there_says_where(capsys):
    assert main(["datasets", "fetch", "digits", "yacht"]) == 0
    assert "yacht.npz" in capsys.readouterr().out


def test_fetching_goes_on_after_one_that_fails(tmp_path, capsys, monkeypatch):
    def broken(name, listener):
        raise {"yacht": ValueError, "airfoil": ConnectionError, "cifar100": ImportError}[name](f"no {name} today")

    monkeypatch.setattr(datasets, "fetch", broken)
    assert main(["datasets", "fetch", "yacht", "airfoil", "cifar100"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "yacht: no yacht today",
        "airfoil: no airfoil today",
        "cifar100: no cifar100 today",
    ]


@pytest.mark.parametrize("command", [[], ["reproduce"], ["report"], ["tables"], ["datasets"]])
def test_help_has_examples(command, capsys):
    assert main([*command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "Examples" in printed
    assert re.search(rf" ganns {' '.join(command) or 'reproduce'}", printed.partition("Examples")[2])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["reproduce"], "name a dataset, or say --all"),
        (["reproduce", "digit"], "did you mean digits?"),
        (["reproduce", "digits", "--all"], "not both"),
        (["reproduce", "digits", "--methods", "gan-sparse"], "did you mean gann-sparse"),
        (["reproduce", "mnist"], "did you mean digits or fashion_mnist?"),
        (["reproduce", "digits", "--methods", "boosting,varhead"], "boosting is for tables"),
        (["reproduce", "digits", "--hidden", "8,x"], "hidden='8,x'"),
        (["reproduce", "digits", "--hidden", "8,0"], "hidden='8,0'"),
        (["reproduce", "digits", "--device", "abacus"], "device='abacus'"),
        (["reproduce", "digits", "--device", "meta"], "device='meta'"),
        (["reprodoce", "digits"], "Did you mean 'reproduce'?"),
        (["reproduce", "digits", "--seeds", "0"], "seeds"),
        (["datasets", "fetch", "yacht", "--all"], "not both"),
        (["reproduce", "digits", "--recipe", "old"], "paper"),
        (["report", "nowhere"], "no folder nowhere"),
        (["report", "data"], "no records"),
        (["tables", "data"], "no records"),
        (["datasets", "fetch"], "name a dataset to fetch"),
        (["datasets", "fetch", "yatch"], "did you mean yacht?"),
    ],
)
def test_wrong_input_is_one_sentence_and_two(command, sentence, tmp_path, capsys):
    assert main(command) == 2
    said = capsys.readouterr()
    assert sentence in " ".join(said.err.split())
    assert "Traceback" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_unit_that_fails_is_named_and_gives_one(capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no\nluck")

    monkeypatch.setattr(runs, "fit_fleet", fail)
    assert main(["reproduce", "yacht", "digits", "--methods", "ann", *QUICK, "--out", "study"]) == 1
    said = capsys.readouterr().err
    assert "failed: Yacht: ANN: RuntimeError: no luck" in said
    assert "there are no records to report on" in said


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_says_how_to_go_on(jobs, tmp_path):
    command = ["reproduce", "digits", "--methods", "ann,gann-sparse", "--seeds", "1", "--hidden", "8", "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-m", "ganns", *command, "--epochs", "4000", "--out", "study"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while process.poll() is None and not list(tmp_path.glob("study/.work/*/fleet.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "to go on from there: ganns reproduce digits --methods ann,gann-sparse" in said
    assert "Traceback" not in said
