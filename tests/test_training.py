"""Fleets: what a member learns depends on nothing but itself."""

import platform
import shutil
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ganns
from ganns import Member, Recipe, fit_fleet
from ganns.kernels import FUNCTIONS, Kernels
from ganns.stacked import Shape, initial_state

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


PAPER, MODERN = (
    {
        "mean": make("regression"),
        "variance": replace(make("regression"), head="variance", learning_rate=0.01),
        "beta": replace(make("regression"), head="variance", beta=0.5, learning_rate=0.01),
        "classes": make("classification"),
    }
    for make in (Recipe.paper, Recipe.modern)
)
RECIPES = [
    pytest.param(variance, replace(recipe, epochs=5, batch_size=12, step_epoch=3, warmup_epochs=1), id=name)
    for variance in (None, "constant", "sparse", "dense")
    for name, recipe in {
        f"{variance}-paper-mean-dropout-decay": Recipe.paper("regression", weight_decay=True, dropout=True),
        f"{variance}-paper-variance-dropout": replace(PAPER["variance"], dropout=0.1),
        f"{variance}-paper-beta-decay": replace(PAPER["beta"], weight_decay=1e-4),
        f"{variance}-paper-classes-decay": replace(PAPER["classes"], weight_decay=1e-4),
        f"{variance}-modern-mean": MODERN["mean"],
        f"{variance}-modern-variance": MODERN["variance"],
        f"{variance}-modern-beta-dropout": replace(MODERN["beta"], dropout=0.1),
        f"{variance}-modern-classes-dropout": replace(MODERN["classes"], dropout=0.3),
    }.items()
]


@pytest.mark.parametrize(("variance", "recipe"), METHODS + RECIPES)
def test_a_fleet_equals_its_members(variance, recipe):
    recipe = replace(recipe, epochs=5)  # of ten steps
    together = fit(recipe, MEMBERS, variance=variance)
    for member, training in zip(MEMBERS, together.trainings, strict=True):
        (alone,) = fit(recipe, [member], variance=variance).trainings
        assert len(training.history["base"]) == 5
        assert np.isfinite(training.history["base"]).all()
        assert_same_training(training, alone, 1e-10)


@pytest.mark.parametrize("variance", [None, "sparse", "dense"])
@pytest.mark.parametrize("change", [{"dropout": 0.4}, {"weight_decay": 0.1}, {"dropout": 0.4, "weight_decay": 0.1}])
def test_what_only_one_member_has_does_not_change_the_others(variance, change):
    fleet = fit(REGRESSION, [Member(seed=1), Member(seed=2, **change), Member(seed=3)], variance=variance)
    plain = fit(REGRESSION, [Member(seed=2)], variance=variance).trainings[0]
    assert fleet.history[1]["base"][-1] != plain.history["base"][-1]
    for place, member in enumerate((Member(seed=1), Member(seed=2, **change), Member(seed=3))):
        assert_same_training(fleet.trainings[place], fit(REGRESSION, [member], variance=variance).trainings[0], 1e-10)


@pytest.mark.parametrize("recipe", [REGRESSION, replace(CLASSES, optimizer="adamw", dropout=0.2, weight_decay=0.1)])
@pytest.mark.parametrize("variance", [None, "sparse", "dense"])
def test_where_parameters_and_batches_lie_changes_nothing(monkeypatch, variance, recipe):
    """Large fleets keep matrices by themselves and ask for each batch in its turn, and evaluate in pieces."""
    together = fit(recipe, MEMBERS, variance=variance)
    monkeypatch.setitem(ganns.stacked._SHARED, "cpu", 0)
    monkeypatch.setitem(ganns.loop.AHEAD, "cpu", 0)
    monkeypatch.setitem(ganns.loop.EVALUATED, "cpu", 2000)
    for one, other in zip(together.trainings, fit(recipe, MEMBERS, variance=variance).trainings, strict=True):
        assert_same_training(one, other, 1e-10)


def test_a_member_does_not_depend_on_its_company():
    """In another order, with others and under another name of its split, it starts and ends the same."""
    shuffled = [Member(seed=9, alpha=3.0), MEMBERS[2], MEMBERS[0], replace(MEMBERS[1], split=1)]
    one, other = fit(REGRESSION, MEMBERS), fit(REGRESSION, shuffled)
    for mine, theirs in ((0, 2), (1, 3), (2, 1)):
        first, second = one.trainings[mine], other.trainings[theirs]
        assert_same_training(first, second, 1e-10)
        for part, same in zip(first.split, second.split, strict=True):
            np.testing.assert_array_equal(part, same)


COMPILED = {
    "sparse": replace(REGRESSION, epochs=1, dropout=0.2, weight_decay=1e-3),
    "dense": replace(CLASSES, epochs=1, optimizer="adamw", weight_decay=0.1),
}


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
@pytest.mark.parametrize(("variance", "recipe"), COMPILED.items())
def test_compiled_functions_give_the_same(monkeypatch, variance, recipe):
    """What a GPU compiles, compiled for a CPU, with parameters and batches where a GPU has them."""
    exact = fit(recipe, MEMBERS, variance=variance)
    compiled = {function.__name__: torch.compile(function, dynamic=True) for function in FUNCTIONS}
    monkeypatch.setattr(ganns.loop, "kernels", lambda wanted: Kernels(**compiled))
    monkeypatch.setitem(ganns.stacked._SHARED, "cpu", 0)
    monkeypatch.setitem(ganns.loop.AHEAD, "cpu", 0)
    for one, other in zip(exact.trainings, fit(recipe, MEMBERS, variance=variance).trainings, strict=True):
        assert_same_training(one, other, 1e-8)


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


def stepped(net):
    """SGD, and its rate in each of forty steps: divided by ten after twenty."""
    return torch.optim.SGD(net.parameters(), 0.05, weight_decay=1e-3), [0.05] * 20 + [0.005] * 20


def warmed(net):
    """AdamW, and its rate in each of forty steps: a rise over ten of them, and half a cosine."""
    rates = [0.01 * (step + 1) / 10 for step in range(10)]
    rates += [0.005 * (1 + np.cos(np.pi * step / 30)) for step in range(30)]
    return torch.optim.AdamW(net.parameters(), 0.01, weight_decay=0.1), rates


LOOPS = {
    "sgd": (replace(REGRESSION, schedule="step", step_epoch=2, weight_decay=1e-3), stepped),
    "adamw": (
        replace(
            CLASSES, optimizer="adamw", learning_rate=0.01, schedule="cosine", warmup_epochs=1, weight_decay=0.1
        ),
        warmed,
    ),
}  # fmt: skip


@pytest.mark.parametrize("variance", ["sparse", "dense"])
@pytest.mark.parametrize("name", LOOPS)
def test_training_is_that_of_an_ordinary_loop(name, variance):
    """The same splits, order of rows and schedule, written as anybody would, with autograd and PyTorch's optimizers."""
    recipe, optimize = LOOPS[name]
    training = fit(replace(recipe, epochs=4), [Member(seed=3)], variance=variance).trainings[0]
    x, y = table(recipe)
    regression = recipe.task == "regression"
    x, y = training.scaling.features(x), y.unsqueeze(1) if regression else y
    torch.manual_seed(3)
    net = ganns.GaussianMLP(5, 1 if regression else 3, (40, 30, 20), variance).double()
    optimizer, rates = optimize(net)
    best, best_state, seen = float("-inf"), {}, []
    for epoch in range(4):
        for rows in order_of_rows(training.split.train, seed=3, epoch=epoch).split(12):
            optimizer.param_groups[0]["lr"] = rates[len(seen)]
            output, states = ganns.trace(net, x[rows])
            base = (
                nn.functional.mse_loss(output, y[rows]) if regression else nn.functional.cross_entropy(output, y[rows])
            )
            inner = ganns.inner_loss(states)
            optimizer.zero_grad()
            ganns.total_loss(base, inner, 1.0).backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            seen.append([base.item(), inner.item(), (base / inner).abs().item(), norm.item()])
        with torch.no_grad():
            output, truth = net(x)[training.split.validation], y[training.split.validation]
            good = -(output - truth).abs().mean() if regression else (output.argmax(1) == truth).double().mean()
        if good.item() > best:
            best, best_state = good.item(), {name: p.clone() for name, p in net.state_dict().items()}
    for series, values in zip(("base", "inner", "coefficient", "norm"), np.transpose(seen), strict=True):
        np.testing.assert_allclose(training.history[series], values.reshape(4, 10).mean(1), rtol=1e-6, err_msg=series)
    assert training.best_metric == pytest.approx(abs(best))
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
    before = torch.random.get_rng_state()
    assert isinstance(fleet[0], ganns.GaussianMLP)
    assert torch.equal(before, torch.random.get_rng_state())
    plain = fit(REGRESSION, [Member()], variance=None)[0]
    assert type(plain) is nn.Sequential
    assert not [key for key in plain.state_dict() if "prior" in key]


@pytest.mark.parametrize(("rate", "good"), [(0.3, 1), (1e18, 0)])  # breaks after one good epoch, or at once
def test_a_member_that_diverges_is_left_alone(rate, good):
    wild = Member(seed=5, learning_rate=rate)
    recipe = replace(REGRESSION, clip_norm=None, learning_rate=1e-3, schedule="cosine", warmup_epochs=8, epochs=12)
    fleet = fit(recipe, [Member(seed=1), wild, Member(seed=2)])
    lost = fleet.trainings[1]
    assert (lost.diverged, lost.best_epoch) == (good + 1, good)
    assert len(lost.history["base"]) == lost.diverged
    assert not np.isfinite(lost.history["base"][-1])
    kept = fit(replace(recipe, epochs=1), [wild]).trainings[0].parameters if good else initial_state(fleet.shape, 5)
    for name, values in lost.parameters.items():
        assert_close(values, kept[name].double(), rtol=1e-10, atol=1e-10)
    assert fleet[1](lost.scaling.features(table(recipe)[0])).isfinite().all()
    for place, seed in ((0, 1), (2, 2)):
        (alone,) = fit(recipe, [Member(seed=seed)]).trainings
        assert_same_training(fleet.trainings[place], alone, 1e-10)
        assert alone.diverged is None


def test_a_loss_that_is_infinite_is_divergence_without_any_nan():
    """Clipping turns an infinite norm into a step of nothing, so that nothing else tells."""
    x, y = table(REGRESSION)
    recipe = replace(REGRESSION, standardise_targets=False, clip_norm=10.0, epochs=2)
    options = {"variance": None, "hidden": (8,), "dtype": torch.float32, "device": "cpu", "progress": False}
    (lost,) = fit_fleet(x, 1e25 * y, recipe, [Member()], **options).trainings
    assert np.isposinf(lost.history["base"]).all()
    assert not any(np.isnan(series).any() for series in lost.history.values())
    assert (lost.diverged, lost.best_epoch) == (1, 0)


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
    for place in (np.argmin(lengths), np.argmax(lengths)):
        assert_same_training(fleet.trainings[place], fit(recipe, [Member(seed=int(place))]).trainings[0], 1e-10)


def test_wide_members_take_turns_on_a_cpu_and_come_to_the_same():
    wide = {"hidden": (300, 300), "variance": "sparse"}
    recipe = replace(REGRESSION, epochs=1)
    fleet = fit(recipe, MEMBERS[:2], **wide)
    for member, training in zip(MEMBERS, fleet.trainings, strict=False):
        assert_same_training(training, fit(recipe, [member], **wide).trainings[0], 1e-10)


FAULTS = """
import resource
import torch
from ganns.training import _keep_freed_memory
_keep_freed_memory()
def allocated():
    return [torch.ones(2**20) for _ in range(10)]
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    allocated()
before = faults()
for _ in range(20):
    allocated()
print((faults() - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc's way with memory")
def test_freed_memory_is_kept_for_the_next_step():
    """Forty megabytes are ten thousand pages, which would be faulted in anew by every step."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100


def test_a_fleet_that_is_too_large_is_split(monkeypatch):
    """Groups are trained one after another, and the memory of one is free before the next begins."""
    alive, most = weakref.WeakSet(), []
    begin = ganns.loop.Group.__init__

    def counted(group, *given):
        alive.add(group)
        most.append(len(alive))
        begin(group, *given)

    monkeypatch.setattr(ganns.loop.Group, "__init__", counted)
    members = [Member(seed=seed) for seed in range(5)]
    whole = fit(REGRESSION, members)
    monkeypatch.setattr(ganns.training, "_together", lambda *given: 2)
    most.clear()
    told = []
    parts = fit(REGRESSION, members, progress=told.append)
    for one, other in zip(whole.trainings, parts.trainings, strict=True):
        assert_same_training(one, other, 1e-10)
    assert most == [1, 1, 1]
    assert [progress.share for progress in told] == pytest.approx([0.4, 0.8, 1.0])
    assert [progress.running for progress in told] == [3, 1, 0]
    assert told[-1].best == min(one.best_metric for one in whole.trainings)
    assert told[-1].median == np.median([one.best_metric for one in whole.trainings])


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
def test_many_rows_are_evaluated_in_parts(monkeypatch, device):
    whole = fit(REGRESSION, MEMBERS, device=device)
    monkeypatch.setitem(ganns.loop.EVALUATED, device, 10 * len(MEMBERS) * 40)  # ten rows of each member
    for one, other in zip(whole.trainings, fit(REGRESSION, MEMBERS, device=device).trainings, strict=True):
        assert_same_training(one, other, 1e-10)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_group_fits_into_the_memory_of_a_gpu(monkeypatch, optimizer):
    gigabytes = {"mem_get_info": (20, 80), "memory_reserved": 30, "memory_allocated": 10}  # 40 are free
    for name, given in gigabytes.items():
        size = tuple(2**30 * n for n in given) if isinstance(given, tuple) else 2**30 * given
        monkeypatch.setattr(torch.cuda, name, lambda device, size=size: size)
    shape = Shape(12288, 1, (1024, 512, 256), "sparse")
    recipe = replace(REGRESSION, optimizer=optimizer)
    count = ganns.training._together(shape, recipe, torch.device("cuda"), torch.float32)
    weights = 4 * sum(p.numel() for p in shape.network(meta=True).parameters())
    copies = {"sgd": 4, "adamw": 6}[optimizer]  # parameters, the best, a gradient, room for one more; and two moments
    assert 0.5 < count * copies * weights / (40 * 2**30) < 0.6
    assert ganns.training._together(replace(shape, features=10**9), recipe, torch.device("cuda"), torch.float32) == 1


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
    classes = replace(CLASSES, features="unit", epochs=1)
    fleet = fit_fleet(pictures, torch.arange(120) % 3, classes, hidden=(8,), dtype=torch.float64, progress=False)
    assert fleet.trainings[0].scaling.features(pictures[:1]).dtype == fleet[0].head.weight.dtype == torch.float64


def test_data_are_taken_as_they_come():
    x, y = (t.numpy() for t in table(REGRESSION))
    wanted = fit_fleet(x, y, REGRESSION, hidden=(8,), progress=False)
    frozen, backwards = x.copy(), x[::-1].copy()[::-1]
    frozen.setflags(write=False)
    for rows in (frozen, backwards, x.tolist(), torch.tensor(x, requires_grad=True)):
        found = fit_fleet(rows, y, REGRESSION, [Member(seed=np.int64(0))], hidden=np.array([8]), progress=False)
        assert_same_training(found.trainings[0], wanted.trainings[0], 0.0)


def test_progress_is_told():
    told = []
    fit(replace(REGRESSION, epochs=40), MEMBERS, progress=told.append)
    assert told[-1].share == 1.0
    assert told[-1].epochs == 40
    assert told[-1].best <= told[-1].median
    assert told[-1].balance > 0
    assert told[-1].seconds_left == 0
    told.clear()
    fit(replace(REGRESSION, epochs=4000, patience=1), MEMBERS, progress=told.append)
    assert told[-1].epochs < 4000
    assert (told[-1].share, told[-1].running, told[-1].seconds_left) == (1.0, 0, 0.0)


def test_nothing_is_printed_where_there_is_no_terminal(capfd):
    fit(REGRESSION, MEMBERS, progress=True)
    assert capfd.readouterr() == ("", "")


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
        ({"recipe": CLASSES, "y": torch.arange(40) - 1}, "labels from -1 to 38 in 40 rows; number the classes"),
        (
            {"recipe": CLASSES, "y": torch.arange(40) % 3 + 1},
            "labels from 1 to 3 in 40 rows; number the classes from 0",
        ),
        ({"recipe": CLASSES, "y": 1000 * torch.arange(40)}, "labels from 0 to 39000 in 40 rows"),
        (
            {"recipe": replace(REGRESSION, split=(0.99, 0.005, 0.005), batch_size=1)},
            "40 rows leave none for validation",
        ),
        ({"recipe": "paper"}, "recipe='paper'; give ganns.Recipe.paper"),
        ({"y": torch.zeros(40, 0)}, r"y has shape \(40, 0\)"),
        ({"device": "mps"}, "device='mps'"),
        ({"device": "cpu", "compiled": True}, "compiled=True with device='cpu'"),
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
folder = {folder!r}
fleet = fit(REGRESSION, MEMBERS[:3], checkpoint=folder)
told = []
again = fit(REGRESSION, MEMBERS[:3], checkpoint=folder, progress=told.append)
assert not told  # both parts were there
single = fit(REGRESSION, MEMBERS[:1])  # one process has nothing to do
dist.destroy_process_group()
alone = fit(REGRESSION, MEMBERS[:3])
for some in (fleet, again, single):
    for one, other in zip(some.trainings, alone.trainings, strict=some is not single):
        assert_same_training(one, other, 1e-10)
print("the same")
"""


def test_processes_share_the_members(tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED.format(tests=str(Path(__file__).parent), folder=str(tmp_path / "run")))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same") == 2
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["part-0-of-2", "part-1-of-2"]


def test_processes_of_a_host_take_a_gpu_each(monkeypatch):
    for name, value in {"is_available": True, "current_device": 2, "device_count": 4}.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert ganns.training._device(None) == torch.device("cuda:2")
    monkeypatch.setenv("LOCAL_RANK", "5")
    assert ganns.training._device(None) == torch.device("cuda:1")
    assert ganns.training._device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert ganns.training._device(None) == torch.device("cpu")
    with pytest.raises(ValueError, match="device='cuda', but PyTorch finds no GPU"):
        ganns.training._device("cuda")
