"""The examples run as their users run them, in a process of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = ("--epochs", "2", "--seeds", "1")

pytest.importorskip("rich")
pytest.importorskip("sklearn")


def _environment() -> dict[str, str]:
    styling = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "PYTHON_COLORS"}
    inherited = {key: value for key, value in os.environ.items() if key not in styling}
    return {**inherited, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=_environment(), timeout=120, check=False)


def _rows(output: str) -> dict[str, list[list[str]]]:
    """The filled cells of each table row, by the row's first cell, which may occur in several sections."""
    rows: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        if line.startswith("│"):
            first, *cells = (cell.strip() for cell in line.strip("│").split("│"))
            rows.setdefault(first, []).append([cell for cell in cells if cell])
    return rows


def _numbers(rows: dict[str, list[list[str]]]) -> list[float]:
    return [float(cell.split("±")[0]) for found in rows.values() for cells in found for cell in cells]


def test_priors_prints_every_row():
    done = _run("priors.py", *TINY)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = _rows(done.stdout)
    for name in ("plain", "GaNN"):
        for measure in ("accuracy", "NLL raw", "NLL calibrated"):
            assert [len(cells) for cells in rows[f"{name} {measure}"]] == [1]
    for score in ("surprise", "typicality"):
        assert [len(cells) for cells in rows[f"GaNN {score}"]] == [4, 3]  # percentiles, AUROC
    for score in ("GaNN entropy", "GaNN energy", "plain entropy", "plain energy", "pixels, no network"):
        assert [len(cells) for cells in rows[score]] == [3]
    assert all(0 <= number <= 100 for number in _numbers(rows))
    for line in ("The GaNN against the plain network, 1 seed(s):", "  better in each seed: ", "Next: "):
        assert f"\n{line}" in done.stdout


@pytest.mark.parametrize("arguments", [("--alpha", "0"), ("--variance", "dense", "--seeds", "2")])
def test_priors_takes_its_options(arguments):
    done = _run("priors.py", *TINY, *arguments)
    assert done.returncode == 0, done.stderr
    assert ("±" in done.stdout) == ("2" in arguments)  # a deviation needs two seeds


def test_surprise_prints_every_row():
    done = _run("surprise.py", *TINY)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = _rows(done.stdout)
    assert [len(cells) for cells in rows["accuracy"]] == [4]
    for score in ("surprise", "typicality", "entropy", "energy", "pixels, no network"):
        assert [len(cells) for cells in rows[score]] == [4, 4, 4]  # networks, for each kind of picture
    assert "Typicality, trained with alpha 0.3 against alpha 0:" in done.stdout


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("priors.py", ("--seeds", "0"), "argument --seeds: '0' is not a whole number of at least 1"),
        ("priors.py", ("--epochs", "1.5"), "argument --epochs: '1.5' is not a whole number of at least 1"),
        ("priors.py", ("--alpha", "-1"), "argument --alpha: '-1' is not a number of at least 0"),
        ("priors.py", ("--alpha", "nan"), "argument --alpha: 'nan' is not a number of at least 0"),
        ("priors.py", ("--variance", "spares"), "argument --variance: invalid choice: 'spares'"),
        ("surprise.py", ("--alpha", "0"), "argument --alpha: 0 is there anyway"),
    ],
)
def test_wrong_options_are_explained(name, arguments, message):
    done = _run(name, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["priors.py", "surprise.py"])
def test_help_shows_examples(name):
    done = _run(name, "--help")
    assert done.returncode == 0
    assert f"python examples/{name} --" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT between processes")
def test_ctrl_c_ends_cleanly():
    command = [sys.executable, "-u", str(EXAMPLES / "priors.py"), "--epochs", "100000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("Training")
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors == "Interrupted.\n"


def test_verdict_can_go_against_us(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from digits import compare

    pairs = {"a": ([1.0, 2.0], [0.0, 1.0]), "b": ([0.0, 1.0], [1.0, 2.0]), "c": ([0.0, 2.0], [1.0, 1.0])}
    assert compare(pairs) == "  better in each seed: a\n  worse in each seed: b\n  neither: c"
    assert compare({"tie": ([1.0], [1.0])}).endswith("neither: tie")
