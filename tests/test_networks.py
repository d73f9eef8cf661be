"""Any network: every architecture here inherits one suite, from `insert` through training to `strip` and export."""

import copy
import pickle

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from transformers import BertConfig, BertForSequenceClassification, ViTConfig, ViTForImageClassification

import ganns


class Residual(nn.Module):
    """Two blocks whose ReLUs watch a sum; the first prior is bypassed by the skip connection."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)) for _ in range(2)
        )
        self.last = nn.ReLU()
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.last(x).mean((2, 3)))


class Encoder(nn.Module):
    """PyTorch's own transformer encoder, whose activation is a function."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 16), nn.GELU(),
        nn.Linear(16, 4),
    )  # fmt: skip


def vit():
    return ViTForImageClassification(
        ViTConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=8,
            patch_size=4,
            num_labels=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    )  # fmt: skip


def bert():
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            num_labels=4,
            max_position_embeddings=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    )  # fmt: skip


def picture():
    return torch.randn(12, 3, 8, 8)


def words():
    mask = torch.ones(12, 7, dtype=torch.long)
    mask[:, 5:] = 0
    return {"input_ids": torch.randint(0, 30, (12, 7)), "attention_mask": mask}


# name: (builder, input, where, units and positions of each prior)
NETWORKS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)),
        lambda: torch.randn(12, 5),
        None,
        [(8, 1)],
    ),
    "cnn": (cnn, picture, None, [(8, 36), (16, 1)]),
    "residual": (Residual, picture, None, [(8, 64)] * 3),
    "encoder": (Encoder, lambda: torch.randn(12, 5, 8), "encoder.layers.*.dropout", [(16, 5)] * 2),
    "attention": (Encoder, lambda: torch.randn(12, 5, 8), nn.MultiheadAttention, [(8, 5)] * 2),
    "lstm": (Recurrent, lambda: torch.randn(12, 5, 6), nn.LSTM, [(8, 5)]),
    "vit": (
        vit,
        lambda: {"pixel_values": picture()},
        lambda name, _: name.endswith("act_fn") or "activation" in name,
        None,
    ),
    "bert": (bert, words, "*.intermediate_act_fn", [(24, 7)] * 2),
}


def answer(model, x):
    output = model(**x) if isinstance(x, dict) else model(x)
    return getattr(output, "logits", output)


def train(model, x, y, steps=12):
    """A few steps of Adam; returns the total loss before each."""
    optimizer, values = torch.optim.Adam(model.parameters(), 0.01), []
    for _ in range(steps):
        output, states = ganns.trace(answer, model, x)
        loss = ganns.total_loss(F.cross_entropy(output, y), ganns.inner_loss(states), alpha=0.1)
        values.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return values


@pytest.mark.parametrize("name", NETWORKS)
class TestAnyNetwork:
    @pytest.fixture
    def plain(self, name):
        return NETWORKS[name][0]().eval()

    @pytest.fixture
    def x(self, name):
        return NETWORKS[name][1]()

    @pytest.fixture
    def net(self, name, plain, x):
        return ganns.insert(copy.deepcopy(plain), example=x, where=NETWORKS[name][2])

    def test_keys_values_and_outputs_stay(self, net, plain, x):
        before, after = plain.state_dict(), net.state_dict()
        assert [key for key in after if "activity_prior" not in key] == list(before)
        assert all(torch.equal(after[key], before[key]) for key in before)
        assert torch.equal(answer(net, x), answer(plain, x))
        assert torch.equal(ganns.trace(answer, net, x).output, answer(plain, x))
        assert not net.training

    def test_every_prior_sees_its_units(self, net, name, x):
        states = ganns.trace(answer, net, x).states
        expected = NETWORKS[name][3]
        if expected:
            assert [(state.units, state.positions) for state in states] == expected
        assert len(states) == sum(isinstance(module, ganns.ActivityPrior) for module in net.modules())

    def test_total_loss_falls(self, net, x):
        values = train(net.train(), x, torch.randint(0, 4, (12,)))
        assert values[-1] < 0.9 * values[0]

    def test_strip_leaves_the_trained_network_and_nothing_of_ours(self, net, plain, x):
        train(net.train(), x, torch.randint(0, 4, (12,)), steps=2)
        expected = answer(net.eval(), x)
        stripped = ganns.strip(net)
        assert stripped is net
        assert list(stripped.state_dict()) == list(plain.state_dict())
        assert torch.equal(answer(stripped, x), expected)
        assert b"ganns" not in pickle.dumps(stripped)
        assert not any(module._forward_hooks for module in stripped.modules())

    def test_deepcopy_and_pickle_keep_the_priors(self, net, x):
        expected = ganns.inner_loss(ganns.trace(answer, net, x).states)
        for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert torch.equal(ganns.inner_loss(ganns.trace(answer, twin, x).states), expected)

    @pytest.mark.filterwarnings("ignore:draws were computed one after another")
    def test_sampling_disturbs_and_does_not_depend_on_chunks(self, net, x):
        draws = ganns.sample(net, x, draws=6, gamma=0.3)
        assert draws.shape == (6, 12, 4)
        assert draws.std(0).min() > 0
        assert_close(ganns.sample(net, x, draws=3, gamma=0.3, chunk=5), draws[:3], rtol=1e-4, atol=1e-5)
        assert_close(ganns.sample(net, x, draws=2, gamma=0.0), answer(net, x).expand(2, -1, -1), rtol=1e-4, atol=1e-5)

    def test_surprise_sums_up_to_the_inner_loss(self, net, x):
        rows = ganns.surprise(net, x)
        assert rows.shape == (12,)
        assert_close(rows.mean(), ganns.inner_loss(ganns.trace(answer, net, x).states))

    def test_priors_can_be_fitted_afterwards(self, net, plain, x):
        before = ganns.surprise(net, x).mean()
        assert ganns.fit_priors(net, [x] if isinstance(x, dict) else x, updates=20) is net
        assert ganns.surprise(net, x).mean() < before
        after = net.state_dict()
        assert all(torch.equal(after[key], value) for key, value in plain.state_dict().items())


def export(net, x):
    ganns.strip(net).eval()
    with torch.no_grad():
        return torch.export.export(net, () if isinstance(x, dict) else (x,), x if isinstance(x, dict) else None)


@pytest.mark.parametrize("name", ["cnn", "residual", "encoder", "lstm", "vit", "bert"])
@pytest.mark.filterwarnings("ignore:The tensor attributes self.lstm")  # as for any LSTM
def test_stripped_networks_export(name):
    build, make, where, _ = NETWORKS[name]
    x = make()
    net = ganns.insert(build(), example=x, where=where).eval()
    expected = answer(net, x)
    program = export(net, x)
    assert_close(answer(program.module(), x), expected)


@pytest.mark.parametrize("name", ["cnn", "residual", "gaussian mlp"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_stripped_networks_run_in_onnxruntime(name, tmp_path):
    if name == "gaussian mlp":
        x, net = torch.randn(12, 5), ganns.GaussianMLP(5, 4, hidden=(8, 6)).eval()
    else:
        build, make, where, _ = NETWORKS[name]
        x = make()
        net = ganns.insert(build(), example=x, where=where).eval()
    expected = net(x).detach().numpy()
    path = tmp_path / "model.onnx"
    torch.onnx.export(ganns.strip(net), (x,), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path)
    (ours,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_hugging_face_checkpointing():
    x, y = words(), torch.randint(0, 4, (12,))
    net = ganns.insert(bert(), example=x, where="*.intermediate_act_fn").train()

    def gradients():
        output, states = ganns.trace(answer, net, x)
        loss = ganns.total_loss(F.cross_entropy(output, y), ganns.inner_loss(states))
        return torch.autograd.grad(loss, [p for p in net.parameters() if p.requires_grad], allow_unused=True)

    expected = gradients()
    net.activation_checkpointing_enable({"use_reentrant": False})
    for ours, theirs in zip(gradients(), expected, strict=True):
        assert_close(ours, theirs)
