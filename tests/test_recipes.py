"""Recipes against the paper's section "Training Setup", and what members have of their own."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganns import Member, Recipe
from ganns.recipes import split_rows


def test_the_papers_training_setup():
    regression, classes = Recipe.paper("regression"), Recipe.paper("classification")
    assert (regression.learning_rate, classes.learning_rate) == (0.1, 0.01)
    assert (regression.head, classes.head) == ("mean", "classes")
    assert (regression.alpha, classes.alpha) == (1.0, 0.1)
    for recipe in (regression, classes):
        assert (recipe.optimizer, recipe.clip_norm, recipe.floor) == ("sgd", 10.0, 0.5)
        assert (recipe.weight_decay, recipe.dropout, recipe.standardise_targets) == (0.0, 0.0, False)
        assert (recipe.split, recipe.patience) == ((0.6, 0.2, 0.2), None)
    assert Recipe.paper("regression", weight_decay=True).weight_decay == 1e-4
    assert Recipe.paper("regression", dropout=True).dropout == 0.1
    assert Recipe.paper("classification", dropout=True).dropout == 0.3


def test_the_rate_is_divided_by_ten_once_after_epoch_thirty():
    recipe = Recipe.paper("regression")
    rates = [recipe.rate(step, steps_an_epoch=4) for step in range(4 * 120)]
    assert rates == [1.0] * 120 + [0.1] * 360


def test_the_rate_rises_and_falls_along_a_cosine():
    recipe = replace(Recipe.modern("regression"), epochs=10, warmup_epochs=2)
    rates = [recipe.rate(step, steps_an_epoch=5) for step in range(50)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert rates[10:] == pytest.approx(0.5 * (1 + np.cos(np.pi * np.arange(40) / 40)))


@pytest.mark.parametrize("recipe", [Recipe.paper("classification", dropout=True), Recipe.modern("regression")])
def test_a_recipe_survives_json(recipe):
    assert Recipe.from_json(recipe.to_json()) == recipe


def test_unknown_fields_of_json_are_named():
    with pytest.raises(ValueError, match="a recipe has no momentum; it has alpha, "):
        Recipe.from_json('{"momentum": 0.9}')
    with pytest.raises(ValueError, match="a recipe is a JSON object"):
        Recipe.from_json("[1, 2]")


@pytest.mark.parametrize(
    "change",
    [
        {"task": "rank"}, {"head": "classes"}, {"optimizer": "lion"}, {"schedule": "linear"}, {"features": "scaled"},
        {"split": (0.5, 0.5)}, {"split": (0.5, 0.6, -0.1)}, {"split": (1.0, 0.0, 0.0)}, {"epochs": 0},
        {"batch_size": 1.5}, {"patience": 0}, {"clip_norm": 0.0}, {"beta": 2.0}, {"alpha": -1.0}, {"floor": 0.0},
        {"learning_rate": float("nan")}, {"dropout": 1.0}, {"weight_decay": -1e-4}, {"learning_rate": None},
        {"learning_rate": "0.1"}, {"epochs": None}, {"epochs": True}, {"batch_size": None}, {"split": ("a", "b", "c")},
        {"split": (float("nan"), 0.5, 0.5)}, {"beta": "half"}, {"clip_norm": float("inf")},
    ],
)  # fmt: skip
def test_wrong_recipes_are_named(change):
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(value))}"):
        replace(Recipe.paper("regression"), **change)


def test_numpys_numbers_become_pythons():
    recipe = replace(Recipe.modern("regression"), alpha=np.float32(0.5), epochs=np.int64(7))
    assert Recipe.from_json(recipe.to_json()) == recipe
    members = [Member(seed=seed, alpha=alpha) for seed, alpha in zip(np.arange(2), np.ones(2, np.float32), strict=True)]
    assert [type(value) for value in (recipe.epochs, members[1].seed, members[1].alpha)] == [int, int, float]


def test_labels_have_no_scale():
    with pytest.raises(ValueError, match="standardise_targets=True"):
        replace(Recipe.paper("classification"), standardise_targets=True)


def test_members_take_the_recipes_numbers_where_they_have_none():
    recipe = replace(Recipe.paper("regression"), dropout=0.2)
    member = Member(seed=4, alpha=0.0).resolved(recipe)
    assert asdict(member) == {
        "seed": 4, "split": 4, "alpha": 0.0, "floor": 0.5, "learning_rate": 0.1, "weight_decay": 0.0, "dropout": 0.2
    }  # fmt: skip
    assert Member(seed=4, split=1).resolved(recipe).split == 1


@pytest.mark.parametrize("change", [{"seed": -1}, {"seed": 2**63}, {"split": 0.5}, {"alpha": -0.1}, {"dropout": 1.5}])
def test_wrong_members_are_named(change):
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        Member(**change)


@given(count=st.integers(5, 500), seed=st.integers(0, 99))
def test_a_split_holds_each_row_once(count, seed):
    split = split_rows(count, seed, (0.6, 0.2, 0.2))
    assert sorted(np.concatenate(split)) == list(range(count))
    for part, share in zip(split, (0.6, 0.2, 0.2), strict=True):
        assert abs(len(part) - share * count) <= 1


def test_too_few_rows_for_a_split_are_named():
    with pytest.raises(ValueError, match="2 rows leave none for validation"):
        split_rows(2, 0, (0.8, 0.1, 0.1))
