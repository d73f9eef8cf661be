"""What an ordinary training loop takes for a step, to say how long the study would take one training after another."""

import time

import torch
import torch.nn.functional as F
from torch import Tensor

import ganns
from ganns.heads import make_head, split_variance
from ganns.layers import GaussianMLP
from ganns.stacked import Shape
from ganns.study.records import Job

_WARM, _SECONDS, _MOST = 5, 1.0, 50


def step_seconds(job: Job, variance: str | None, x: Tensor, y: Tensor) -> float:
    """Seconds of one step of one member in eager PyTorch, as most people would write it, on the data's device.

    The median of up to 50 steps, in about a second.
    """
    targets = y.shape[1] if y.ndim == 2 else int(y.max()) + 1
    outputs = make_head(job.recipe.head).outputs(targets)
    shape = Shape(x[0].numel(), outputs, job.hidden, variance)
    with torch.random.fork_rng():
        net = shape.network().to(x.device)
        model = net if variance else net.plain()
        return _median(model.train(), job, x, y)


def _median(model: torch.nn.Module, job: Job, x: Tensor, y: Tensor) -> float:
    optimizers = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    optimizer = optimizers[job.recipe.optimizer](model.parameters(), lr=1e-6)
    taken: list[float] = []
    started = time.perf_counter()
    for number in range(_WARM + _MOST):
        start = time.perf_counter()
        rows = torch.randint(len(x), (job.recipe.batch_size,), device=x.device)
        batch = x[rows].flatten(1).float()
        output, states = ganns.trace(model, batch) if isinstance(model, GaussianMLP) else (model(batch), [])
        loss = _loss(job, output, y[rows])
        if states:
            loss = ganns.total_loss(loss, ganns.inner_loss(states), job.recipe.alpha)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job.recipe.clip_norm or torch.inf)
        optimizer.step()
        if x.is_cuda:
            torch.cuda.synchronize(x.device)
        if number >= _WARM:
            taken.append(time.perf_counter() - start)
        if taken and time.perf_counter() - started > _SECONDS:
            break
    return sorted(taken)[len(taken) // 2]


def _loss(job: Job, output: Tensor, y: Tensor) -> Tensor:
    if job.recipe.task == "classification":
        return F.cross_entropy(output, y)
    if job.recipe.head == "variance":
        mean, variance = split_variance(output)
        return F.gaussian_nll_loss(mean, y, variance)
    return F.mse_loss(output, y)
