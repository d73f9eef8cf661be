"""Running many units: in this process, in processes beside it, or on a cluster. The records are the same.

All share one folder. A unit that another process has locked is left to it, and looked at again when nothing else is to
do. A worker that dies is replaced, and its unit goes on from its checkpoint.
"""

import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Protocol

import torch

from ganns.progress import Listener, Progress
from ganns.study.locks import locked
from ganns.study.plan import Unit
from ganns.study.runs import WORK, Settings, missing, run

RETRIES = 3
LOOK = 0.5  # seconds
PATIENCE = 60.0  # for workers that save before they stop


@dataclass(frozen=True)
class Outcome:
    """What became of a unit: done, or failed for a reason."""

    unit: Unit
    failed: str | None = None


@dataclass(frozen=True)
class Died:
    """What is known of a worker that ended without an answer."""

    how: str


Answer = bool | str | Died  # done, or locked by somebody else; why it failed; or the worker died
Watcher = Callable[[Unit, float], None]  # is told which share of a unit is done


class Workers(Protocol):
    """Where units run."""

    limit: int

    def start(self, unit: Unit) -> None:
        """Begin."""
        ...

    def answers(self) -> list[tuple[Unit, Answer]]:
        """Those that have ended, after a short wait."""
        ...

    def stop(self) -> None:
        """End all at their next step; what they have done so far stays."""
        ...


def run_all(units: Sequence[Unit], settings: Settings, workers: Workers, watcher: Watcher) -> Iterator[Outcome]:
    """Run units, and say what became of each as soon as it is known.

    Args:
        units: what to do.
        settings: for all of them.
        workers: where.
        watcher: is told of progress.
    """
    waiting, running, deaths = list(units), [], Counter[str]()
    try:
        while waiting or running:
            while len(running) < workers.limit and (unit := _free(waiting, settings.folder)):
                waiting.remove(unit)
                running.append(unit)
                workers.start(unit)
            if not running:
                time.sleep(LOOK)
            for unit, answer in workers.answers():
                running.remove(unit)
                if isinstance(answer, Died):
                    deaths[unit.name] += 1
                    if deaths[unit.name] > RETRIES:
                        answer = f"its worker died {deaths[unit.name]} times, the last one {answer.how}."
                if isinstance(answer, str):
                    yield Outcome(unit, answer)
                elif answer is True:
                    yield Outcome(unit)
                else:
                    waiting.append(unit)
            for unit in running:
                watcher(unit, _read(beacon(unit, settings.folder)))
    finally:
        workers.stop()


def _free(waiting: Sequence[Unit], folder: Path) -> Unit | None:
    """The first unit that nobody is at."""
    for unit in waiting:
        with locked(folder / WORK / f"{unit.name}.lock") as free:
            if free:
                return unit
    return None


def attempt(unit: Unit, settings: Settings, listener: Listener | None = None) -> bool | str:
    """Run a unit; an error becomes its sentence, so that it takes no other unit down."""
    try:
        return run(unit, settings, listener)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


class Here:
    """This process, one unit after the other."""

    limit = 1

    def __init__(self, settings: Settings, watcher: Watcher):
        self.settings, self.watcher = settings, watcher
        self.units: list[Unit] = []

    def start(self, unit: Unit) -> None:
        """Take note."""
        self.units.append(unit)

    def answers(self) -> list[tuple[Unit, Answer]]:
        """Run what was begun."""
        units, self.units = self.units, []
        return [(unit, attempt(unit, self.settings, lambda p, u=unit: self.watcher(u, p.share))) for unit in units]

    def stop(self) -> None:
        """Nothing is left running."""


class Processes:
    """Processes on this machine, one for each unit, with one thread each."""

    def __init__(self, settings: Settings, limit: int):
        self.settings, self.limit = settings, limit
        self.running: dict[Connection, tuple[Unit, SpawnProcess]] = {}

    def start(self, unit: Unit) -> None:
        """Start a process."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(unit, self.settings, theirs), daemon=True)
        resource_tracker.ensure_running()  # which unblocks signals where it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: no Ctrl-C while it imports
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.running[ours] = unit, process

    def answers(self) -> list[tuple[Unit, Answer]]:
        """What processes have sent, or that they died."""
        found = []
        for pipe in wait(list(self.running), LOOK):
            unit, process = self.running.pop(pipe)  # type: ignore[arg-type]
            try:
                answer = pipe.recv()  # type: ignore[union-attr]
            except EOFError:
                process.join()
                answer = Died(f"with exit code {process.exitcode}")
            process.join()
            found.append((unit, answer))
        return found

    def stop(self) -> None:
        """Interrupt them, and wait until they have saved."""
        processes = [process for _, process in self.running.values()]
        for process in processes:
            if process.pid and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        end = time.monotonic() + PATIENCE
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
            process.terminate()
        self.running.clear()


def _child(unit: Unit, settings: Settings, pipe: Connection) -> None:
    """One unit in a process of its own, which the terminal's Ctrl-C does not reach: the parent passes it on, once.

    If the parent is killed, its end is as good as Ctrl-C.
    """
    os.setpgrp()
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
    threading.Thread(target=_outlive_nobody, daemon=True).start()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        pipe.send(attempt(unit, settings, Beacon(beacon(unit, settings.folder))))
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)


def _outlive_nobody() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)


def beacon(unit: Unit, folder: Path) -> Path:
    """Where a worker says how far it is."""
    return folder / WORK / f"{unit.name}.progress"


class Beacon:
    """Writes how far a unit is into a small file, which whoever waits for it reads."""

    def __init__(self, path: Path):
        self.path = path

    def __call__(self, progress: Progress) -> None:
        """Write it."""
        beside = self.path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(progress.share))
        os.replace(beside, self.path)


def _read(path: Path) -> float:
    try:
        return float(json.loads(path.read_text()))
    except (OSError, ValueError):
        return 0.0


def clean(units: Sequence[Unit], folder: Path) -> None:
    """Remove what workers have left beside the records, where nothing is under way any more."""
    for unit in units:
        if not missing(unit, folder):
            beacon(unit, folder).unlink(missing_ok=True)
    work = folder / WORK
    if work.exists() and not any(work.iterdir()):
        work.rmdir()
