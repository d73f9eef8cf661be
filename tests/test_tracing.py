import threading

import pytest
import torch
from torch import nn

import ganns
from ganns import tracing


def net():
    return ganns.GaussianMLP(3, 1, hidden=(4, 2))


def test_nothing_is_kept_after_a_trace():
    model, x = net(), torch.randn(5, 3)
    before = {name: dict(module.__dict__) for name, module in model.named_modules()}
    ganns.trace(model, x)
    assert tracing.current() is None
    for name, module in model.named_modules():
        assert dict(module.__dict__) == before[name]


def test_a_pass_closes_after_an_error():
    with pytest.raises(ValueError, match="features"):
        ganns.trace(net(), torch.zeros(1, 4))
    assert tracing.current() is None


def test_passes_nest():
    model, x = net(), torch.randn(5, 3)

    def outer(x):
        assert len(ganns.trace(model, x).states) == 2
        return model(x)

    assert len(ganns.trace(outer, x).states) == 2


def test_threads_do_not_see_each_other():
    model, x, gate, seen = net(), torch.randn(5, 3), threading.Barrier(2), []

    def slowly(x):
        gate.wait(timeout=30)
        output = model(x)
        gate.wait(timeout=30)
        return output

    threads = [threading.Thread(target=lambda: seen.append(len(ganns.trace(slowly, x).states))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [2, 2]


def test_keyword_arguments_reach_the_model():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net()

        def forward(self, x, *, scale):
            return scale * self.inner(x)

    model, x = Scaled(), torch.randn(5, 3)
    assert torch.equal(ganns.trace(model, x, scale=2.0).output, 2 * model.inner(x))


def test_an_activity_changed_in_place_afterwards_is_refused():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            y = self.relu(x)
            y += x
            return y

    block = ganns.insert(Block(), example=torch.zeros(1, 3))
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"prior 0 .* was changed in place"):
        ganns.trace(block, torch.randn(2, 3))


def test_tracing_a_compiled_model_outside_the_graph():
    model, x = net(), torch.randn(5, 3)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        output, states = ganns.trace(compiled, x)
        expected = ganns.trace(model, x)
        torch.testing.assert_close(output, expected.output)
        torch.testing.assert_close(ganns.inner_loss(states), ganns.inner_loss(expected.states))
    torch.testing.assert_close(compiled(x), model(x))


def test_inductor_compiles_a_whole_loss_step():
    model, x, y = net(), torch.randn(8, 3), torch.randn(8, 1)

    def step(x, y):
        output, states = ganns.trace(model, x)
        return ganns.total_loss(nn.functional.mse_loss(output, y), ganns.inner_loss(states), alpha=0.3)

    torch.compiler.reset()
    loss = torch.compile(step, fullgraph=True)(x, y)
    torch.testing.assert_close(loss, step(x, y))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    for ours, theirs in zip(gradients, torch.autograd.grad(step(x, y), list(model.parameters())), strict=True):
        torch.testing.assert_close(ours, theirs)
