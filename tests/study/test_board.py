"""What a run shows of itself."""

import io
import sys

import pytest

from ganns.study import plan
from ganns.study.board import Board
from ganns.study.catalogue import DATASETS
from ganns.study.pool import Outcome


@pytest.fixture
def units():
    jobs = plan.jobs_for(DATASETS["digits"], "none", methods=["ann", "gann-sparse", "ann-d"], seeds=[0], epochs=2)
    return plan.units(jobs, merge=False)


def test_without_a_terminal_each_unit_is_a_line(units, capsys):
    with Board(units) as board:
        board.watch(units[0], 0.5)
        assert capsys.readouterr().err == ""
        board.end(Outcome(units[0]))
        board.end(Outcome(units[1], "ValueError: no luck"))
        board.end(Outcome(units[2]))
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("[1/3] Digits-MNIST: ANN  (about 0:0")
    assert second.startswith("[2/3] failed: Digits-MNIST: GaNN-sparse: ValueError: no luck  (about 0:0")
    assert third == "[3/3] Digits-MNIST: ANN + D  (done)"


def test_the_share_that_is_done_goes_by_work(units):
    board = Board(units)
    assert board.share == 0
    for unit in units[:2]:
        board.watch(unit, 0.5)
    work = [unit.work for unit in units]
    assert board.share == pytest.approx(0.5 * sum(work[:2]) / sum(work))


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_terminal_everything_is_live(units, monkeypatch):
    for name, value in {"TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Board(units) as board:
        board.watch(units[0], 0.25)
        board.watch(units[1], 0.75)
        board._bar.refresh()
        assert "25% Digits-MNIST: ANN" in terminal.getvalue()
        assert "75% Digits-MNIST: GaNN-sparse" in terminal.getvalue()
        assert "0 of 3 fleets, about" in terminal.getvalue()
        board.end(Outcome(units[0]))
        board._bar.refresh()
        assert "[1/3] Digits-MNIST: ANN" in terminal.getvalue()
        assert "1 of 3 fleets" in terminal.getvalue()
