"""Fleets: what a member learns depends on nothing but itself."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ganns
from ganns import Member, Recipe, fit_fleet

REGRESSION = Recipe(
    task="regression", head="mean", optimizer="sgd", learning_rate=0.05, epochs=5, batch_size=12, clip_norm=1.0
)
CLASSES = replace(REGRESSION, task="classification", head="classes")
MEMBERS = (
    Member(seed=0),
    Member(seed=1, alpha=0.0, floor=0.1),
    Member(seed=2, alpha=0.3, learning_rate=0.01),
    Member(seed=7, split=0, alpha=2.0, weight_decay=1e-2),
)


def table(recipe, rows=210, features=5):
    """Exactly ten steps of twelve rows an epoch with the split that recipes have."""
    x = torch.randn(rows, features, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    y = 3 * x[:, 0] - x[:, 1].abs() + 40
    return (x, y) if recipe.task == "regression" else (x, (y > 39).long() + (y > 41).long())


def fit(recipe, members, **options):
    options = {"hidden": (40, 30, 20), "dtype": torch.float64, "progress": False, "device": "cpu"} | options
    return fit_fleet(*table(recipe), recipe, members, **options)


def assert_same_training(one, other, tolerance):
    for name, values in one.parameters.items():
        assert_close(values, other.parameters[name], rtol=tolerance, atol=tolerance)
    for name, values in one.history.items():
        np.testing.assert_allclose(values, other.history[name], rtol=10 * tolerance, atol=tolerance)
    assert (one.member, one.best_epoch, one.diverged) == (other.member, other.best_epoch, other.diverged)


METHODS = [
    pytest.param(variance, recipe, id=f"{variance}-{name}")
    for variance in (None, "constant", "sparse", "dense")
    for name, recipe in {
        "mean": REGRESSION,
        "mean-dropout-decay": replace(REGRESSION, dropout=0.2, weight_decay=1e-3),
        "variance": replace(REGRESSION, head="variance", standardise_targets=True),
        "beta-adamw": replace(
            REGRESSION, head="variance", beta=0.5, optimizer="adamw", epochs=2, standardise_targets=True
        ),
        "classes-adamw": replace(CLASSES, optimizer="adamw", weight_decay=0.1, schedule="cosine", warmup_epochs=1),
        "classes-dropout": replace(CLASSES, dropout=0.3, schedule="step", step_epoch=2),
    }.items()
]


@pytest.mark.parametrize(("variance", "recipe"), METHODS)
def test_a_fleet_equals_its_members(variance, recipe):
    together = fit(recipe, MEMBERS, variance=variance)
    for member, training in zip(MEMBERS, together.trainings, strict=True):
        (alone,) = fit(recipe, [member], variance=variance).trainings
        assert len(training.history["base"]) == recipe.epochs
        assert_same_training(training, alone, 1e-10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("variance", "recipe"), METHODS)
def test_a_gpu_gives_the_same(variance, recipe, compiled):
    """Compiled and captured or not, in float32 without tf32, a fleet comes to what it comes to on a CPU in float64."""
    exact = fit(recipe, MEMBERS, variance=variance)
    found = fit(recipe, MEMBERS, variance=variance, dtype=torch.float32, device="cuda", compiled=compiled)
    for one, other in zip(exact.trainings, found.trainings, strict=True):
        for name, values in one.history.items():
            np.testing.assert_allclose(values, other.history[name], rtol=1e-3, atol=1e-4, err_msg=name)
        if one.best_epoch == other.best_epoch:
            for name, values in one.parameters.items():
                assert_close(values, other.parameters[name].cpu().double(), rtol=1e-4, atol=1e-4, msg=lambda m: m)


def test_training_is_that_of_an_ordinary_loop():
    """The same splits, order of rows and schedule, written as anybody would, with autograd and PyTorch's SGD."""
    recipe = replace(REGRESSION, epochs=4, schedule="step", step_epoch=2, weight_decay=1e-3)
    fleet = fit(recipe, [Member(seed=3)])
    training = fleet.trainings[0]
    x, y = table(recipe)
    x, y = training.scaling.features(x), y.unsqueeze(1)
    torch.manual_seed(3)
    net = ganns.GaussianMLP(5, 1, (40, 30, 20)).double()
    optimizer = torch.optim.SGD(net.parameters(), 0.05, weight_decay=1e-3)
    best, best_state, losses = float("inf"), {}, []
    for epoch in range(4):
        optimizer.param_groups[0]["lr"] = 0.05 if epoch < 2 else 0.005
        for rows in order_of_rows(training.split.train, seed=3, epoch=epoch).split(12):
            output, states = ganns.trace(net, x[rows])
            base = nn.functional.mse_loss(output, y[rows])
            optimizer.zero_grad()
            ganns.total_loss(base, ganns.inner_loss(states), 1.0).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(base.item())
        with torch.no_grad():
            error = (net(x) - y)[training.split.validation].abs().mean().item()
        if error < best:
            best, best_state = error, {name: p.clone() for name, p in net.state_dict().items()}
    np.testing.assert_allclose(training.history["base"], np.reshape(losses, (4, 10)).mean(1), rtol=1e-6)
    assert training.best_metric == pytest.approx(best)
    for name, values in training.parameters.items():
        assert_close(values, best_state[name], rtol=1e-6, atol=1e-8)


def order_of_rows(train, seed, epoch):
    """The rows of an epoch, sorted by the hash of their place: 32-bit integers in numpy."""

    def mix(x):
        x = np.asarray(x, np.uint64)
        x = ((x ^ (x >> np.uint64(16))) * np.uint64(0x21F0AAAD)) & np.uint64(0xFFFFFFFF)
        x = ((x ^ (x >> np.uint64(15))) * np.uint64(0x735A2D97)) & np.uint64(0xFFFFFFFF)
        return x ^ (x >> np.uint64(15))

    key = mix(mix(seed + 0x10001) ^ mix(epoch))
    order = np.argsort(mix(mix(np.arange(len(train))) ^ key), kind="stable")
    return torch.from_numpy(train[order][: len(train) // 12 * 12])


def test_a_member_is_an_ordinary_network():
    fleet = fit(replace(REGRESSION, dropout=0.1), MEMBERS)
    assert len(fleet) == 4
    assert isinstance(fleet[0], ganns.GaussianMLP)
    assert not fleet[0].training
    assert fleet[1].layers[0].prior.floor == 0.1
    training = fleet.trainings[2]
    x, y = table(REGRESSION)
    rows = training.split.validation
    prediction = fleet[2](training.scaling.features(x[rows])).squeeze(1)
    assert (prediction - y[rows]).abs().mean().item() == pytest.approx(training.best_metric)
    assert len(fleet[1:3]) == 2
    plain = fit(REGRESSION, [Member()], variance=None)[0]
    assert type(plain) is nn.Sequential
    assert not [key for key in plain.state_dict() if "prior" in key]


def test_a_member_that_diverges_is_left_alone():
    wild = Member(seed=5, learning_rate=1e18)
    recipe = replace(REGRESSION, clip_norm=None, learning_rate=1e-3)
    fleet = fit(recipe, [Member(seed=1), wild, Member(seed=2)])
    lost = fleet.trainings[1]
    assert lost.diverged == len(lost.history["base"]) <= 5
    assert all(values.isfinite().all() for values in lost.parameters.values())
    for place, seed in ((0, 1), (2, 2)):
        (alone,) = fit(recipe, [Member(seed=seed)]).trainings
        assert_same_training(fleet.trainings[place], alone, 1e-10)
        assert alone.diverged is None


def test_members_stop_early_each_in_its_own_time():
    recipe = replace(REGRESSION, patience=3, epochs=40, learning_rate=0.3, clip_norm=10.0)
    fleet = fit(recipe, [Member(seed=seed) for seed in range(6)])
    lengths = [len(history["base"]) for history in fleet.history]
    assert min(lengths) < 40
    for training, length in zip(fleet.trainings, lengths, strict=True):
        metric = training.history["validation"]
        assert training.best_epoch == metric.argmin() + 1
        assert training.best_metric == pytest.approx(metric.min())
        assert length == 40 or length == training.best_epoch + 3


def test_wide_members_take_turns_on_a_cpu_and_come_to_the_same():
    wide = {"hidden": (300, 300), "variance": "sparse"}
    recipe = replace(REGRESSION, epochs=1)
    fleet = fit(recipe, MEMBERS[:2], **wide)
    for member, training in zip(MEMBERS, fleet.trainings, strict=False):
        assert_same_training(training, fit(recipe, [member], **wide).trainings[0], 1e-10)


def test_pictures_of_bytes_are_scaled_on_the_way():
    pictures = torch.randint(0, 256, (120, 4, 4, 3), dtype=torch.uint8)
    y = pictures.flatten(1).double().mean(1)
    recipe = replace(REGRESSION, features="unit", epochs=2)
    as_bytes = fit_fleet(pictures, y, recipe, hidden=(8,), dtype=torch.float64, progress=False)
    as_numbers = fit_fleet(pictures.double(), y, recipe, hidden=(8,), dtype=torch.float64, progress=False)
    assert_same_training(as_bytes.trainings[0], as_numbers.trainings[0], 1e-12)
    whole = replace(recipe, features="standardised")
    scaling = fit_fleet(pictures, y, whole, hidden=(8,), dtype=torch.float64, progress=False).trainings[0].scaling
    assert scaling.mean.shape == (48,)


def test_progress_is_told():
    told = []
    fit(replace(REGRESSION, epochs=40), MEMBERS, progress=told.append)
    assert told[-1].share == 1.0
    assert told[-1].epochs == 40
    assert told[-1].best <= told[-1].median
    assert told[-1].balance > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": []}, "members=\\[\\]: give at least one"),
        ({"members": [3]}, "members holds 3"),
        ({"variance": "wide"}, "variance='wide' is unknown"),
        ({"hidden": ()}, r"hidden=\(\)"),
        ({"dtype": torch.float16}, "dtype=torch.float16"),
        ({"x": torch.zeros(0, 3)}, "x has shape"),
        ({"x": torch.full((40, 3), torch.nan)}, "x holds 120 values that are NaN"),
        ({"x": torch.ones(40, 3)}, "all 3 features of x are constant"),
        ({"y": torch.zeros(39)}, "y has 39 rows, but x has 40"),
        ({"y": torch.full((40,), torch.inf)}, "y holds 40 values"),
        ({"recipe": replace(REGRESSION, batch_size=25)}, "batch_size=25, but only 24 of 40 rows"),
        ({"recipe": CLASSES, "y": torch.zeros(40)}, "give class numbers"),
        ({"recipe": CLASSES, "y": torch.arange(40) - 1}, "labels from -1 to 38; number the classes from 0"),
        ({"recipe": CLASSES, "y": torch.zeros(40, dtype=torch.int64)}, "there must be two or more"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {"x": torch.randn(40, 3), "y": torch.randn(40), "recipe": REGRESSION, "members": [Member()]} | change
    with pytest.raises((ValueError, TypeError), match=message):
        fit_fleet(**given, progress=False)


SHARDED = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, {tests!r})
from test_training import REGRESSION, MEMBERS, assert_same_training, fit
dist.init_process_group("gloo")
fleet = fit(REGRESSION, MEMBERS[:3])
dist.destroy_process_group()
alone = fit(REGRESSION, MEMBERS[:3])
for one, other in zip(fleet.trainings, alone.trainings, strict=True):
    assert_same_training(one, other, 1e-10)
print("the same")
"""


def test_processes_share_the_members(tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED.format(tests=str(Path(__file__).parent)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same") == 2
