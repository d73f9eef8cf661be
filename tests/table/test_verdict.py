"""A verdict says what the numbers say: that a GaNN is worth it, that it is not, and when nobody can tell."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ganns.table.comparing import Comparison, Divided, Outcome
from ganns.table.rivals import METHODS
from ganns.table.scoring import MEASURES
from ganns.table.verdict import LEVEL, chance, corrected_test, difference, leader, level, verdict

SHARES = Divided(600, 100, 100, 200)
numbers = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=3, max_size=12)


def made(first=None, nll=None, task="regression", splits=10, noise=0.01):
    """A comparison where methods differ by what is given, plus noise of their own and of each split."""
    random = np.random.default_rng(0)
    hard = random.normal(0, 0.1, splits)
    outcomes = {}
    for method in METHODS:
        scores = {}
        for measure, given_ in zip(MEASURES[task], (first, None, nll), strict=True):
            given_ = (given_ or {}).get(method.key, 0.0)
            scores[measure.key] = 0.5 + hard + given_ + noise * random.normal(size=splits)
        outcomes[method.key] = [
            Outcome({key: values[split] for key, values in scores.items()}, method.settings[0], 0.9)
            for split in range(splits)
        ]
    return Comparison(task, SHARES, 100, (128, 128), outcomes)


def test_nothing_to_be_seen_is_not_worth_it():
    first, sparse, dense, caution = verdict(made())
    assert first.startswith(
        "A GaNN is not worth it on this table: nothing shows that it is better than a plain network. On average "
    )
    assert "its mean absolute error is not distinguishable" in sparse
    assert "its NLL is not distinguishable" in dense
    assert caution.startswith("With 10 splits a difference below about 0.0")


def test_a_gann_that_is_worse_is_not_worth_it():
    worse = {"sparse": 0.3, "dense": 0.2}
    first, sparse, _, _ = verdict(made(worse, worse))
    assert first.startswith("A GaNN is not worth it")
    assert "its mean absolute error is worse by 0.3024 ± 0.0099; its NLL is worse by 0.2954 ± 0.0089." in sparse
    others = "The network with dropout, the ensemble of five and gradient boosting are better than it at both."
    assert sparse.endswith(others)


def test_a_gann_that_beats_every_rival_is_worth_it():
    first, sparse, dense, _ = verdict(made({"boosting": -0.2}, {"sparse": -0.3}))
    assert first == (
        "A GaNN is worth it on this table: the sparse GaNN has a better negative log-likelihood (NLL) than every "
        "rival. On average gradient boosting is best at mean absolute error, the sparse GaNN at NLL."
    )
    assert "its NLL is better by 0.3046 ± 0.0089." in sparse
    assert "Gradient boosting is better than it at mean absolute error." in sparse
    assert "its NLL is not distinguishable" in dense


def test_priors_may_help_and_something_else_be_better():
    first, _, dense, _ = verdict(made({"dense": -0.2, "boosting": -0.4}, {"dense": -0.2, "boosting": -0.4}))
    assert first == (
        "Priors help a network on this table: the dense GaNN has a better negative log-likelihood "
        "(NLL) than the plain network; but gradient boosting is better than it at something. On average gradient "
        "boosting is best at both mean absolute error and NLL."
    )
    assert dense.endswith("Gradient boosting is better than it at both.")


def test_priors_may_help_and_nothing_be_better():
    first, *_ = verdict(made(nll={"sparse": -0.3, "ensemble": -0.3}))
    assert first.startswith(
        "Priors help a network on this table: the sparse GaNN has a better negative log-likelihood (NLL) than the "
        "plain network, and no rival is distinguishably better than it. "
    )


def test_a_single_lucky_comparison_is_not_believed():
    wanted = stats.t.isf(0.03 / 2, 9) * np.sqrt(1 / 10 + 200 / 600)  # p = 0.03 for a spread of 1
    gains = stats.zscore(np.random.default_rng(1).normal(size=10), ddof=1) + wanted
    comparison = made({"sparse": 0.2, "dense": 0.2}, {"sparse": 0.2})
    for plain, dense, gain in zip(comparison.outcomes["plain"], comparison.outcomes["dense"], gains, strict=True):
        dense.scores["nll"] = plain.scores["nll"] - gain
    first, *_ = verdict(comparison)
    assert first.startswith(
        "Whether a GaNN is worth it on this table is not clear: the dense GaNN has a better negative log-likelihood "
        "(NLL) than the plain network (p = 0.03), but one of 4 such comparisons comes out like this by chance on up to "
        "10 % of tables. "
    )


def test_of_classes_more_accuracy_is_better():
    comparison = made({"sparse": 0.3}, task="classification")
    first, sparse, _, _ = verdict(comparison)
    assert first.startswith("A GaNN is worth it on this table: the sparse GaNN has a better accuracy than every rival.")
    assert "its accuracy is better by" in sparse
    accuracy, brier, _ = MEASURES["classification"]
    assert leader(comparison, accuracy).key == "sparse"
    comparison = made({"sparse": 0.3}, task="classification", splits=2, noise=0.0)
    assert difference(comparison, accuracy, "sparse", "plain").gain == pytest.approx(0.3)
    assert difference(comparison, brier, "sparse", "plain").gain == 0


def test_what_is_equal_is_called_the_same():
    _, sparse, _, _ = verdict(made(noise=0.0))
    assert sparse == (
        "The sparse GaNN against the plain network: its mean absolute error is the same on average; "
        "its NLL is the same on average."
    )


def test_few_splits_are_warned_of():
    assert verdict(made(splits=4))[-1].endswith("so few splits can tell almost nothing, repeat with --splits 10.")
    assert "repeat" not in verdict(made(splits=5))[-1]


@given(numbers, st.integers(1, 1000), st.integers(1, 1000))
def test_the_corrected_test_is_that_of_nadeau_and_bengio(values, train, test):
    gains, k = np.array(values), len(values)
    assume(np.ptp(gains) > 0)
    found = corrected_test(gains, train, test)
    plain = stats.ttest_1samp(gains, 0.0)
    error = stats.sem(gains) * np.sqrt(1 + k * test / train)
    assert found.gain == pytest.approx(gains.mean())
    assert found.error == pytest.approx(error)
    assert found.p == pytest.approx(2 * stats.t.cdf(-abs(gains.mean()) / error, k - 1))
    assert found.p >= plain.pvalue - 1e-12
    low, high = stats.t.interval(1 - LEVEL, k - 1, loc=gains.mean(), scale=error)
    assert (found.gain - found.detectable, found.gain + found.detectable) == pytest.approx((low, high))
    assert found.sign == (1 if low > 0 else -1 if high < 0 else 0)


def test_without_overlap_it_is_the_usual_t_test():
    gains = np.array([0.3, 0.1, 0.4, 0.2])
    assert corrected_test(gains, 10**12, 1).p == pytest.approx(stats.ttest_1samp(gains, 0.0).pvalue)


def test_without_a_spread_the_sign_test_decides():
    assert [corrected_test(np.full(k, 0.5), 600, 200).p for k in (2, 5, 6)] == [0.5, 0.0625, 0.03125]
    assert corrected_test(np.full(5, 0.5), 600, 200).sign == 0
    assert corrected_test(np.full(6, -0.5), 600, 200).sign == -1
    assert corrected_test(np.zeros(6), 600, 200).p == 1.0


def test_levels_have_as_many_places_as_all_methods_get():
    comparison = made()
    nll = MEASURES["regression"][-1]
    for method in METHODS:
        mean, words = level(comparison, nll, method.key)
        values = comparison.values(method.key, "nll")
        assert words == f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"
        assert words.startswith(f"{mean} ± ")


def test_a_p_never_reads_as_zero():
    assert chance(0.0) == "< 0.001"
    assert chance(0.0499) == "0.050"
