"""Showing how far the study is: live in a terminal, and plain lines elsewhere."""

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ganns.progress import duration
from ganns.study.plan import Unit
from ganns.study.pool import Outcome


class Board:
    """All units at a glance, with the time that is left.

    Args:
        units: those that are to be done.
    """

    def __init__(self, units: Sequence[Unit]):
        self.shares = {unit.name: 0.0 for unit in units}
        self.work = {unit.name: unit.work for unit in units}
        self.started = time.monotonic()
        self.ended = 0
        self._bar: Any = None
        self._rows: dict[str, Any] = {}

    def __enter__(self) -> "Board":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = BarColumn(24), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}")
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._total = self._bar.add_task(self._summary(), total=1.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def watch(self, unit: Unit, share: float) -> None:
        """Part of a unit is done."""
        self.shares[unit.name] = share
        if self._bar is not None:
            if unit.name not in self._rows:
                self._rows[unit.name] = self._bar.add_task(unit.title, total=1.0)
            self._bar.update(self._rows[unit.name], completed=share)
            self._bar.update(self._total, completed=self.share, description=self._summary())

    def end(self, outcome: Outcome) -> None:
        """A unit is done, or has failed: one line of its own."""
        name = outcome.unit.name
        self.shares[name] = 1.0
        self.ended += 1
        said = f"{outcome.unit.title}: {outcome.failed}" if outcome.failed else outcome.unit.title
        line = f"[{self.ended}/{len(self.shares)}] {'failed: ' if outcome.failed else ''}{said}"
        if self._bar is None:
            print(f"{line}  ({self._left()})", file=sys.stderr, flush=True)
            return
        if name in self._rows:
            self._bar.remove_task(self._rows.pop(name))
        self._bar.console.print(line, markup=False, highlight=False)
        self._bar.update(self._total, completed=self.share, description=self._summary())

    @property
    def share(self) -> float:
        """How much of all the work is done."""
        return sum(self.work[name] * share for name, share in self.shares.items()) / sum(self.work.values())

    def _left(self) -> str:
        if self.ended == len(self.shares):
            return "done"
        if self.share == 0:
            return "just begun"
        return f"about {duration((time.monotonic() - self.started) * (1 / self.share - 1))} left"

    def _summary(self) -> str:
        return f"{self.ended} of {len(self.shares)} fleets, {self._left()}"
