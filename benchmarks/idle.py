"""What an inserted prior costs a forward pass that nobody watches: evaluation, no trace, batch 128.

Claim: at most 1.02 times the same network without priors.
"""

import copy

import torch
from timing import compare, finish, measure
from torch import nn

import ganns


def main() -> None:
    torch.manual_seed(0)
    results = {}
    networks = {
        "multilayer perceptron": (
            nn.Sequential(
                *(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU()),
                *(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)),
            ),
            torch.randn(128, 784),
        ),
        "convolutions": (
            nn.Sequential(
                *(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU()),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
            ),
            torch.randn(128, 3, 32, 32),
        ),
    }
    for name, (plain, x) in networks.items():
        watched = ganns.insert(copy.deepcopy(plain), example=x[:2]).eval()
        plain.eval()
        contestants = {"plain": lambda net=plain, x=x: net(x), "with priors": lambda net=watched, x=x: net(x)}
        with torch.no_grad():
            results[name] = compare(f"idle forward, {name}", measure(contestants, rounds=60, calls=10))
    finish("idle", results)


if __name__ == "__main__":
    main()
