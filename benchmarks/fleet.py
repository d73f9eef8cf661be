"""What a fleet gains: hidden 1024/512/256, batch 64, float32 with tf32 products for every contestant.

On a GPU: steps of fleets of 5 and 35 against one another, against a plain eager loop, and against the least time that
moving the weights takes. On a CPU: five members together against the same one after another in plain eager PyTorch.
"""

import sys
import time
from dataclasses import replace
from itertools import pairwise

import torch
import torch.nn.functional as F
from timing import compare, finish, measure

from ganns.feeding import check_rows, divide, scalings
from ganns.loop import Group
from ganns.recipes import Member, Recipe
from ganns.stacked import Shape
from ganns.training import fit_fleet

HIDDEN = (1024, 512, 256)
BATCH = 64


def recipe(features: int) -> Recipe:
    """The paper's for regression; wide rows are pictures of bytes, divided by 255 on the way."""
    return replace(Recipe.paper("regression"), features="unit" if features > 1000 else "standardised", epochs=10**4)


def data(features: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random rows, enough for so many steps an epoch."""
    rows = round(BATCH * steps / 0.6) + BATCH
    if features > 1000:
        return torch.randint(0, 256, (rows, features), dtype=torch.uint8), torch.randn(rows)
    return torch.randn(rows, features), torch.randn(rows)


def fleet(variance: str | None, features: int, count: int, device: str, steps: int, hidden=HIDDEN):
    """So many steps of a fleet, as a function without arguments."""
    if device == "cpu":  # fit_fleet decides there whether members run together, so it is fit_fleet that is timed
        chosen = replace(recipe(features), epochs=2)
        x, y = data(features, steps)
        members = [Member(seed=seed, split=0) for seed in range(count)]
        return lambda: fit_fleet(x, y, chosen, members, variance=variance, hidden=hidden, progress=False)
    chosen = recipe(features)
    members = [Member(seed=seed, split=0).resolved(chosen) for seed in range(count)]
    rows = check_rows(*data(features, steps), chosen, torch.float32)
    splits = divide(len(rows.x), chosen, members)
    rows = rows.to(torch.device(device))
    scaled = scalings(rows, chosen, members, splits, torch.float32)
    shape = Shape(features, 1, tuple(hidden), variance)
    group = Group(shape, chosen, members, rows, splits, scaled, torch.float32)

    def run():
        for _ in range(steps):
            group.advance()
        torch.cuda.synchronize()

    return run


def loop(features: int, count: int, device: str, steps: int, epochs: int = 1, hidden=HIDDEN):
    """The same steps of plain networks, one after another, as PyTorch is written every day."""
    x, y = (t.to(device) for t in data(features, steps))
    widths = [features, *hidden]

    def one():
        layers = [m for i, o in zip(widths, hidden, strict=False) for m in (torch.nn.Linear(i, o), torch.nn.ReLU())]
        net = torch.nn.Sequential(*layers, torch.nn.Linear(hidden[-1], 1)).to(device)
        optimizer = torch.optim.SGD(net.parameters(), 1e-3)
        validation = torch.arange(len(x) - len(x) // 5, len(x), device=device)
        for _ in range(epochs):
            order = torch.randperm(steps * BATCH, device=device)
            for rows in order.split(BATCH):
                batch = x[rows].float().div_(255) if x.dtype == torch.uint8 else x[rows]
                loss = F.mse_loss(net(batch).squeeze(1), y[rows])
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
                optimizer.step()
            if device == "cpu":  # as fit_fleet does after each epoch
                with torch.no_grad():
                    batch = x[validation].float().div_(255) if x.dtype == torch.uint8 else x[validation]
                    (net(batch).squeeze(1) - y[validation]).abs().mean().item()
        if device != "cpu":
            torch.cuda.synchronize()

    return lambda: [one() for _ in range(count)]


def weights(features: int, hidden=HIDDEN, kind: str = "plain") -> int:
    """Numbers in the matrices of one network; W and K of dense priors are among them."""
    first, *others = (i * o for i, o in pairwise((features, *hidden)))
    return hidden[-1] + (2 * first + 3 * sum(others) if kind == "dense" else first + sum(others))


def work(features: int, hidden=HIDDEN, kind: str = "plain") -> dict[str, float]:
    """Of the matrix products in a step of one network, and of moving its weights three times.

    Forwards, by the weight and by the input; the first layer needs no gradient of its input.
    """
    numbers = weights(features, hidden, kind)
    unneeded = features * hidden[0] * (2 if kind == "dense" else 1)
    return {"gigaflops": 2e-9 * BATCH * (3 * numbers - unneeded), "gigabytes": 3e-9 * 4 * numbers}


def copy_bandwidth() -> float:
    """Bytes a second that a copy on the device reads and writes."""
    source = torch.empty(2**30, device="cuda", dtype=torch.float32)
    target = torch.empty_like(source)
    seconds = min(_timed(lambda: [target.copy_(source) for _ in range(5)]) for _ in range(4))
    return 2 * 5 * source.numel() * 4 / seconds


def _timed(run) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def on_gpu() -> dict:
    """Steps of fleets in microseconds, and the four claims."""
    bandwidth, results, steps = copy_bandwidth(), {}, 150
    print(f"{torch.cuda.get_device_name()}; a copy moves {bandwidth / 1e12:.2f} TB/s")
    for features in (5, 12288):
        loop(features, 1, "cuda", steps)()
        eager = min(_timed(loop(features, 1, "cuda", steps)) for _ in range(3)) / steps
        for count in (5, 35):
            kinds = {
                str(kind or "plain"): fleet(kind, features, count, "cuda", steps) for kind in (None, "sparse", "dense")
            }
            seconds = {name: [t / steps for t in times] for name, times in measure(kinds, rounds=5).items()}
            rows = compare(f"a step, {count} members, {features} inputs", seconds)
            for name, row in rows.items():
                row |= {unit: count * amount for unit, amount in work(features, kind=name).items()}
                floor = 1e9 * row["gigabytes"] / bandwidth
                row |= {
                    "floor_ms": 1e3 * floor,
                    "over_floor": row["ms"] / (1e3 * floor),
                    "eager_loop_ms": 1e3 * eager,
                    "faster_than_loop": 1e3 * eager * count / row["ms"],
                }
                print(
                    f"{name}: {row['gigaflops']:.1f} GFLOP, {row['gigabytes']:.3f} GB, {row['over_floor']:.2f} x the "
                    f"floor of {1e6 * floor:.0f} µs; a member's share is "
                    f"{row['faster_than_loop']:.0f} x faster than a plain eager step of {1e6 * eager:.0f} µs"
                )
            results[f"{count} members, {features} inputs"] = rows
            del kinds
            torch.cuda.empty_cache()
    return {"device": torch.cuda.get_device_name(), "bandwidth": bandwidth, **results}


def on_cpu() -> dict:
    """Five members by fit_fleet and one after another, everything included: data, evaluation, best weights."""
    results = {}
    for hidden, features, steps in (((64, 64), 5, 100), (HIDDEN, 5, 20), (HIDDEN, 784, 20), (HIDDEN, 3072, 10)):
        contestants = {
            "plain loop": loop(features, 5, "cpu", steps, epochs=2, hidden=hidden),
            "plain fleet": fleet(None, features, 5, "cpu", steps, hidden),
            "sparse fleet": fleet("sparse", features, 5, "cpu", steps, hidden),
        }
        rows = compare(f"five members, {features} inputs, hidden {hidden}", measure(contestants, rounds=5))
        for row in rows.values():  # of five members in all steps, evaluations not counted
            row |= {unit: 5 * 2 * steps * amount for unit, amount in work(features, hidden).items()}
        for name in ("plain fleet", "sparse fleet"):
            speed = rows[name]["gigaflops"] / (1e-3 * rows[name]["ms"])
            print(f"{name}: {1 / rows[name]['ratio']:.2f} x as fast as the plain loop, {speed:.0f} GFLOP a second")
        results[f"{features} inputs, hidden {hidden}"] = rows
    return results


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"
    finish("fleet", on_gpu() if device == "cuda" else on_cpu())
