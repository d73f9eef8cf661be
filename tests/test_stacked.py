"""A training step in closed form against autograd: the library's own network and loss, and PyTorch's optimizers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ganns
from ganns import kernels, stacked
from ganns.heads import Classes, Mean, Variance, split_variance
from ganns.loop import kernels as make_kernels
from ganns.stacked import Hyper, Shape, Stack, Trainer, initial_state

ALPHAS, RATES, DROPOUTS, DECAYS = (0.0, 0.3, 1.0), (0.05, 0.02, 0.1), (0.0, 0.2, 0.5), (0.0, 1e-2, 1e-3)
FLOORS, KEYS = (0.5, 0.1, 1.0), (11, 22, 33)


class _SameDropout(nn.Module):
    """The dropout of the fleet, one member at a time, for an ordinary network: a call a layer."""

    def __init__(self, key, probability):
        super().__init__()
        self.key, self.p, self.count, self.depth = key, probability, 0, 0

    def forward(self, activity):
        number = torch.tensor([[[self.key]]])
        dropped, _ = kernels.drop(
            activity.unsqueeze(0),
            number,
            torch.tensor([self.count]),
            self.depth,
            torch.tensor([[[self.p]]], dtype=activity.dtype),
        )
        self.depth += 1
        return dropped.squeeze(0)


def _column(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype).view(-1, 1, 1)


def _hyper(dropout, decay):
    zeros = (0.0,) * 3
    return Hyper(
        alpha=_column(ALPHAS), floor=_column(FLOORS), learning_rate=_column(RATES),
        weight_decay=_column(DECAYS if decay else zeros), dropout=_column(DROPOUTS if dropout else zeros),
        key=_column(KEYS, torch.int64),
    )  # fmt: skip


def _by_autograd(member, shape, head, batches, optimizer, clip, dropout, decay):
    """Train one member as anybody would: modules, autograd, PyTorch's clipping and optimizer."""
    net = ganns.GaussianMLP(
        shape.features, shape.outputs, shape.hidden, shape.variance or "constant", floor=FLOORS[member]
    )
    net = net.double()
    net.load_state_dict(initial_state(shape, member))
    drop = net.dropout = _SameDropout(KEYS[member], DROPOUTS[member] if dropout else 0.0)
    if shape.variance is None:
        for layer in net.layers:
            layer.prior.requires_grad_(False)
    learned = [parameter for parameter in net.parameters() if parameter.requires_grad]
    numbers = {"lr": RATES[member], "weight_decay": DECAYS[member] if decay else 0.0}
    stepper = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer](learned, **numbers)
    for count, (x, y) in enumerate(batches):
        drop.count, drop.depth = count, 0
        output, states = ganns.trace(net, x[member])
        base = _base(head, output, y[member])
        loss = base
        if shape.variance is not None:
            loss = ganns.total_loss(base, ganns.inner_loss(states), ALPHAS[member])
        stepper.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(learned, clip)
        stepper.step()
    return net.state_dict(), base, norm


def _base(head, output, y):
    if isinstance(head, Classes):
        return F.cross_entropy(output, y)
    if isinstance(head, Mean):
        return F.mse_loss(output, y)
    mean, variance = split_variance(output)
    weight = variance.detach() ** head.beta
    return (weight * F.gaussian_nll_loss(mean, y, variance, reduction="none", eps=1e-12)).mean()


@pytest.mark.parametrize("shared", [2**14, 0], ids=["in-one-buffer", "by-themselves"])
@pytest.mark.parametrize("variance", [None, "constant", "sparse", "dense"])
@pytest.mark.parametrize(
    ("head", "optimizer", "dropout", "decay", "hidden"),
    [
        (Mean(), "sgd", False, False, (7, 5)),
        (Mean(), "sgd", True, True, (40, 30, 20)),  # wide: norms come from Gram matrices
        (Classes(), "sgd", True, False, (40, 30)),
        (Variance(), "sgd", False, True, (12,)),
        (Variance(beta=0.5), "adamw", True, True, (7, 5)),
        (Classes(), "adamw", False, False, (40, 30, 20)),
    ],
)
def test_steps_are_those_of_autograd(monkeypatch, shared, variance, head, optimizer, dropout, decay, hidden):
    monkeypatch.setitem(stacked._SHARED, "cpu", shared)
    targets = 4 if isinstance(head, Classes) else 2
    shape = Shape(6, head.outputs(targets), hidden, variance)
    batches = [
        (
            torch.randn(3, 8, 6, dtype=torch.float64),
            torch.randint(0, 4, (3, 8)) if isinstance(head, Classes) else torch.randn(3, 8, 2, dtype=torch.float64),
        )
        for _ in range(5)
    ]
    clip = 0.5
    stack = Stack(shape, [initial_state(shape, member) for member in range(3)], torch.device("cpu"), torch.float64)
    trainer = Trainer(stack, head, _hyper(dropout, decay), optimizer, clip, make_kernels(False))
    for count, (x, y) in enumerate(batches):
        losses = trainer.step(x, y, torch.ones(len(batches), dtype=torch.float64), torch.tensor([count]))
    for member in range(3):
        wanted, base, norm = _by_autograd(member, shape, head, batches, optimizer, clip, dropout, decay)
        for name, values in stack.parameters().items():
            torch.testing.assert_close(
                values[member], wanted[name], rtol=1e-9, atol=1e-11, msg=lambda m, n=name: f"{n}: {m}"
            )
        torch.testing.assert_close(losses.base[member], base)
        torch.testing.assert_close(losses.norm[member], norm)


def test_dropout_drops_each_unit_as_often_as_asked_and_independently():
    """Of members, steps, layers, rows and units; what stays is scaled so that its mean is the same."""
    activity = torch.ones(3, 100, 100, dtype=torch.float64)
    probability, key = _column((0.0, 0.3, 0.3)), _column((5, 5, 6), torch.int64)
    seen = {
        (step, depth): kernels.drop(activity, key, torch.tensor([step]), depth, probability)
        for step in (0, 1, 7)
        for depth in (0, 1)
    }
    for dropped, factor in seen.values():
        assert torch.equal(dropped, factor)
        assert (dropped[0] == 1).all()
        assert set(dropped[1:].unique().tolist()) == {0.0, 1 / 0.7}
        assert (dropped[1:] == 0).double().mean((1, 2)).sub(0.3).abs().max() < 4 * (0.3 * 0.7 / 10_000) ** 0.5
        assert (dropped[1:] == 0).double().mean(1).sub(0.3).abs().max() < 5 * (0.3 * 0.7 / 100) ** 0.5
    masks = torch.cat([(dropped[1:] == 0).flatten(1) for dropped, _ in seen.values()]).double()
    assert torch.corrcoef(masks).fill_diagonal_(0).abs().max() < 5 / 100
