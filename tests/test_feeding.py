"""Rows on their way into a fleet, against numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from ganns import Member, Recipe
from ganns.feeding import Feed, check_rows, divide, scalings
from ganns.loop import kernels

RECIPE = replace(Recipe.modern("regression"), batch_size=4)


TWO = (Member(seed=0), Member(seed=1))


def prepared(x, y, recipe=RECIPE, members=TWO):
    members = [member.resolved(recipe) for member in members]
    rows = check_rows(x, y, recipe, torch.float64)
    splits = divide(len(rows.x), recipe, members)
    scaled = scalings(rows, recipe, members, splits, torch.float64)
    return Feed(rows, splits, scaled, kernels(False)), splits, scaled


def test_each_member_scales_by_its_own_training_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(3, 50, (40, 3)), rng.normal(1000, 0.1, (40, 2))
    feed, splits, scaled = prepared(x, y)
    chosen = torch.tensor([[3, 8, 1], [0, 39, 7]])
    got_x, got_y = feed.batch(chosen)
    for member, rows in enumerate(chosen.numpy()):
        train = splits[member].train
        assert_allclose(got_x[member], (x[rows] - x[train].mean(0)) / x[train].std(0))
        assert_allclose(got_y[member], (y[rows] - y[train].mean(0)) / y[train].std(0), rtol=1e-6)
        assert_allclose(scaled[member].features(x[rows]), got_x[member])
        assert_allclose(scaled[member].targets(y[rows]), got_y[member])


def test_a_constant_feature_is_only_centred():
    x = np.stack([np.full(40, 7e8), np.arange(40.0)], 1)
    _, _, scaled = prepared(x, np.arange(40.0))
    assert scaled[0].mean[0] == 7e8
    assert scaled[0].scale[0] == 1.0


@pytest.mark.parametrize(("features", "wanted"), [("raw", 255.0), ("unit", 1.0)])
def test_pictures_become_numbers(features, wanted):
    x = torch.full((40, 2, 2), 255, dtype=torch.uint8)
    x[0] = 0
    feed, _, _ = prepared(
        x, torch.arange(40) % 2, replace(Recipe.paper("classification"), features=features, batch_size=4)
    )
    got, labels = feed.batch(torch.tensor([[1, 2], [3, 4]]))
    assert got.shape == (2, 2, 4)
    assert (got == wanted).all()
    assert labels.tolist() == [[1, 0], [1, 0]]


def test_columns_side_by_side_become_rows():
    """What a data frame gives lies column after column in memory."""
    x, y = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 3))), np.ones((2, 40)).T
    rows = check_rows(x, y, RECIPE, torch.float64)
    assert_allclose(rows.x, x)
    assert rows.x.is_contiguous()
    assert rows.y.is_contiguous()


def test_members_of_one_split_share_a_scaling():
    x = torch.randn(40, 3)
    _, splits, scaled = prepared(x, x[:, 0], members=(Member(seed=0, split=5), Member(seed=1, split=5)))
    assert scaled[0] is scaled[1]
    assert splits[0] is splits[1]
