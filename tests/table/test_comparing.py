"""A comparison is fair: the same rows for all, settings chosen without the rows to measure on, no matter the unit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_up_tables import prepared

from ganns.recipes import split_rows
from ganns.table.comparing import SHARES, Comparison, _divided, compare
from ganns.table.preparing import Prepared
from ganns.table.rivals import METHODS
from ganns.table.scoring import MEASURES

QUICK = {"splits": 2, "epochs": 2, "hidden": (8,)}


@pytest.fixture(scope="module")
def rents() -> Prepared:
    return prepared("regression")


@pytest.fixture(scope="module")
def told() -> list[tuple[str, float]]:
    return []


@pytest.fixture(scope="module")
def comparison(rents, told) -> Comparison:
    return compare(rents, **QUICK, tell=lambda stage, share: told.append((stage, share)))


def test_every_method_is_measured_on_every_split(comparison):
    assert [*comparison.outcomes] == [method.key for method in METHODS]
    assert comparison.splits == 2
    for method in METHODS:
        for outcome in comparison.outcomes[method.key]:
            assert outcome.setting in method.settings
            assert outcome.scores.keys() == {measure.key for measure in MEASURES["regression"]}
            assert all(math.isfinite(value) for value in outcome.scores.values())
            assert 0 <= outcome.held <= 1
    assert comparison.held("plain") == np.mean([outcome.held for outcome in comparison.outcomes["plain"]])


def test_rows_are_divided_once_for_all(comparison):
    parts = _divided(120, 3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(120))
    assert [len(part) for part in parts] == [round(120 * share) for share in SHARES] == list(comparison.rows)
    fleet = split_rows(120, 3, (*SHARES[:2], SHARES[2] + SHARES[3]))
    assert (parts.train == fleet.train).all()
    assert (parts.stop == fleet.validation).all()
    assert not np.array_equal(parts.test, _divided(120, 4).test)


def test_the_ensemble_takes_over_the_plain_networks_settings(comparison):
    settings = {key: [outcome.setting for outcome in each] for key, each in comparison.outcomes.items()}
    assert settings["ensemble"] == settings["plain"]


def test_progress_names_every_method_and_only_grows(comparison, told):
    assert list(dict.fromkeys(stage for stage, _ in told)) == [method.title for method in METHODS]
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] < 1


def test_the_unit_of_the_target_does_not_count(rents, comparison):
    cents = compare(replace(rents, y=100 * rents.y + 7), **QUICK)
    for method in METHODS:
        for measure, expected in {
            "mae": 100 * comparison.values(method.key, "mae"),
            "rmse": 100 * comparison.values(method.key, "rmse"),
            "nll": comparison.values(method.key, "nll") + math.log(100),
        }.items():
            np.testing.assert_allclose(cents.values(method.key, measure), expected, rtol=1e-3)


def test_rows_to_measure_on_choose_nothing(rents, comparison):
    test = _divided(120, 0).test
    y = rents.y.copy()
    y[test] = y[test[::-1]]  # the same mean and spread, but other rows
    other = compare(replace(rents, y=y), **QUICK)
    for method in METHODS:
        before, after = comparison.outcomes[method.key][0], other.outcomes[method.key][0]
        assert before.setting == after.setting
        assert before.scores["mae"] != after.scores["mae"]


def test_classes_are_compared_by_accuracy():
    found = compare(prepared("classification"), seed=5, **QUICK)
    for method in METHODS:
        assert all(outcome.held is None for outcome in found.outcomes[method.key])
        accuracy = found.values(method.key, "accuracy")
        assert ((accuracy >= 0) & (accuracy <= 1)).all()
        np.testing.assert_allclose(accuracy * found.rows.test, np.round(accuracy * found.rows.test))
        assert np.isfinite(found.values(method.key, "nll")).all()


def test_the_seed_decides(rents, comparison):
    assert compare(rents, **QUICK) == comparison
    assert compare(rents, seed=1, **QUICK) != comparison


def test_one_split_shows_no_spread(rents):
    with pytest.raises(ValueError, match=r"splits=1: give at least 2"):
        compare(rents, splits=1)
