from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ganns
from ganns.sampling import Noise, NoisyPass
from ganns.tracing import opened


def mlp(dropout: float = 0.0):
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))


X = torch.zeros(3, 5)


def priors(net):
    return {name: module for name, module in net.named_modules() if isinstance(module, ganns.ActivityPrior)}


@pytest.mark.parametrize(
    ("where", "watched"),
    [
        (None, ["1", "4"]),
        (nn.ReLU, ["1", "4"]),
        ("4", ["4"]),
        ("[14]", ["1", "4"]),
        (lambda name, module: isinstance(module, nn.Linear) and module.out_features == 6, ["3"]),
        (["1", nn.Dropout], ["1", "2"]),
        ((nn.ReLU, "0"), ["0", "1", "4"]),
    ],
)
def test_where_takes_classes_names_globs_and_predicates(where, watched):
    net = ganns.insert(mlp(), example=X, where=where)
    assert list(priors(net)) == [f"{name}.activity_prior" for name in watched]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("variance", ["constant", "sparse", "dense"])
def test_inserted_priors_equal_those_of_the_paper_s_network(variance, dropout):
    ours = ganns.GaussianMLP(5, 2, hidden=(8, 6), variance=variance, dropout=dropout)
    net = ganns.insert(mlp(dropout), variance, example=X)
    for number, layer in zip((0, 3), ours.layers, strict=True):
        net[number].load_state_dict(layer.linear.state_dict())
        net[number + 1].activity_prior.load_state_dict(layer.prior.state_dict())
    net[5].load_state_dict(ours.head.state_dict())
    x = torch.randn(9, 5)
    torch.manual_seed(1)
    expected = ganns.trace(ours, x)
    torch.manual_seed(1)
    traced = ganns.trace(net, x)
    if not dropout:  # the networks drop the last layer in another order
        assert_close(traced.output, expected.output)
    for a, b in zip(traced.states, expected.states, strict=True):
        assert_close(a.variance.expand_as(a.activity), b.variance.expand_as(b.activity))
    net.eval(), ours.eval()
    assert_close(ganns.sample(net, x, draws=5, seed=3), ganns.sample(ours, x, draws=5, seed=3))


def test_dense_is_chained_only_where_a_prior_precedes():
    net = ganns.insert(mlp(0.5), "dense", example=X)
    assert {name: prior.chained for name, prior in priors(net).items()} == {
        "1.activity_prior": False,
        "4.activity_prior": True,
    }
    net = ganns.insert(mlp(), "dense", example=X, where="4")
    assert [prior.chained for prior in priors(net).values()] == [False]
    assert len(ganns.trace(net, X).states) == 1


def test_dense_prior_on_a_linear_itself():
    net = ganns.insert(mlp(), "dense", example=X, where="3")
    assert ganns.trace(net, X).states[0].units == 6


def test_a_watched_sequential_stands_for_its_last_child():
    block = nn.Sequential(nn.Linear(5, 8), nn.Sequential(nn.Linear(8, 4), nn.ReLU()))
    net = ganns.insert(nn.Sequential(block, nn.Linear(4, 2)), example=X, where="0")
    assert list(priors(net)) == ["0.1.1.activity_prior"]
    assert len(ganns.trace(net, X).states) == 1


def test_priors_take_the_dtype_and_mode_of_the_model():
    net = ganns.insert(mlp().double().eval(), example=X.double())
    for prior in priors(net).values():
        assert prior.mean.dtype == torch.float64
        assert not prior.training


def test_shared_activation_shares_its_prior():
    relu = nn.ReLU()
    net = ganns.insert(nn.Sequential(nn.Linear(5, 8), relu, nn.Linear(8, 8), relu), example=X)
    assert len(priors(net)) == 1
    assert len(ganns.trace(net, X).states) == 2


class Answer(NamedTuple):
    activity: torch.Tensor
    kept: str


class Named(nn.Module):
    def forward(self, x):
        return Answer(torch.relu(x), "kept")


def test_tuples_and_named_tuples_keep_their_form():
    class Pair(nn.Module):
        def forward(self, x):
            return [torch.relu(x), "kept"]

    net = ganns.insert(Pair(), example=X, where=Pair)
    assert ganns.trace(net, X).output[1] == "kept"
    net = ganns.insert(Named(), example=X, where=Named)
    net.eval()
    assert type(net(X)) is Answer
    with torch.no_grad(), opened(NoisyPass(Noise(torch.ones(1, 1), 0, [0]), torch.tensor(0), len(X))):
        noisy = net(X)
    assert type(noisy) is Answer
    assert noisy.kept == "kept"
    assert not torch.equal(noisy.activity, net(X).activity)


def test_insert_leaves_batch_statistics_and_random_numbers_alone():
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())
    example = torch.randn(3, 5)
    before, state = net[1].running_mean.clone(), torch.get_rng_state()
    ganns.insert(net, example=example)
    assert torch.equal(net[1].running_mean, before)
    assert torch.equal(torch.get_rng_state(), state), "sparse priors start without random numbers"
    assert net.training


def test_strip_is_idempotent_and_takes_gaussian_layers_out():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(ganns.GaussianLayer(5, 8), nn.Linear(8, 5), nn.Tanh())
            self.net = ganns.GaussianMLP(5, 2, hidden=(4,), dropout=0.1)

        def forward(self, x):
            return self.net(self.body(x))

    net, x = Mixed().eval(), torch.randn(4, 5)
    ganns.insert(plain := mlp(), example=X)
    assert ganns.strip(ganns.strip(plain)) is plain
    expected = net(x)
    assert torch.equal(ganns.strip(net)(x), expected)
    assert not any(type(module).__module__.startswith("ganns") for module in list(net.modules())[1:])
    alone = ganns.GaussianMLP(5, 2, hidden=(4,)).eval()
    assert torch.equal(ganns.strip(alone)(x), alone(x))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.act = nn.Linear(5, 8), nn.Linear(8, 6), nn.ReLU()

    def forward(self, x):
        return self.act(self.second(self.act(self.first(x))))


class Unclear(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(x.reshape(-1, 1, 5))


class Odd(nn.Module):
    def forward(self, x):
        return {"answer": x}


@pytest.mark.parametrize(
    ("net", "arguments", "message"),
    [
        (lambda: nn.Linear(5, 2), {}, r"no activation module .* found. Candidates for where=...: none"),
        (mlp, {"where": "nothing*"}, r"where='nothing\*': no module found. .*\* \(Linear\), \* \(ReLU\)"),
        (mlp, {"variance": "thick"}, "variance='thick' is unknown; choose one of"),
        (mlp, {"family": "cauchy"}, "family='cauchy' is unknown"),
        (mlp, {"floor": 0.0}, "floor=0.0"),
        (mlp, {"dim": 2}, r"dim=2: the output of '1', shape \(3, 8\), has no such axis"),
        (mlp, {"dim": 0}, "dim=0"),
        (mlp, {"variance": "dense", "where": "2"}, "no nn.Linear feeds '2' directly.*variance='sparse'"),
        (Twice, {}, "module 'act' runs more than once"),
        (Unclear, {}, "cannot tell which axis of 'act', shape .* holds the units; pass dim=1"),
        (Odd, {"where": Odd}, "'' did not run or returned no tensor"),
        (lambda: ganns.GaussianMLP(5, 2, hidden=(4,)), {}, "has priors already; ganns.strip it first"),
    ],
)
def test_what_cannot_be_inserted_is_explained_and_leaves_the_model_as_it_was(net, arguments, message):
    net = net()
    before = list(net.state_dict())
    with pytest.raises(ValueError, match=message):
        ganns.insert(net, **{"example": X, **arguments})
    assert list(net.state_dict()) == before
    assert not any(module._forward_hooks for module in net.modules())


def test_selectors_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="where=3: give module classes, names, globs or predicates"):
        ganns.insert(mlp(), example=X, where=3)


def test_inserting_twice_is_refused():
    with pytest.raises(ValueError, match="has priors already"):
        ganns.insert(ganns.insert(mlp(), example=X), example=X)
