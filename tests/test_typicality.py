import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

import ganns

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def net():
    return ganns.fit_priors(ganns.GaussianMLP(3, 1, hidden=(16, 8, 4)), torch.randn(500, 3), updates=50)


def test_surprise_is_the_inner_loss_of_each_row(net):
    x = torch.randn(6, 3)
    rows = ganns.surprise(net, x)
    for number in range(6):
        assert_close(rows[number], ganns.inner_loss(ganns.trace(net, x[number : number + 1]).states).detach())
    layers = ganns.surprise(net, x, per_layer=True)
    assert layers.shape == (6, 3)
    assert_close(layers.sum(1), rows)


def test_surprise_of_pictures_is_a_mean_over_positions():
    net = ganns.insert(nn.Sequential(nn.Conv2d(2, 4, 1), nn.ReLU()), example=torch.zeros(1, 2, 3, 3))
    x = torch.randn(5, 2, 3, 3)
    assert_close(ganns.surprise(net, x.repeat(1, 1, 2, 2)), ganns.surprise(net, x))


def test_typicality_is_the_mahalanobis_distance(net):
    training, x = torch.randn(500, 3), torch.randn(7, 3)
    typical = ganns.Typicality.fit(net, training)
    layers = ganns.surprise(net, training, per_layer=True).numpy()
    centred = ganns.surprise(net, x, per_layer=True).numpy() - layers.mean(0)
    precision = np.linalg.inv(np.cov(layers.T))
    assert_allclose(typical(x), np.sqrt(np.einsum("ni,ij,nj->n", centred, precision, centred)), rtol=1e-3)


def test_fitting_in_batches_is_fitting_at_once(net):
    training, y, x = torch.randn(100, 3), torch.zeros(100), torch.randn(7, 3)
    whole = ganns.Typicality.fit(net, training)
    batched = ganns.Typicality.fit(net, DataLoader(TensorDataset(training, y), batch_size=32))
    assert_close(batched(x), whole(x))


def test_quiet_and_loud_rows_are_both_untypical(net):
    typical = ganns.Typicality.fit(net, torch.randn(2000, 3) + 1)
    usual = typical(torch.randn(500, 3) + 1).median()
    assert typical(torch.full((1, 3), 40.0)) > 5 * usual
    assert ganns.surprise(net, torch.zeros(1, 3)) < ganns.surprise(net, torch.randn(100, 3) + 1).mean()


def test_percentiles_are_ranks_among_training_rows(net):
    training = torch.randn(400, 3)
    typical = ganns.Typicality.fit(net, training)
    scores = typical.scores(training)
    for raw, percentile in (
        (scores.surprise, scores.surprise_percentile),
        (scores.typicality, scores.typicality_percentile),
    ):
        ranks = raw.argsort().argsort()
        assert_allclose(percentile, 100 * (ranks.numpy() + 0.5) / 400, rtol=1e-9)
    far = typical.scores(torch.full((1, 3), 1e3))
    assert far.surprise_percentile == 100
    assert far.typicality_percentile == 100


def test_percentiles_do_not_depend_on_how_many_rows_are_scored_at_a_time(net, double):
    net, training = net.double(), torch.randn(300, 3)
    typical = ganns.Typicality.fit(net, training)
    whole = typical.scores(training)
    for size in (1, 7):
        pieces = [typical.scores(part) for part in training.split(size)]
        for name in ("surprise_percentile", "typicality_percentile"):
            assert torch.cat([getattr(piece, name) for piece in pieces]).equal(getattr(whole, name))


def test_one_layer_and_constant_surprise_stay_finite():
    net = ganns.GaussianMLP(3, 1, hidden=(4,))
    assert ganns.Typicality.fit(net, torch.zeros(5, 3))(torch.zeros(1, 3)).isfinite().all()


@pytest.mark.parametrize("rows", [0, 1])
def test_typicality_needs_rows(net, rows):
    with pytest.raises(ValueError, match="needs at least 2"):
        ganns.Typicality.fit(net, [torch.zeros(1, 3)] * rows)
