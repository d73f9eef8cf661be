from dataclasses import replace

import pytest
from made_up import record, study

from ganns.study.claims import claims
from ganns.study.duels import Duel, significant
from ganns.study.scores import Results

THREE = ("airfoil", "yacht", "utkface")  # fewer cannot bear out a sentence about ten


def found(records):
    return {claim.sentence[:30]: claim for claim in claims(records)}


def scored(dataset, method, metric, values, **options):
    return record(dataset, method, seeds=len(values), scores=[{metric: value} for value in values], **options)


def test_without_records_nothing_can_be_told():
    assert {claim.verdict for claim in claims([])} == {"cannot be told"}


def test_wins_ties_and_losses_are_counted_in_printed_digits():
    pairs = {"airfoil": (2.0, 3.0), "yacht": (1.0001, 1.0), "utkface": (9.0, 8.0), "digits": (0.9, 0.8)}
    records = []
    for dataset, (ours, theirs) in pairs.items():
        metric = "accuracy" if dataset == "digits" else "mae"
        records += [scored(dataset, "gann-sparse", metric, [ours]), scored(dataset, "ann", metric, [theirs])]
    claim = found(records)["The sparse architecture outper"]
    assert claim.paper == "better on 9 of 10, tied on 1, worse on 0"
    assert claim.ours.startswith("better on 2 of 4, tied on 1, worse on 1;")
    assert claim.verdict == "holds in part"
    assert found(records)["The dense architecture does so"].verdict == "cannot be told"
    assert found([replace(one, synthetic=True) for one in records])["The sparse architecture outper"].ours == "not run"


def test_only_differences_beyond_the_seeds_noise_are_significant():
    records = [
        scored("airfoil", "gann-sparse", "mae", [1.0, 1.1, 0.9]),
        scored("airfoil", "ann", "mae", [2.0, 2.1, 1.91]),
        scored("digits", "gann-sparse", "accuracy", [0.9, 0.8, 0.7]),
        scored("digits", "ann", "accuracy", [0.8, 0.9, 0.7]),
    ]
    assert significant(Results.of(records, "paper"), "gann-sparse", "ann") == Duel(1, 1, 0)
    swapped = [
        replace(one, job=replace(one.job, method="ann" if one.job.method != "ann" else "gann-sparse"))
        for one in records
    ]
    assert significant(Results.of(swapped, "paper"), "gann-sparse", "ann") == Duel(0, 1, 1)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({0.0: 0.3, 0.1: 0.29, 0.5: 0.1, 1.0: 0.01}, "holds"),
        ({0.0: 0.3, 0.1: 0.29, 0.5: 0.3, 1.0: 0.29}, "holds in part"),
        ({0.0: 0.3, 0.1: 0.1, 0.5: 0.3, 1.0: 0.29}, "does not hold"),
        ({0.0: 0.3, 0.1: 0.1}, "cannot be told"),
    ],
)
def test_collapse_with_alpha(values, verdict):
    records = []
    for alpha, value in values.items():
        one = record("cifar100", "gann-sparse", "sweep", seeds=1, alpha=alpha)
        records.append(replace(one, seeds=(replace(one.seeds[0], validation=value),)))
    claim = found(records)["α is easy to tune. Only high v"]
    assert claim.verdict == verdict


def sweep(dataset, style, **values):
    """Records of a sweep that differ in one field of the recipe, with the given validation metrics."""
    ((field, metrics),) = values.items()
    found = []
    for setting, metric in metrics.items():
        one = record(dataset, "gann-sparse", style, seeds=1, **{field: setting})
        found.append(replace(one, seeds=(replace(one.seeds[0], validation=metric),)))
    return found


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({0.0: 1.0, 0.1: 1.05, 0.5: 9.0, 1.0: 1.0}, "holds"),
        ({0.0: 9.0, 0.1: 1.05, 0.5: 1.0, 1.0: 1.0}, "does not hold"),
        ({0.0: 1.0, 0.1: 1.0, 0.5: float("nan"), 1.0: 1.0}, "holds"),
        (dict.fromkeys((0.0, 1.0), float("nan")), "holds in part"),
    ],
    ids=["late", "early", "diverged", "all diverged"],
)
def test_of_errors_the_least_is_best(values, verdict):
    assert found(sweep("airfoil", "sweep", alpha=values))["α is easy to tune. Only high v"].verdict == verdict


def test_each_dataset_has_a_sweep_of_its_own():
    cifar = sweep("cifar100", "sweep", alpha={0.1: 0.3, 1.0: 0.01})
    digits = sweep("digits", "sweep", alpha={0.1: 0.98, 1.0: 0.97})
    claim = found([*digits, *cifar])["α is easy to tune. Only high v"]
    assert claim.ours == "CIFAR-100, α = 0.1: 0.300, 1: 0.010; Digits-MNIST, α = 0.1: 0.980, 1: 0.970"
    assert claim.verdict == "holds in part"
    assert found(cifar)["α is easy to tune. Only high v"].verdict == "holds"


def test_the_lower_bound_matters_little_or_much():
    start = "Performance turns out, within "
    flat, steep = {0.1: 0.98, 1.0: 0.97}, {0.1: 0.98, 1.0: 0.5}
    assert found(sweep("digits", "floors", floor=flat))[start].verdict == "holds"
    assert found(sweep("digits", "floors", floor=steep))[start].verdict == "does not hold"
    both = [*sweep("digits", "floors", floor=flat), *sweep("airfoil", "floors", floor=steep)]
    assert found(both)[start].verdict == "holds in part"
    assert found(sweep("digits", "floors", floor={0.5: 0.9}))[start].verdict == "cannot be told"


def test_learning_later_is_seen_in_histories():
    def learning(method, series, mae):
        all_of = [scored(dataset, method, "mae", [mae]) for dataset in THREE]
        return [replace(one, seeds=(replace(one.seeds[0], history={"validation": series}),)) for one in all_of]

    ann = learning("ann", [10.0, 2.0, 1.0, 1.0], 1.0)
    late = learning("gann-sparse", [10.0, 9.0, 8.0, 0.5], 0.5)
    claim = found([*ann, *late])["The networks first learn slowe"]
    assert claim.ours == "later in 3 of 3 comparisons; better in the end in 3 of those 3"
    assert claim.verdict == "holds"
    early = learning("gann-sparse", [10.0, 0.5], 0.5)
    assert found([*ann, *early])["The networks first learn slowe"].verdict == "does not hold"


def test_both_ganns_must_beat_both_variance_heads():
    nll = {"gann-dense": 1.0, "gann-sparse": 2.0, "varhead": 3.0, "varhead-d": 2.5}
    records = [scored(dataset, method, "nll", [value]) for dataset in THREE for method, value in nll.items()]
    assert found(records)["In case of regression, both Ga"].verdict == "holds"
    worse = [scored("wine_regression", method, "nll", [v]) for method, v in {**nll, "gann-dense": 2.6}.items()]
    claim = found(records[4:] + worse)["In case of regression, both Ga"]
    assert (claim.paper, claim.ours) == ("better on 4 of 5, worse on 1", "better on 2 of 3, worse on 1")
    assert claim.verdict == "holds in part"
    assert found(records[4:])["In case of regression, both Ga"].verdict == "cannot be told"  # of two datasets


def test_the_papers_own_numbers_fulfil_its_own_counts():
    exact = [
        replace(one, seeds=tuple(replace(r, raw=_printed(one)) for r in one.seeds)) for one in study(history=False)
    ]
    verdicts = {sentence: claim for sentence, claim in found(exact).items() if claim.paper}
    assert all(claim.ours.startswith(claim.paper) for claim in verdicts.values())


def _printed(one):
    from ganns.study.paper import PRINTED

    key = (one.job.dataset, one.job.method)
    return {metric: cells[key].mean for metric, cells in PRINTED.items() if key in cells}
