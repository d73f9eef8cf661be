import io
import math

import pytest
import torch

from ganns import Recipe, fit_fleet, progress
from ganns.progress import Clock, Display, Progress, describe

HALFWAY = Progress(
    members=5, epochs=60, of_epochs=120, share=0.5, steps_a_second=1234.5, seconds_left=75, best=0.98, median=0.97,
    balance=0.031, running=4,
)  # fmt: skip


def test_a_line_says_where_a_fleet_is():
    assert describe(HALFWAY) == (
        "epoch 60/120  1,234 steps/s  best 0.98  median 0.97  coefficient 0.031  4 of 5 still learning"
    )


def test_nothing_is_said_of_what_is_not_known_yet():
    before = Progress(5, 0, 120, 0.0, 0.0, math.inf, math.nan, math.nan, math.nan, 5)
    assert describe(before) == "epoch 0/120  0 steps/s"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_display_draws_in_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    with Display("5 members") as display:
        display(HALFWAY)
        display._bar.refresh()
        shown = progress.sys.stderr.getvalue()
    assert "5 members" in shown
    assert "median 0.97" in shown
    assert "1:15 left" in shown


def test_the_display_is_quiet_elsewhere(capsys):
    with Display("5 members") as display:
        display(HALFWAY)
    assert capsys.readouterr() == ("", "")


def test_a_fleet_that_tells_a_listener_leaves_the_terminal_to_it(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    told = []
    recipe = Recipe(task="regression", head="mean", optimizer="sgd", learning_rate=0.1, epochs=1, batch_size=4)
    x = torch.randn(20, 2)
    fit_fleet(x, x[:, 0], recipe, hidden=(2,), device="cpu", progress=told.append)
    assert progress.sys.stderr.getvalue() == ""
    assert told[-1].share == 1
    fit_fleet(x, x[:, 0], recipe, hidden=(2,), device="cpu", progress=True)
    assert "1 members" in progress.sys.stderr.getvalue()


def test_the_time_left_is_unknown_before_the_first_look():
    assert progress.duration(math.inf) == "?"


@pytest.mark.parametrize(("took", "wait"), [(0.0, 5.0), (1.0, 20.0)])
def test_slow_things_are_done_less_often(took, wait):
    clock = Clock(5.0)
    clock.took(took)
    assert clock.wait == wait
