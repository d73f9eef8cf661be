"""Units in other processes and on a Ray cluster: the same records as here, whoever dies on the way."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ganns.study import plan, pool, records, runs
from ganns.study.catalogue import DATASETS
from ganns.study.cluster import Ray
from ganns.study.datasets import fingerprint, load
from ganns.study.locks import locked

pytestmark = pytest.mark.xdist_group("pool")


def _unit(method="ann", epochs=2, hidden=(8,)):
    jobs = plan.jobs_for(
        DATASETS["digits"], fingerprint(load("digits")), methods=[method], seeds=[0], epochs=epochs, hidden=hidden
    )
    (unit,) = plan.units(jobs, merge=False)
    return unit


def _settings(folder):
    return runs.Settings(folder, plain_loop=False)


def _read(folder):
    return [replace(r, timings={}, environment={}).to_json() for r in records.read_all(folder)]


def _run(units, workers, settings):
    return list(pool.run_all(units, settings, workers, lambda unit, share: None))


def _here(units, folder):
    settings = _settings(folder)
    outcomes = _run(units, pool.Here(settings, lambda unit, share: None), settings)
    assert not any(outcome.failed for outcome in outcomes)
    return _read(folder)


def _holder(path: Path) -> int | None:
    """The process, other than this one, that has a file open."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and any(
                os.readlink(handle) == str(path) for handle in (process / "fd").iterdir()
            ):
                return int(process.name)
        except OSError:
            continue
    return None


def _killer(unit, folder, killed):
    """Kill the first worker that is in the middle of a unit."""

    def kill():
        lock, share = folder / runs.WORK / f"{unit.name}.lock", pool.beacon(unit, folder)
        while not killed.is_set():
            if share.exists() and (process := _holder(lock)):
                os.kill(process, signal.SIGKILL)
                killed.set()
            time.sleep(0.02)

    return threading.Thread(target=kill, daemon=True)


def test_processes_make_the_same_records_and_one_that_dies_is_replaced(tmp_path):
    units = [_unit(epochs=250), _unit("gann-sparse")]
    settings, killed = _settings(tmp_path / "there"), threading.Event()
    _killer(units[0], settings.folder, killed).start()
    outcomes = _run(units, pool.Processes(settings, 2), settings)
    assert killed.is_set()
    assert {outcome.unit for outcome in outcomes} == set(units)
    assert not any(outcome.failed for outcome in outcomes)
    assert _read(settings.folder) == _here(units, tmp_path / "here")


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'ganns[cluster]'"
)
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_ray_worker_that_is_killed_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    unit = _unit(epochs=250)
    settings, killed = _settings(Path("there")), threading.Event()
    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short:  # sockets want a short path
        monkeypatch.setenv("RAY_TMPDIR", short)
        _killer(unit, tmp_path / "there", killed).start()
        (outcome,) = _run([unit], Ray(settings, "local", 1), settings)
    assert killed.is_set()
    assert outcome.failed is None
    assert _read(settings.folder) == _here([unit], tmp_path / "here")


def test_a_cluster_that_is_not_there_is_told_at_once():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ganns[cluster]'")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"no Ray cluster answers at 127.0.0.1:{port}"):
        Ray(_settings(Path("there")), f"127.0.0.1:{port}")


@pytest.mark.parametrize("ours", [signal.default_int_handler, signal.SIG_IGN], ids=["in front", "in the background"])
def test_processes_that_are_interrupted_while_they_start_say_nothing(tmp_path, capfd, ours):
    settings = _settings(tmp_path)
    workers = pool.Processes(settings, 2)
    before = signal.signal(signal.SIGINT, ours)  # a shell's jobs in the background ignore it, and so do their children
    try:
        workers.start(_unit(epochs=100_000))
    finally:
        signal.signal(signal.SIGINT, before)
    ((_, process),) = workers.running.values()
    time.sleep(0.5)  # it is importing now
    workers.stop()
    assert not process.is_alive()
    assert process.exitcode == 1
    assert capfd.readouterr().err == ""


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a shell
sys.path.insert(0, {tests!r})
if __name__ == "__main__":
    from test_pool import _run, _settings, _unit, pool
    settings = _settings(pool.Path({folder!r}))
    _run([_unit(epochs=100_000)], pool.Processes(settings, 1), settings)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    """They save what they have and end, rather than train on for nobody."""
    unit, settings = _unit(epochs=100_000), _settings(tmp_path / "there")
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(tests=str(Path(__file__).parent), folder=str(settings.folder)))
    parent = subprocess.Popen([sys.executable, "-W", "ignore", str(script)])
    share, state = pool.beacon(unit, settings.folder), settings.folder / runs.WORK / unit.name / "group-000.safetensors"
    _until(share.exists)
    worker = _holder(settings.folder / runs.WORK / f"{unit.name}.lock")
    assert worker
    assert not state.exists()  # it saves every half minute, and when it is interrupted
    parent.kill()
    parent.wait()
    _until(lambda: not Path(f"/proc/{worker}").exists())
    assert state.exists()


def _until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


class _Dying:
    """Workers that never come back, but for the units that they are told to finish."""

    limit = 1

    def __init__(self, finish=()):
        self.finish, self.running, self.started, self.stopped = finish, [], [], False

    def start(self, unit):
        self.running.append(unit)
        self.started.append(unit)

    def answers(self):
        units, self.running = self.running, []
        return [(unit, unit in self.finish or pool.Died("with exit code -9")) for unit in units]

    def stop(self):
        self.stopped = True


def test_a_unit_whose_workers_always_die_fails_and_the_others_do_not(tmp_path):
    bad, good = _unit(), _unit("gann-sparse")
    workers = _Dying(finish=[good])
    outcomes = {outcome.unit: outcome.failed for outcome in _run([bad, good], workers, _settings(tmp_path))}
    assert outcomes[good] is None
    assert "died 4 times" in outcomes[bad]
    assert workers.started.count(bad) == 1 + pool.RETRIES
    assert workers.stopped


def test_an_error_in_one_unit_is_a_sentence_and_the_next_unit_runs(tmp_path):
    wide = _unit(hidden=(0,))
    settings = _settings(tmp_path)
    outcomes = _run([wide, _unit()], pool.Here(settings, lambda unit, share: None), settings)
    assert outcomes[0].failed.startswith("ValueError: in_features=64, out_features=10, hidden=(0,)")
    assert outcomes[1].failed is None


def test_a_unit_that_another_process_has_locked_comes_last(tmp_path):
    first, second = _unit(), _unit("gann-sparse")
    settings, ended = _settings(tmp_path), []
    with locked(tmp_path / runs.WORK / f"{first.name}.lock") as mine:
        assert mine
        found = pool.run_all([first, second], settings, pool.Here(settings, lambda unit, share: None), lambda *_: None)
        ended.append(next(found).unit)
    ended += [outcome.unit for outcome in found]
    assert ended == [second, first]


def test_watchers_are_told_of_progress(tmp_path):
    seen, settings = [], _settings(tmp_path)
    _run([_unit(epochs=3)], pool.Here(settings, lambda unit, share: seen.append(share)), settings)
    assert seen[-1] == 1.0


def test_a_lock_is_held_once_and_leaves_nothing(tmp_path):
    path = tmp_path / "deep" / "lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
    assert not path.exists()
    with locked(path) as again:
        assert again


def test_nothing_is_left_beside_the_records(tmp_path):
    unit = _unit()
    _here([unit], tmp_path)
    pool.clean([unit], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [unit.jobs[0].name]
