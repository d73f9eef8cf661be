"""What a hundred draws cost, in forward passes of the plain network: 12,288 inputs, batch 128, hidden 1024/512/256.

Claims: `sample` at most 8 plain passes and at least 10 times faster than 100 passes of dropout left on; `moments` at
most 3 plain passes.
"""

import torch
from timing import compare, finish, measure

import ganns

FEATURES, DRAWS = 12_288, 100


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(128, FEATURES)
    results = {}
    for variance in ("sparse", "dense"):
        net = ganns.GaussianMLP(FEATURES, 1, variance=variance).eval()
        plain = net.plain()
        dropout = ganns.GaussianMLP(FEATURES, 1, dropout=0.1).plain().train()
        with torch.no_grad():
            fast = {
                "plain forward": lambda plain=plain: plain(x),
                "moments": lambda net=net: ganns.moments(net, x, 0.1),
                "sample, 100 draws": lambda net=net: ganns.sample(net, x, draws=DRAWS, gamma=0.1),
            }
            seconds = measure(fast, rounds=12, calls=3)
            if variance == "sparse":
                slow = {
                    "sample, 100 draws": fast["sample, 100 draws"],
                    "100 passes of dropout left on": lambda net=dropout: [net(x) for _ in range(DRAWS)],
                }
                results["against dropout"] = compare("against dropout", measure(slow, rounds=3))
        results[variance] = compare(f"{variance}, {FEATURES} inputs, batch {len(x)}", seconds)
    finish("sampling", results)


if __name__ == "__main__":
    main()
