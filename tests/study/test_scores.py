from dataclasses import replace

import pytest
from made_up import record

from ganns.study.costs import Cost, cost
from ganns.study.scores import Results, chosen, swept


def dated(one, date):
    return replace(one, environment={**one.environment, "date": date})


def test_of_records_with_one_key_most_seeds_count_then_the_youngest():
    few, old, young = record(seeds=2, epochs=7), dated(record(epochs=8), "2026-01"), dated(record(epochs=9), "2026-02")
    for records in ([few, old, young], [young, old, few]):
        found = chosen(records, lambda one: one.job.dataset)
        assert found == {"digits": young}


def test_a_sweep_has_one_record_for_each_value_in_order():
    records = [record("cifar100", "gann-sparse", "sweep", seeds=1, alpha=alpha) for alpha in (1.0, 0.0, 0.1)]
    records += [record("cifar100", "gann-sparse", "sweep", seeds=2, epochs=9, alpha=0.1)]
    records += [record("digits", "gann-sparse", "sweep", alpha=0.3), record("digits", "gann-sparse", alpha=0.5)]
    records += [replace(record("digits", "gann-sparse", "sweep", alpha=0.7), synthetic=True)]
    found = swept(records, "sweep", "alpha")
    values = {name: [(r.job.recipe.alpha, len(r.seeds)) for r in own] for name, own in found.items()}
    assert values == {"cifar100": [(0.0, 1), (0.1, 2), (1.0, 1)], "digits": [(0.3, 5)]}


def test_means_are_rounded_as_printed_and_other_styles_stay_out():
    scores = [{"mae": value, "nll": value} for value in (1.0, 1.0004, 1.0008)]
    records = [record("airfoil", "ann", seeds=3, scores=scores), record("airfoil", "ann", "modern", seeds=3)]
    results = Results.of(records, "paper")
    assert results.means("mae") == {("airfoil", "ann"): 1.0}
    assert results.means("nll", "calibrated") == {("airfoil", "ann"): 1.0}
    assert results.means("accuracy") == {}


def priced(dataset, method, train, *, evaluate=1.0, loop=0.0, **options):
    return replace(
        record(dataset, method, **options), timings={"train": train, "evaluate": evaluate, "loop_seconds": loop}
    )


def test_networks_that_an_ensemble_shares_cost_once():
    """With a published split they are the same five; elsewhere each seed has an ensemble, with one network shared."""
    shared = [priced("cifar100", "ann", 50.0, loop=500.0), priced("cifar100", "ensemble", 50.0, loop=500.0)]
    assert cost(shared) == cost(shared[::-1]) == Cost(5, 52.0, 500.0)
    split = [priced("airfoil", "ann", 50.0, loop=500.0), priced("airfoil", "ensemble", 250.0, loop=2500.0)]
    assert cost(split) == Cost(25, 252.0, 2500.0)


def test_other_styles_and_methods_cost_anew():
    records = [priced("digits", "ann", 10.0), priced("digits", "ann", 20.0, style="modern")]
    records += [priced("digits", "ann-d", 40.0), replace(priced("digits", "ann", 80.0), synthetic=True)]
    assert cost(records) == Cost(20, 154.0, 0.0)
    assert cost([]) == Cost(0, 0.0, 0.0)
    assert cost([replace(records[0], timings={})]).seconds == pytest.approx(0)
