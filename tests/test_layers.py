import pytest
import torch
from torch.testing import assert_close

import ganns


@pytest.mark.parametrize(("variance", "extra"), [("constant", 2), ("sparse", 3)])
def test_parameters_a_hidden_unit(variance, extra):
    net = ganns.GaussianMLP(5, 2, hidden=(16, 8, 4), variance=variance)
    plain = sum(p.numel() for p in net.plain().parameters())
    assert sum(p.numel() for p in net.parameters()) == plain + extra * (16 + 8 + 4)


def test_dense_has_both_matrices_but_no_k_in_the_first_layer():
    net = ganns.GaussianMLP(5, 2, hidden=(16, 8), variance="dense")
    shapes = {name: tuple(p.shape) for name, p in net.named_parameters() if "prior" in name}
    assert shapes == {
        "layers.0.prior.mean": (16,),
        "layers.0.prior.bias": (16,),
        "layers.0.prior.weight": (16, 5),
        "layers.1.prior.mean": (8,),
        "layers.1.prior.bias": (8,),
        "layers.1.prior.weight": (8, 16),
        "layers.1.prior.sigma_weight": (8, 16),
    }


def test_dropout_is_seen_by_activities_and_not_by_variances():
    net = ganns.GaussianMLP(5, 1, hidden=(64, 8), variance="dense", dropout=0.5)
    x = torch.randn(3, 5)
    dropped, again = ganns.trace(net, x).states, ganns.trace(net, x).states
    still = ganns.trace(net.eval(), x).states
    assert not torch.equal(dropped[1].activity, again[1].activity)
    assert torch.equal(dropped[1].variance, still[1].variance)
    assert torch.equal(dropped[0].activity, still[0].activity), "the prior sees the activity before dropout"


def test_plain_shares_the_weights_and_keeps_the_mode():
    net = ganns.GaussianMLP(5, 1, hidden=(4,), dropout=0.2).eval()
    plain = net.plain()
    assert [type(module).__name__ for module in plain] == ["Linear", "ReLU", "Dropout", "Linear"]
    assert plain[0].weight is net.layers[0].linear.weight
    assert not plain.training
    assert not plain[2].training


def test_layer_stands_alone_in_a_sequential():
    net = torch.nn.Sequential(ganns.GaussianLayer(3, 4, "dense"), ganns.GaussianLayer(4, 2))
    output, states = ganns.trace(net, torch.randn(5, 3))
    assert [state.units for state in states] == [4, 2]
    assert_close(output, states[1].activity)


def test_sequences_go_through():
    net = ganns.GaussianMLP(3, 2, hidden=(4,))
    output, states = ganns.trace(net, torch.randn(5, 7, 3))
    assert output.shape == (5, 7, 2)
    assert states[0].positions == 7


def test_wrong_width_is_named():
    with pytest.raises(ValueError, match=r"x has 7 features \(shape \(2, 7\)\).*in_features=5"):
        ganns.GaussianMLP(5, 1, hidden=(4,))(torch.zeros(2, 7))


@pytest.mark.parametrize("hidden", [(), (4, 0)])
def test_layers_need_units(hidden):
    with pytest.raises(ValueError, match="hidden="):
        ganns.GaussianMLP(5, 1, hidden=hidden)
