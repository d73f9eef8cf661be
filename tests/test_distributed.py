"""Two gloo processes against one with the joined batch: the same total loss and the same gradients."""

import os
import sys
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

import ganns

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch is built without gloo")


class Block(nn.Module):
    def __init__(self, wide: int, units: int):
        super().__init__()
        self.linear, self.relu = nn.Linear(wide, units), nn.ReLU()

    def forward(self, x):
        return self.relu(self.linear(x))


def network(kind: str) -> nn.Module:
    torch.manual_seed(0)
    if kind.startswith("inserted"):
        plain = nn.Sequential(Block(3, 16), Block(16, 8), nn.Linear(8, 1))
        return ganns.insert(plain, kind.removeprefix("inserted "), example=torch.zeros(1, 3))
    return ganns.GaussianMLP(3, 1, hidden=(16, 8), variance=kind)


def batch(rows: list[int]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(1)
    x, y = torch.randn(sum(rows), 3), torch.randn(sum(rows), 1)
    return list(x.split(rows)), list(y.split(rows))


def losses(net, x, y):
    output, states = ganns.trace(net, x)
    return F.mse_loss(output, y), ganns.inner_loss(states)


def expected(kind: str, rows: list[int], steps: int):
    net, (x, y) = network(kind), map(torch.cat, batch(rows))
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    totals = []
    for _ in range(steps):
        optimizer.zero_grad()
        total = ganns.total_loss(*losses(net, x, y), alpha=0.3)
        total.backward()
        optimizer.step()
        totals.append(total.detach())
    gradients = {name: p.grad for name, p in net.named_parameters()}
    return torch.stack(totals), gradients


CASES = [
    ("sparse", [8, 8], "ddp"),
    ("sparse", [11, 5], "ddp"),
    ("dense", [11, 5], "ddp"),
    ("inserted dense", [11, 5], "ddp"),
    ("sparse", [11, 5], "accumulate"),
    ("constant", [11, 5], "fsdp"),
    ("sparse", [8, 8], "fsdp"),
    ("dense", [11, 5], "fsdp"),
    ("inserted sparse", [11, 5], "fsdp"),
    ("inserted dense", [11, 5], "fsdp"),
]


def train(rank: int, kind: str, rows: list[int], wrap: str):
    """Three steps of this process's share: total losses, and the gradients of the last step."""
    net, x, y = network(kind), *(part[rank] for part in batch(rows))
    if wrap == "fsdp":
        mesh = dist.init_device_mesh("cpu", (2,))
        for module in net.modules():
            if isinstance(module, ganns.GaussianLayer | Block):
                fully_shard(module, mesh=mesh)
        net = fully_shard(net, mesh=mesh)
    else:
        net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    totals = []
    for _ in range(3):
        optimizer.zero_grad()
        if wrap == "accumulate":
            cut = len(x) // 2
            parts = [(x[:cut], y[:cut]), (x[cut:], y[cut:])]
            total = ganns.accumulate(
                [lambda part=part: (*losses(net, *part), len(part[0])) for part in parts],
                alpha=0.3,
                group=dist.group.WORLD,
            )
        else:
            total = ganns.total_loss(*losses(net, x, y), alpha=0.3, rows=len(x), group=dist.group.WORLD)
            total.backward()
        optimizer.step()
        totals.append(total.detach())
    gradients = {
        name.removeprefix("module."): p.grad.full_tensor() if wrap == "fsdp" else p.grad
        for name, p in net.named_parameters()
    }
    return torch.stack(totals), gradients


def worker(rank: int, folder: str) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meet = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    try:
        torch.save([train(rank, *case) for case in CASES], f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_processes")
    mp.spawn(worker, (str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.xdist_group("distributed")  # one pair of processes for all of them
@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{kind} {rows} {wrap}" for kind, rows, wrap in CASES])
@pytest.mark.usefixtures("double")
def test_two_processes_equal_one(case, two_processes):
    kind, rows, _ = CASES[case]
    totals, gradients = expected(kind, rows, steps=3)
    for results in two_processes:
        ours, our_gradients = results[case]
        assert_close(ours, totals, rtol=1e-10, atol=0)
        assert our_gradients.keys() == gradients.keys()
        for name, gradient in gradients.items():
            assert_close(our_gradients[name], gradient, rtol=1e-9, atol=1e-13)
