"""Interrupted fleets go on as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_training import CLASSES, MEMBERS, REGRESSION, fit, table

import ganns
from ganns import Member, fit_fleet
from ganns.checkpoints import Checkpoint, fingerprint, own_folder
from ganns.feeding import check_rows
from ganns.loop import Group

RECIPE = replace(REGRESSION, epochs=12, optimizer="adamw", dropout=0.2, patience=9)


def assert_identical(one, other):
    for mine, theirs in zip(one.trainings, other.trainings, strict=True):
        assert all(torch.equal(values, theirs.parameters[name]) for name, values in mine.parameters.items())
        for name, values in mine.history.items():
            np.testing.assert_array_equal(values, theirs.history[name])
        assert (mine.best_epoch, mine.best_metric) == (theirs.best_epoch, theirs.best_metric)


def stop_after(epochs):
    def listener(progress):
        if progress.epochs >= epochs:
            raise KeyboardInterrupt

    return listener


KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from test_checkpoints import MEMBERS, RECIPE, assert_identical, fit
from dataclasses import replace
from safetensors import safe_open
recipe, folder = replace(RECIPE, epochs=60, patience=None), sys.argv[1]
start = time.monotonic()
wanted = fit(recipe, MEMBERS)
whole = time.monotonic() - start
fit(recipe, MEMBERS[:1])
random.seed(0)
killed, reached = 0, [0]
while killed < 25:
    child = os.fork()
    if child == 0:
        fit(recipe, MEMBERS, checkpoint=folder, checkpoint_seconds=0.0)
        os._exit(0)
    time.sleep(random.uniform(0.0, 0.2 * whole) + 0.01)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):  # it had come to its end: once more from the start
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        reached = [0]
    elif os.path.exists(os.path.join(folder, "group-000.safetensors")):
        with safe_open(os.path.join(folder, "group-000.safetensors"), "pt") as file:
            reached.append(int(file.get_tensor("count")))
        assert reached[-1] >= reached[-2], reached  # each goes on from where the last one was
    killed += os.WIFSIGNALED(status)
assert_identical(fit(recipe, MEMBERS, checkpoint=folder), wanted)
print("killed", killed, "times and the same")
"""


def test_what_a_killed_process_leaves_is_continued_bit_by_bit(tmp_path):
    code = KILLED.format(tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "run")], capture_output=True, text=True, timeout=200
    )
    assert done.stdout == "killed 25 times and the same\n", done.stderr


WRITES = """
import os, random, signal, sys, time
import torch
from ganns.checkpoints import Checkpoint
torch.set_num_threads(1)
random.seed(0)
kept, last = 0, -1.0
for _ in range(10):
    keep = Checkpoint(sys.argv[1], {}, [1])
    child = os.fork()
    if child == 0:
        for number in range(int(last) + 1, 10**6):
            value = float(number)
            keep.save(0, {"x": torch.full((2**17,), value), "y": torch.full((2**17,), value)}, done=False)
    time.sleep(random.uniform(0.01, 0.08))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if (found := keep.load(0)) is not None:
        (value,) = torch.cat([found[0]["x"], found[0]["y"]]).unique().tolist()  # not some of one and some of another
        kept, last = kept + (value > last), value
print(kept > 0)
"""


def test_a_process_killed_while_it_writes_leaves_a_state_that_is_whole(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WRITES, str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "True\n", done.stderr
    Checkpoint(tmp_path, {}, [1])  # clears what was not finished
    assert {path.name for path in tmp_path.iterdir()} == {"fleet.json", "group-000.safetensors"}


@pytest.mark.parametrize("hidden", [(8,), (300, 300)])  # together, and one after another
def test_ctrl_c_keeps_what_was_learnt(tmp_path, hidden):
    wanted = fit(RECIPE, MEMBERS, hidden=hidden)
    with pytest.raises(KeyboardInterrupt):
        fit(RECIPE, MEMBERS, hidden=hidden, checkpoint=tmp_path, checkpoint_seconds=0.0, progress=stop_after(1))
    assert_identical(fit(RECIPE, MEMBERS, hidden=hidden, checkpoint=tmp_path), wanted)
    told = []
    again = fit(RECIPE, MEMBERS, hidden=hidden, checkpoint=tmp_path, progress=told.append)
    assert_identical(again, wanted)
    assert not told  # there was nothing left to do


@pytest.mark.parametrize("step", [1, 37, 120])  # 120: the last of the first group
def test_ctrl_c_is_obeyed_after_the_step(tmp_path, monkeypatch, step):
    """Whatever `checkpoint_seconds`, what is kept is of that very step, and the rest alone is done afterwards."""
    options = {"hidden": (8,), "checkpoint": tmp_path, "checkpoint_seconds": 1e6}
    monkeypatch.setattr(ganns.training, "_together", lambda *given: 2)
    recipe = replace(RECIPE, patience=None)
    wanted = fit(recipe, MEMBERS, hidden=(8,))
    advance, done = Group.advance, []

    def interrupted(group):
        done.append(group)
        if len(done) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(group)

    monkeypatch.setattr(Group, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, MEMBERS, **options)
    assert len(done) == step
    assert_identical(fit(recipe, MEMBERS, **options), wanted)
    assert len(done) == 240


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": replace(RECIPE, learning_rate=0.5)}, "recipe.learning_rate is 0.05 there, 0.5 here"),
        ({"members": [*MEMBERS, Member(seed=9)]}, "members has 4 entries there, 5 here"),
        ({"members": [replace(MEMBERS[0], alpha=0.7), *MEMBERS[1:]]}, r"members\[0\].alpha is 1.0 there, 0.7 here"),
        ({"variance": "dense"}, "shape.variance is 'sparse' there, 'dense' here"),
        ({"dtype": torch.float32}, "dtype is 'torch.float64' there, 'torch.float32' here"),
    ],
)
def test_another_fleets_checkpoint_is_refused_with_the_difference(tmp_path, change, message):
    given = {"recipe": RECIPE, "members": MEMBERS, "hidden": (8,)}
    fit(**given, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=f"holds another fleet: .*{message}"):
        fit(**given | change, checkpoint=tmp_path)


def test_other_data_are_refused(tmp_path):
    x, y = table(RECIPE)
    options = {"hidden": (8,), "dtype": torch.float64, "checkpoint": tmp_path, "progress": False}
    fit_fleet(x, y, RECIPE, **options)
    y[0] += 1e-9
    with pytest.raises(ValueError, match=r"data.content is '[0-9a-f]+' there"):
        fit_fleet(x, y, RECIPE, **options)
    with pytest.raises(ValueError, match=r"data.rows is 210 there, 200 here"):
        fit_fleet(x[:200], y[:200], RECIPE, **options)


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1), (2, 12), (12, 2)])
def test_a_fleet_that_was_shared_out_otherwise_is_refused(tmp_path, before, now):
    """Each process would find nothing of its own there, and begin anew without a word."""
    for rank in range(before):
        Checkpoint(own_folder(tmp_path, rank, before), {}, [1])
        assert own_folder(tmp_path, rank, before).is_dir()
    with pytest.raises(ValueError, match=rf"that {before} process(es)? trained, and here (is|are) {now}\. Go on with"):
        own_folder(tmp_path, 0, now)


@pytest.mark.parametrize("name", ["fleet.json", "group-000.safetensors"])
def test_damaged_files_are_named(tmp_path, name):
    fit(RECIPE, MEMBERS, hidden=(8,), checkpoint=tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        fit(RECIPE, MEMBERS, hidden=(8,), checkpoint=tmp_path)


def test_a_foreign_file_is_not_a_fleet(tmp_path):
    (tmp_path / "fleet.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match="does not describe a fleet"):
        Checkpoint(tmp_path, {}, [1])


def test_groups_without_a_description_are_refused(tmp_path):
    fit(RECIPE, MEMBERS, hidden=(8,), checkpoint=tmp_path)
    (tmp_path / "fleet.json").unlink()
    with pytest.raises(ValueError, match=r"has group-000\.safetensors but no fleet\.json"):
        fit(replace(RECIPE, learning_rate=0.5), MEMBERS, hidden=(8,), checkpoint=tmp_path)


def test_what_a_killed_writer_left_is_cleared(tmp_path):
    Checkpoint(tmp_path, {"a": 1}, [1])
    for name in (".group-000.safetensors.123.part", ".tmpAb3dEf"):
        (tmp_path / name).write_bytes(b"half")
    Checkpoint(tmp_path, {"a": 1}, [1])
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.json"]


def test_no_half_files_are_left(tmp_path):
    with pytest.raises(RuntimeError):
        Checkpoint(tmp_path, {"a": 1}, [1]).save(0, {"x": torch.zeros(2, device="meta")}, done=False)
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.json"]
    assert json.loads((tmp_path / "fleet.json").read_text()) == {"a": 1, "groups": [1]}


def test_the_fingerprint_sees_every_number():
    x, y = table(CLASSES)
    rows = check_rows(x, y, CLASSES, torch.float64)
    same = check_rows(x.clone(), y.clone(), CLASSES, torch.float64)
    assert fingerprint(rows) == fingerprint(same)
    same.x[-1, -1] += 1e-12
    assert fingerprint(rows) != fingerprint(same)
