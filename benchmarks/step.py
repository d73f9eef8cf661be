"""What priors cost a training step: eager PyTorch, batch 128, hidden 1024/512/256, SGD.

Claims: sparse at most 1.10 times plain at 3,072 inputs and 1.30 times at 5; dense is shown with its ratio of FLOPs.
"""

import subprocess
import sys

import torch
import torch.nn.functional as F
from timing import compare, finish, measure

import ganns

HIDDEN = (1024, 512, 256)


def network(kind: str, features: int) -> torch.nn.Module:
    torch.manual_seed(0)
    net = ganns.GaussianMLP(features, 1, HIDDEN, variance="sparse" if kind == "plain" else kind)
    return net.plain() if kind == "plain" else net


def step(kind: str, features: int, compiled: bool = False):
    """One training step as a function without arguments."""
    net = network(kind, features).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, fused=True)
    x, y = torch.randn(128, features), torch.randn(128, 1)

    def loss():
        if kind == "plain":
            return F.mse_loss(net(x), y)
        output, states = ganns.trace(net, x)
        return ganns.total_loss(F.mse_loss(output, y), ganns.inner_loss(states), alpha=0.1)

    if compiled:
        loss = torch.compile(loss, fullgraph=True)

    def run():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def flops(kind: str, features: int) -> int:
    """FLOPs of the matrix products in a step; the first layer needs no gradient of its input."""
    widths = [features, *HIDDEN]
    total = 3 * 256
    for depth, (wide, units) in enumerate(zip(widths, HIDDEN, strict=False)):
        matrices = 1 if kind != "dense" else 2 + (depth > 0)
        total += matrices * wide * units * (2 if depth == 0 else 3)
    return 2 * 128 * total


def peak(kind: str, features: int) -> float:
    """Peak memory of the third training step of a process of its own, beyond what importing takes, in MB (Linux)."""
    code = (
        f"import sys; sys.path.insert(0, {sys.path[0]!r}); import step\n"
        "def memory(field):\n"
        "    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(field))\n"
        "before = memory('VmRSS')\n"
        f"run = step.step({kind!r}, {features})\n"
        "run(), run()\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # forget the peak of importing
        "run()\n"
        "print(memory('VmHWM') - before)"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) / 1024


def main() -> None:
    results = {}
    for features in (5, 3072):
        contestants = {kind: step(kind, features) for kind in ("plain", "constant", "sparse", "dense")}
        contestants |= {f"{kind}, compiled": step(kind, features, True) for kind in ("plain", "sparse")}
        seconds = measure(contestants, rounds=10, calls=40)
        eager = {name: values for name, values in seconds.items() if "compiled" not in name}
        compiled = {name: values for name, values in seconds.items() if "compiled" in name}
        rows = compare(f"training step, {features} inputs", eager) | compare("the same, torch.compile", compiled)
        memory = {kind: peak(kind, features) for kind in ("plain", "sparse", "dense")}
        for kind in ("sparse", "dense"):
            rows[kind]["flops"] = flops(kind, features) / flops("plain", features)
            rows[kind]["memory"] = memory[kind] / memory["plain"]
            print(
                f"{kind}: {rows[kind]['flops']:.2f} x the FLOPs, {rows[kind]['memory']:.2f} x the peak memory of plain"
            )
        results[f"{features} inputs"] = rows
    finish("step", results)


if __name__ == "__main__":
    main()
