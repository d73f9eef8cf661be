"""Draws docs/_static/picture.svg: what a network with priors knows about where its data were.

python docs/picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import ganns

BLUE, ORANGE, GREY = "#2f6db3", "#d9822b", "#6b7280"


def main() -> None:
    torch.manual_seed(3)
    x = torch.cat([torch.rand(500, 1) * 1.6 - 2.2, torch.rand(500, 1) * 1.6 + 0.6])
    x = x[torch.randperm(len(x))]
    y = torch.sin(2 * x) + (0.08 + 0.12 * (x > 0)) * torch.randn_like(x)
    net = ganns.GaussianMLP(1, 1, hidden=(64, 64))
    optimizer = torch.optim.Adam(net.parameters(), 0.005)
    for _ in range(800):
        output, states = ganns.trace(net, x[:700])
        loss = ganns.total_loss(F.mse_loss(output, y[:700]), ganns.inner_loss(states), alpha=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    grid = torch.linspace(-4, 4, 400).unsqueeze(1)
    prediction = ganns.predict(net, grid, ganns.calibrate(net, x[700:], y[700:], "regression"))
    lower, upper = (bound.squeeze(1) for bound in prediction.interval(0.9))
    typicality = ganns.Typicality.fit(net, x[:700])(grid)

    plt.rcParams.update({"font.size": 10, "font.family": "sans-serif", "svg.hashsalt": "ganns", "svg.fonttype": "path"})
    figure, (top, bottom) = plt.subplots(
        2, 1, sharex=True, figsize=(8, 4.2), height_ratios=(3, 1.3), layout="constrained"
    )
    line = grid.squeeze(1)
    top.fill_between(line, lower, upper, color=BLUE, alpha=0.18, lw=0, label="90 % interval, calibrated")
    top.plot(line, prediction.mean.squeeze(1), color=BLUE, lw=2, label="prediction")
    top.scatter(x[:700], y[:700], s=5, color=GREY, alpha=0.5, lw=0, label="training rows")
    top.set(ylabel="y", ylim=(-2.6, 2.6))
    top.legend(loc="upper center", ncols=3, frameon=False)
    bottom.fill_between(line, typicality, color=ORANGE, alpha=0.25, lw=0)
    bottom.plot(line, typicality, color=ORANGE, lw=2)
    bottom.set(xlabel="x", ylabel="typicality\nscore", xlim=(-4, 4), ylim=(0, None))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "_static/picture.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
