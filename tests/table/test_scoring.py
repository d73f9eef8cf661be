"""Scores of held-out rows against scikit-learn, scipy and numpy."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, mean_absolute_error, root_mean_squared_error

from ganns.metrics import entropy
from ganns.predictive import Classification, Regression
from ganns.table.scoring import MEASURES, blind, coverage, reliability, score, share_error

ROWS, CLASSES = 60, 3


@pytest.fixture
def numbers() -> tuple[Regression, torch.Tensor]:
    mean, y = torch.randn(2, ROWS, 1, dtype=torch.float64)
    activity, output = torch.rand(2, ROWS, 1, dtype=torch.float64)
    return Regression(mean, activity, 0.1 + output), y


@pytest.fixture
def classes() -> tuple[Classification, torch.Tensor]:
    p = (2 * torch.randn(ROWS, CLASSES, dtype=torch.float64)).softmax(-1)
    return Classification(p, entropy(p)), torch.arange(ROWS) % CLASSES


def test_scores_of_numbers(numbers):
    prediction, y = numbers
    found = score(prediction, y)
    assert list(found) == [measure.key for measure in MEASURES["regression"]]
    assert found["mae"] == pytest.approx(mean_absolute_error(y, prediction.mean))
    assert found["rmse"] == pytest.approx(root_mean_squared_error(y, prediction.mean))
    likelihood = stats.norm.logpdf(y, prediction.mean, prediction.variance.sqrt())
    assert found["nll"] == pytest.approx(-likelihood.mean())


def test_scores_of_classes(classes):
    prediction, y = classes
    found = score(prediction, y)
    assert list(found) == [measure.key for measure in MEASURES["classification"]]
    assert found["accuracy"] == pytest.approx(accuracy_score(y, prediction.probabilities.argmax(1)))
    assert found["brier"] == pytest.approx(brier_score_loss(y, prediction.probabilities, scale_by_half=False))
    assert found["nll"] == pytest.approx(log_loss(y, prediction.probabilities))


def test_better_is_said_as_it_is(numbers, classes):
    truth = torch.nn.functional.one_hot(classes[1], CLASSES).double()
    perfect = {
        "regression": (Regression(numbers[1], torch.zeros(ROWS, 1), torch.full((ROWS, 1), 1e-4)), numbers[1]),
        "classification": (Classification(truth, entropy(truth)), classes[1]),
    }
    for task, guess in {"regression": numbers, "classification": classes}.items():
        best, worse = score(*perfect[task]), score(*guess)
        assert all((best[each.key] > worse[each.key]) == each.higher_is_better for each in MEASURES[task])


def test_a_blind_guess_of_numbers_is_their_mean_and_spread():
    known = torch.randn(ROWS, 1, dtype=torch.float64)
    found = blind("regression", known, 5)
    np.testing.assert_allclose(found.mean, np.full((5, 1), known.numpy().mean()))
    np.testing.assert_allclose(found.variance, np.full((5, 1), known.numpy().var(ddof=1)))


def test_a_blind_guess_of_classes_is_their_shares():
    known = torch.tensor([0, 0, 0, 2, 1, 0, 2, 0])
    found = blind("classification", known, 4)
    np.testing.assert_allclose(found.probabilities, [[5 / 8, 1 / 8, 2 / 8]] * 4)
    np.testing.assert_allclose(found.entropy, [stats.entropy([5, 1, 2])] * 4)


def test_coverage_counts_targets_on_the_bounds_too():
    lower, upper = torch.tensor([0.0, 0.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 3.0])
    held, width = coverage(lower, upper, torch.tensor([0.0, 1.0, 1.1, -0.1]))
    assert (held, width) == (0.5, 1.5)


def test_reliability_goes_from_the_least_to_the_most_confident(classes):
    prediction, y = classes
    p = prediction.probabilities.numpy()
    order = np.argsort(p.max(1))
    right = p.argmax(1) == y.numpy()
    expected = [(p.max(1)[rows].mean(), right[rows].mean(), len(rows)) for rows in np.array_split(order, 7)]
    np.testing.assert_allclose(reliability(prediction, y, groups=7), expected)


def test_few_rows_make_few_groups(classes):
    prediction, y = classes
    few = Classification(prediction.probabilities[:2], prediction.output_entropy[:2])
    assert [rows for _, _, rows in reliability(few, y[:2])] == [1, 1]


def test_the_error_of_a_share_is_that_of_a_mean():
    hits = np.arange(50) < 35
    assert share_error(0.7, 50) == pytest.approx(stats.sem(hits, ddof=0))
