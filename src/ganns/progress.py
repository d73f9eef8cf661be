"""How far a training is, and showing it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Progress:
    """Where a fleet is.

    Args:
        members: of the fleet.
        epochs: done, of the group that is being trained.
        of_epochs: at most so many.
        share: of all groups' epochs that is done, from 0 to 1.
        steps_a_second: of late.
        seconds_left: at this rate, if nobody stops early.
        best: the best validation metric of any member so far, NaN before the first epoch.
        median: the members' median of their best.
        balance: median over members of α |L_B / L_I|, the coefficient of Eq. 9, in the last epoch.
        running: members that still learn.
    """

    members: int
    epochs: int
    of_epochs: int
    share: float
    steps_a_second: float
    seconds_left: float
    best: float
    median: float
    balance: float
    running: int


Listener = Callable[[Progress], None]


def describe(progress: Progress) -> str:
    """One line for a terminal."""
    text = f"epoch {progress.epochs}/{progress.of_epochs}  {progress.steps_a_second:,.0f} steps/s"
    if progress.best == progress.best:
        text += f"  best {progress.best:.4g}  median {progress.median:.4g}"
    if progress.balance > 0:
        text += f"  coefficient {progress.balance:.2g}"
    if progress.running < progress.members:
        text += f"  {progress.running} of {progress.members} still learning"
    return text


def duration(seconds: float) -> str:
    """Seconds as people say it.

    >>> duration(75), duration(7260)
    ('1:15', '2:01:00')
    """
    if seconds == float("inf"):
        return "?"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class Display:
    """A live line in the terminal; nothing where there is no terminal, or no rich to draw with."""

    def __init__(self, title: str):
        self.title = title
        self._bar: Any = None

    def __enter__(self) -> "Display":
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, TextColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            columns = TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[words]}")
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=1.0, words="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        if self._bar is not None:
            words = f"{describe(progress)}  {duration(progress.seconds_left)} left"
            self._bar.update(self._task, completed=progress.share, words=words)


class Clock:
    """Says when something is due again: after `seconds`, and after twenty times what it took the last time."""

    def __init__(self, seconds: float):
        self.seconds, self.wait, self.last = seconds, seconds, time.monotonic()

    def due(self) -> bool:
        """Whether to do it now."""
        return time.monotonic() - self.last >= self.wait

    def took(self, seconds: float) -> None:
        """It was done just now."""
        self.last, self.wait = time.monotonic(), max(self.seconds, 20 * seconds)
