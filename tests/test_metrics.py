"""Every score against somebody else's implementation or a formula written out by hand, in float64."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import scoringrules
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error
from torchmetrics.functional.classification import multiclass_calibration_error

from ganns import metrics

F64 = torch.float64
SHAPES = [(1,), (40,), (8, 5)]
quick = settings(deadline=None, max_examples=60)


def numbers(shape, seed=0):
    return torch.randn(shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def gaussians(shape, seed=0):
    return numbers(shape, seed), numbers(shape, seed + 1).exp(), 2 * numbers(shape, seed + 2)


def classes(rows=60, k=4, seed=0):
    """Labels drawn from the probabilities: calibrated, so that chance makes bins err in both directions."""
    probabilities = (2 * numbers((rows, k), seed)).softmax(-1)
    draw = torch.multinomial(probabilities, 1, generator=torch.Generator().manual_seed(seed + 1))
    return probabilities, draw.squeeze(-1)


def scalar(value, dtype=F64):
    assert value.shape == ()
    assert value.dtype == dtype
    return value.item()


def gradients(function, *tensors):
    """Gradients of a sum with respect to each tensor."""
    leaves = [t.clone().requires_grad_() for t in tensors]
    return torch.autograd.grad(function(*leaves).sum(), leaves)


# Gaussian scores


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_log_likelihood_is_the_normal_log_density(shape):
    mean, variance, y = gaussians(shape)
    expected = scipy.stats.norm.logpdf(y.numpy(), mean.numpy(), variance.numpy() ** 0.5)
    assert_allclose(metrics.gaussian_log_likelihood(mean, variance, y).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_loss_is_torchs_and_the_written_formula(shape):
    mean, variance, y = gaussians(shape)
    got = scalar(metrics.gaussian_loss(mean, variance, y))
    m, v, d = mean.numpy(), variance.numpy(), y.numpy()
    assert_allclose(got, np.mean(0.5 * ((d - m) ** 2 / v + np.log(v))), rtol=1e-12)
    assert_allclose(got, torch.nn.functional.gaussian_nll_loss(mean, y, variance, eps=0).item(), rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_nll_is_the_logarithmic_score(shape):
    mean, variance, y = gaussians(shape)
    got = scalar(metrics.gaussian_nll(mean, variance, y))
    expected = scoringrules.logs_normal(y.numpy(), mean.numpy(), variance.numpy() ** 0.5)
    assert_allclose(got, expected.mean(), rtol=1e-12)
    assert_allclose(got, metrics.gaussian_loss(mean, variance, y).item() + math.log(2 * math.pi) / 2, rtol=1e-12)


def test_gaussian_gradients():
    mean, variance, y = gaussians((30,))
    z = (y - mean) / variance
    by_mean, by_variance, by_y = z, 0.5 * (z**2 - 1 / variance), -z
    log_density = gradients(metrics.gaussian_log_likelihood, mean, variance, y)
    for got, expected in zip(log_density, (by_mean, by_variance, by_y), strict=True):
        assert_allclose(got, expected, rtol=1e-10)
    for function in (metrics.gaussian_loss, metrics.gaussian_nll):
        for got, expected in zip(gradients(function, mean, variance, y), (by_mean, by_variance, by_y), strict=True):
            assert_allclose(got, -expected / 30, rtol=1e-10)


def test_gaussian_loss_compiles_without_a_graph_break():
    mean, variance, y = gaussians((12,))
    compiled = torch.compile(metrics.gaussian_loss, fullgraph=True, backend="aot_eager")
    assert_allclose(compiled(mean, variance, y), metrics.gaussian_loss(mean, variance, y), rtol=1e-12)
    for got, expected in zip(
        gradients(compiled, mean, variance, y), gradients(metrics.gaussian_loss, mean, variance, y), strict=True
    ):
        assert_allclose(got, expected, rtol=1e-12)


def test_gaussian_loss_under_vmap():
    mean, variance, y = gaussians((5, 12))
    got = torch.vmap(metrics.gaussian_loss)(mean, variance, y)
    expected = [metrics.gaussian_loss(*row).item() for row in zip(mean, variance, y, strict=True)]
    assert_allclose(got, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"variance has shape \(1,\) but mean has \(12,\)"):
        torch.vmap(metrics.gaussian_loss)(mean, variance[:, :1], y)


@pytest.mark.parametrize("shape", SHAPES)
def test_crps_is_scoringrules(shape):
    mean, variance, y = gaussians(shape)
    expected = scoringrules.crps_normal(y.numpy(), mean.numpy(), variance.numpy() ** 0.5).mean()
    assert_allclose(scalar(metrics.crps(mean, variance, y)), expected, rtol=1e-10)


@pytest.mark.parametrize(("mean", "variance", "y"), [(0.0, 1.0, 0.3), (2.0, 0.09, 1.1), (-1.0, 4.0, 6.0)])
def test_crps_is_the_integral_that_defines_it(mean, variance, y):
    def integrand(t):
        return (scipy.stats.norm.cdf(t, mean, variance**0.5) - (t >= y)) ** 2

    integral = quad(integrand, mean - 30, y)[0] + quad(integrand, y, mean + 30)[0]
    args = (torch.tensor([v], dtype=F64) for v in (mean, variance, y))
    assert_allclose(metrics.crps(*args).item(), integral, rtol=1e-6)


def test_crps_gradients():
    mean, variance, y = gaussians((30,))
    sigma = variance.sqrt()
    z = ((y - mean) / sigma).numpy()
    by_mean = -(2 * scipy.stats.norm.cdf(z) - 1)
    by_sigma = 2 * scipy.stats.norm.pdf(z) - math.pi**-0.5
    got_mean, got_variance, got_y = gradients(metrics.crps, mean, variance, y)
    assert_allclose(got_mean, by_mean / 30, rtol=1e-9)
    assert_allclose(got_y, -by_mean / 30, rtol=1e-9)
    assert_allclose(got_variance, by_sigma / (2 * sigma.numpy()) / 30, rtol=1e-9)


# Point predictions and intervals


@pytest.mark.parametrize("shape", SHAPES)
def test_mae_and_rmse_are_scikit_learns(shape):
    prediction, y = numbers(shape, 3), numbers(shape, 4)
    flat = y.flatten().numpy(), prediction.flatten().numpy()
    assert_allclose(scalar(metrics.mae(prediction, y)), mean_absolute_error(*flat), rtol=1e-12)
    assert_allclose(scalar(metrics.rmse(prediction, y)), root_mean_squared_error(*flat), rtol=1e-12)


def test_mae_and_rmse_gradients():
    prediction, y = numbers((30,), 3), numbers((30,), 4)
    error = prediction - y
    assert_allclose(gradients(metrics.mae, prediction, y)[0], error.sign() / 30, rtol=1e-12)
    assert_allclose(gradients(metrics.rmse, prediction, y)[0], error / error.norm() / 30**0.5, rtol=1e-10)


@pytest.mark.parametrize("metric", [metrics.mae, metrics.rmse])
def test_a_perfect_prediction_has_no_error_and_no_gradient(metric):
    y = numbers((5,))
    assert metric(y, y).item() == 0
    assert gradients(metric, y, y)[0].tolist() == [0.0] * 5


def test_interval_scores_are_numpys():
    lower, y = numbers((200,), 5), numbers((200,), 6)
    upper = lower + numbers((200,), 7).exp()
    inside = (lower.numpy() <= y.numpy()) & (y.numpy() <= upper.numpy())
    assert 0 < inside.mean() < 1
    assert scalar(metrics.interval_coverage(lower, upper, y)) == inside.mean()
    assert_allclose(scalar(metrics.interval_width(lower, upper)), np.mean(upper.numpy() - lower.numpy()), rtol=1e-12)


def test_intervals_include_both_bounds():
    lower, upper = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, 1.0, 1.0])
    assert metrics.interval_coverage(lower, upper, torch.tensor([0.0, 1.0, 1.0])).item() == 1


def test_gaussian_intervals_cover_what_they_promise():
    y, one = numbers((20_000,)), torch.ones(20_000, dtype=F64)
    assert metrics.interval_coverage(-1.6449 * one, 1.6449 * one, y).item() == pytest.approx(0.9, abs=0.01)


# Class probabilities


@pytest.mark.parametrize("k", [2, 3, 7])
def test_class_scores_are_scikit_learns_scipys_and_numpys(k):
    probabilities, y = classes(80, k)
    p, labels = probabilities.numpy(), y.numpy()
    assert_allclose(scalar(metrics.nll(probabilities, y)), log_loss(labels, p, labels=range(k)), rtol=1e-12)
    assert_allclose(metrics.entropy(probabilities), scipy.stats.entropy(p, axis=1), rtol=1e-12)
    assert scalar(metrics.accuracy(probabilities, y)) == accuracy_score(labels, p.argmax(1))
    assert_allclose(scalar(metrics.brier(probabilities, y)), ((p - np.eye(k)[labels]) ** 2).sum(1).mean(), rtol=1e-12)


def test_nll_of_a_zero_probability_is_large_and_finite():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, F64):
        p = torch.tensor([[0.0, 1.0]], dtype=dtype)
        got = scalar(metrics.nll(p, torch.tensor([0])), dtype)
        assert got == pytest.approx(-math.log(torch.finfo(dtype).tiny), rel=0.01)
        assert gradients(lambda p: metrics.nll(p, torch.tensor([0])), p)[0].tolist() == [[0.0, 0.0]]


def test_entropy_of_certainty_is_zero_with_a_finite_gradient():
    p = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert [str(v) for v in metrics.entropy(p).tolist()] == ["0.0", "0.0"]
    gradient = gradients(metrics.entropy, p)[0]
    large = -math.log(torch.finfo(torch.float32).tiny)
    assert_allclose(gradient, [[large, -1, large], [-1, large, large]], rtol=1e-6)


def test_entropy_of_ignorance_is_log_k():
    assert metrics.entropy(torch.full((2, 8), 1 / 8, dtype=F64)).tolist() == pytest.approx([math.log(8)] * 2, rel=1e-14)


def test_class_gradients():
    probabilities, y = classes(30, 4)
    one_hot = torch.eye(4, dtype=F64)[y]
    by_nll = gradients(lambda p: metrics.nll(p, y), probabilities)[0]
    assert_allclose(by_nll, -one_hot / probabilities / 30, rtol=1e-10)
    assert_allclose(gradients(metrics.entropy, probabilities)[0], -(probabilities.log() + 1), rtol=1e-10)
    by_brier = gradients(lambda p: metrics.brier(p, y), probabilities)[0]
    assert_allclose(by_brier, 2 * (probabilities - one_hot) / 30, rtol=1e-10)


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 100])
@pytest.mark.parametrize("k", [2, 5])
def test_ece_is_torchmetrics(bins, k):
    probabilities, y = classes(300, k)
    expected = multiclass_calibration_error(probabilities, y, num_classes=k, n_bins=bins, norm="l1").item()
    assert scalar(metrics.ece(probabilities, y, bins)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("bins", [4, 5, 10, 20])
def test_ece_puts_confidences_at_a_bin_edge_where_torchmetrics_does(dtype, bins):
    top = torch.arange(bins // 2 + 1, bins + 1, dtype=dtype) / bins  # ends with a confidence of exactly one
    top = torch.cat((top, torch.nextafter(top, torch.zeros(1, dtype=dtype)), top - 0.4 / bins))
    probabilities = torch.stack((top, 1 - top), dim=-1)
    y = torch.arange(len(top)) % 3 % 2
    expected = multiclass_calibration_error(probabilities, y, num_classes=2, n_bins=bins, norm="l1").item()
    assert metrics.ece(probabilities, y, bins).item() == pytest.approx(expected, abs=1e-6)


def test_ece_uses_fifteen_bins_unless_told():
    probabilities, y = classes(300)
    default = metrics.ece(probabilities, y)
    assert default == metrics.ece(probabilities, y, bins=15)
    for bins in (10, 14, 16, 20):
        assert abs(default - metrics.ece(probabilities, y, bins=bins)) > 1e-6


# Ranking scores


def pairs(score, positive):
    """Double loop over all pairs, as an exact fraction."""
    high = [s for s, p in zip(score, positive, strict=True) if p]
    low = [s for s, p in zip(score, positive, strict=True) if not p]
    return sum(Fraction(int(a > b)) + Fraction(int(a == b), 2) for a in high for b in low) / (len(high) * len(low))


@pytest.mark.parametrize("levels", [2, 5, 10_000])
def test_auroc_counts_pairs_exactly(levels):
    score = (levels * torch.rand(150, dtype=F64, generator=torch.Generator().manual_seed(1))).floor()
    positive = numbers((150,), 2) > 0.5
    got = scalar(metrics.auroc(score, positive))
    assert got == float(pairs(score.tolist(), positive.tolist()))
    assert_allclose(got, roc_auc_score(positive.numpy(), score.numpy()), rtol=1e-12)
    wins = scipy.stats.mannwhitneyu(score[positive].numpy(), score[~positive].numpy()).statistic
    assert_allclose(got, wins / (positive.sum() * (~positive).sum()).item(), rtol=1e-12)


def test_auroc_of_half_a_million_rows_is_quick_and_exact():
    score = (1000 * numbers((500_000,))).round()
    positive = numbers((500_000,), 1) + score / 1000 > 0
    assert_allclose(metrics.auroc(score, positive), roc_auc_score(positive.numpy(), score.numpy()), rtol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_auroc_takes_scores_of_any_dtype(dtype):
    score = torch.tensor([0, 1, 1, 0, 1], dtype=dtype)
    positive = torch.tensor([False, True, False, False, True])
    assert metrics.auroc(score, positive).item() == float(pairs(score.tolist(), positive.tolist()))


def test_auroc_sees_a_tie_between_the_two_zeros():
    assert metrics.auroc(torch.tensor([0.0, -0.0]), torch.tensor([True, False])).item() == 0.5


@pytest.mark.parametrize("seed", range(3))
def test_error_auroc_is_the_double_loop_over_errors_and_correct_rows(seed):
    probabilities, y = classes(70, 3, seed)
    p = probabilities.numpy()
    h = scipy.stats.entropy(p, axis=1)
    errors = [i for i in range(70) if p[i].argmax() != y[i]]
    correct = [i for i in range(70) if p[i].argmax() == y[i]]
    expected = sum((h[i] > h[j]) + 0.5 * (h[i] == h[j]) for i in errors for j in correct)
    got = scalar(metrics.error_auroc(probabilities, y))
    assert_allclose(got, expected / (len(errors) * len(correct)), rtol=1e-12)


def test_rows_with_the_same_probabilities_in_another_order_tie():
    generator = torch.Generator().manual_seed(0)
    for k in range(2, 40):
        row = (3 * numbers((k,), k)).softmax(-1)
        rows = torch.stack([row[torch.randperm(k, generator=generator)] for _ in range(64)])
        for dtype in (torch.float32, F64):
            assert metrics.entropy(rows.to(dtype)).unique().numel() == 1
        y = torch.where(torch.arange(64) < 20, rows.argmax(-1), (rows.argmax(-1) + 1) % k)
        assert metrics.error_auroc(rows, y).item() == 0.5


def brute_force_area(uncertainty, loss):
    """Mean over all row orders that sort the uncertainty of the plain area."""
    areas = []
    for order in itertools.permutations(range(len(loss))):
        if all(uncertainty[a] <= uncertainty[b] for a, b in itertools.pairwise(order)):
            areas.append(np.mean([np.mean([loss[i] for i in order[: k + 1]]) for k in range(len(order))]))
    return np.mean(areas)


@pytest.mark.parametrize(
    "uncertainty", [[3, 1, 2, 6, 5, 4], [1, 1, 1, 1, 1, 1], [2, 1, 2, 0, 1, 2], [0, 5, 5, 0, 9, 9]]
)
def test_risk_coverage_area_is_the_expectation_over_orders(uncertainty):
    loss = numbers((6,)).exp()
    got = scalar(metrics.risk_coverage_area(torch.tensor(uncertainty, dtype=F64), loss))
    assert_allclose(got, brute_force_area(uncertainty, loss.tolist()), rtol=1e-12)


def test_risk_coverage_area_takes_a_mask_of_errors():
    uncertainty, wrong = torch.tensor([1, 2, 3, 4]), torch.tensor([False, False, True, True])
    assert metrics.risk_coverage_area(uncertainty, wrong).item() == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)


def test_risk_coverage_area_gradient():
    loss = numbers((8,))
    gradient = gradients(lambda a: metrics.risk_coverage_area(torch.arange(8), a), loss)[0]
    assert_allclose(gradient, [sum(1 / k for k in range(i, 9)) / 8 for i in range(1, 9)], rtol=1e-12)


# Properties

finite = st.floats(-1e6, 1e6)
levels = st.integers(-8, 8)


@st.composite
def scored(draw):
    score = draw(st.lists(levels, min_size=2, max_size=30))
    positive = draw(st.lists(st.booleans(), min_size=len(score), max_size=len(score)))
    positive[0], positive[-1] = True, False
    return torch.tensor(score, dtype=F64), torch.tensor(positive)


@st.composite
def distributions(draw):
    """Votes of a few members: exact zeros, ties, and permuted rows are common."""
    k = draw(st.integers(2, 5))
    votes = draw(st.lists(st.lists(st.integers(0, k - 1), min_size=6, max_size=6), min_size=1, max_size=20))
    counts = torch.tensor([[row.count(c) for c in range(k)] for row in votes], dtype=F64)
    y = draw(st.lists(st.integers(0, k - 1), min_size=len(votes), max_size=len(votes)))
    return counts / 6, torch.tensor(y)


@quick
@given(scored(), st.sampled_from([torch.exp, torch.atan, lambda s: s**3 + 2 * s, lambda s: 7 * s - 1]))
def test_auroc_is_invariant_under_monotone_maps(data, rise):
    score, positive = data
    assert metrics.auroc(rise(score), positive) == metrics.auroc(score, positive)


@quick
@given(scored())
def test_auroc_of_the_complement_is_the_complement(data):
    score, positive = data
    got = metrics.auroc(score, positive).item()
    assert 0 <= got <= 1
    assert metrics.auroc(-score, positive).item() == pytest.approx(1 - got, abs=1e-12)
    assert metrics.auroc(score, ~positive).item() == pytest.approx(1 - got, abs=1e-12)


@quick
@given(distributions(), st.randoms(use_true_random=False))
def test_class_scores_stay_in_range_and_ignore_row_order(data, random):
    p, y = data
    k, order = p.shape[1], random.sample(range(len(y)), len(y))
    bounds = {metrics.nll: math.inf, metrics.brier: 2.0, metrics.accuracy: 1.0, metrics.ece: 1.0}
    for metric, upper in bounds.items():
        value = metric(p, y).item()
        assert -1e-12 <= value <= upper
        assert metric(p[order], y[order]).item() == pytest.approx(value, abs=1e-12)
    assert ((metrics.entropy(p) >= 0) & (metrics.entropy(p) <= math.log(k) + 1e-12)).all()


@quick
@given(distributions(), st.randoms(use_true_random=False))
def test_names_of_classes_do_not_matter(data, random):
    p, y = data
    names = random.sample(range(p.shape[1]), p.shape[1])
    renamed, labels = p[:, names], torch.tensor([names.index(c) for c in y.tolist()])
    assert metrics.entropy(renamed).equal(metrics.entropy(p))
    for metric in (metrics.nll, metrics.brier):
        assert metric(renamed, labels).item() == pytest.approx(metric(p, y).item(), abs=1e-12)


@quick
@given(st.lists(st.tuples(finite, st.floats(0, 1e6), finite), min_size=1, max_size=30), st.floats(0, 10))
def test_wider_intervals_cover_more(rows, margin):
    lower, width, y = (torch.tensor(column, dtype=F64) for column in zip(*rows, strict=True))
    narrow = metrics.interval_coverage(lower, lower + width, y).item()
    wide = metrics.interval_coverage(lower - margin, lower + width + margin, y).item()
    assert 0 <= narrow <= wide <= 1
    assert metrics.interval_width(lower, lower + width).item() >= 0


@quick
@given(st.lists(st.tuples(levels, finite), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_risk_coverage_area_ignores_row_order_and_monotone_maps(rows, random):
    uncertainty, loss = (torch.tensor(column, dtype=F64) for column in zip(*rows, strict=True))
    area = metrics.risk_coverage_area(uncertainty, loss).item()
    order = random.sample(range(len(rows)), len(rows))
    assert metrics.risk_coverage_area(uncertainty[order], loss[order]).item() == pytest.approx(area, abs=1e-7)
    assert metrics.risk_coverage_area(uncertainty.exp(), loss).item() == area
    assert loss.min().item() - 1e-7 <= area <= loss.max().item() + 1e-7


@quick
@given(st.lists(finite, min_size=2, max_size=20))
def test_knowing_the_loss_is_the_best_uncertainty(losses):
    loss = torch.tensor(losses, dtype=F64)
    best = metrics.risk_coverage_area(loss, loss).item()
    for other in (-loss, torch.zeros_like(loss), torch.arange(len(losses))):
        assert best <= metrics.risk_coverage_area(other, loss).item() + 1e-7


@quick
@given(st.lists(st.tuples(finite, st.floats(1e-6, 1e6), finite), min_size=1, max_size=20))
def test_regression_scores_keep_their_order(rows):
    mean, variance, y = (torch.tensor(column, dtype=F64) for column in zip(*rows, strict=True))
    mae, rmse = metrics.mae(mean, y).item(), metrics.rmse(mean, y).item()
    assert 0 <= mae <= rmse * (1 + 1e-12) + 1e-100  # squares of yet smaller errors underflow
    assert 0 <= metrics.crps(mean, variance, y).item() <= mae + variance.sqrt().mean().item()
    assert metrics.gaussian_nll(mean, variance, y).item() >= 0.5 * (2 * math.pi * variance).log().mean().item() - 1e-9


# Dtypes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, F64])
def test_losses_keep_the_dtype_and_scores_are_float64(dtype):
    mean, variance, y = (t.to(dtype) for t in gaussians((20,)))
    assert metrics.gaussian_log_likelihood(mean, variance, y).dtype == dtype
    scalar(metrics.gaussian_loss(mean, variance, y), dtype)
    for metric in (metrics.gaussian_nll, metrics.crps):
        scalar(metric(mean, variance, y))
    for metric in (metrics.mae, metrics.rmse, metrics.risk_coverage_area):
        scalar(metric(mean, y))
    scalar(metrics.interval_width(mean, mean + variance))
    scalar(metrics.interval_coverage(mean, mean + variance, y))

    p, labels = classes(50)
    p = p.to(dtype)
    assert metrics.entropy(p).dtype == dtype
    scalar(metrics.nll(p, labels), dtype)
    for metric in (metrics.accuracy, metrics.brier, metrics.ece, metrics.error_auroc):
        scalar(metric(p, labels))


def test_scores_of_float32_are_computed_in_float64():
    mean, variance, y = (t.float() for t in gaussians((1000,)))
    for metric in (metrics.gaussian_nll, metrics.crps):
        assert metric(mean, variance, y) == metric(mean.double(), variance.double(), y.double())
    assert metrics.rmse(mean, y) == metrics.rmse(mean.double(), y.double())
    p, labels = (t.float() if t.is_floating_point() else t for t in classes(1000))
    for metric in (metrics.brier, metrics.ece, metrics.error_auroc):
        assert metric(p, labels) == metric(p.double(), labels)

    p, labels = classes(200)
    p = p.bfloat16()
    q = p.double().sort(-1).values  # its rows do not sum to one as closely as float64 rows must
    expected = pairs((-q * q.log()).sum(-1).tolist(), (p.argmax(-1) != labels).tolist())
    assert metrics.error_auroc(p, labels).item() == float(expected)


@pytest.fixture
def half_by_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    yield
    torch.set_default_dtype(before)


def test_the_default_dtype_costs_no_precision(half_by_default):
    score, loss = (100 * numbers((3000,))).round(), numbers((3000,), 1)
    assert_allclose(metrics.auroc(score, loss > 0), roc_auc_score((loss > 0).numpy(), score.numpy()), rtol=1e-13)
    uncertainty = numbers((3000,), 2)
    risk = loss.numpy()[uncertainty.numpy().argsort()].cumsum() / np.arange(1, 3001)
    assert_allclose(metrics.risk_coverage_area(uncertainty, loss), risk.mean(), rtol=1e-10)
    p, y = classes(500)
    assert metrics.ece(p, y).item() == pytest.approx(
        multiclass_calibration_error(p, y, num_classes=4, n_bins=15).item(), abs=1e-6
    )


def test_labels_of_any_integer_dtype():
    p, y = classes(50)
    for metric in (metrics.nll, metrics.accuracy, metrics.brier, metrics.ece, metrics.error_auroc):
        for dtype in (torch.uint8, torch.int32):
            assert metric(p, y.to(dtype)) == metric(p, y)


# Wrong input: an error that names the argument and the value, never NaN

GAUSSIAN = [metrics.gaussian_log_likelihood, metrics.gaussian_loss, metrics.gaussian_nll, metrics.crps]
PAIRS = [metrics.mae, metrics.rmse, metrics.interval_width, metrics.risk_coverage_area, metrics.auroc]
LABELLED = [metrics.nll, metrics.accuracy, metrics.brier, metrics.ece, metrics.error_auroc]
ARGUMENTS = {
    **dict.fromkeys(GAUSSIAN, ("mean", "variance", "y")),
    **dict.fromkeys([metrics.mae, metrics.rmse], ("prediction", "y")),
    metrics.interval_width: ("lower", "upper"),
    metrics.interval_coverage: ("lower", "upper", "y"),
    metrics.risk_coverage_area: ("uncertainty", "loss"),
    metrics.auroc: ("score", "positive"),
}
EACH = [(metric, i) for metric, names in ARGUMENTS.items() for i in range(len(names))]


def test_every_public_function_is_in_these_lists():
    public = {
        f for name, f in vars(metrics).items() if callable(f) and getattr(f, "__module__", "") == metrics.__name__
    }
    public = {f for f in public if not f.__name__.startswith("_")}
    assert public == {*ARGUMENTS, *LABELLED, metrics.entropy}


@pytest.mark.parametrize(("metric", "i"), [(m, i) for m, i in EACH if i > 0])
def test_a_column_against_a_vector_is_refused(metric, i):
    args = [torch.ones(4) for _ in ARGUMENTS[metric]]
    args[i] = args[i][:, None]
    first, name = ARGUMENTS[metric][0], ARGUMENTS[metric][i]
    with pytest.raises(ValueError, match=rf"^{name} has shape \(4, 1\) but {first} has \(4,\); reshape"):
        metric(*args)


@pytest.mark.parametrize("metric", ARGUMENTS)
def test_empty_input_is_refused(metric):
    names = ARGUMENTS[metric]
    with pytest.raises(ValueError, match=rf"^{names[0]} is empty, shape \(0,\); pass"):
        metric(*(torch.ones(0) for _ in names))


@pytest.mark.parametrize(("metric", "i"), EACH)
def test_what_is_not_a_tensor_is_refused(metric, i):
    args = [torch.ones(4) for _ in ARGUMENTS[metric]]
    args[i] = np.ones(4)
    with pytest.raises(TypeError, match=rf"^{ARGUMENTS[metric][i]} is a ndarray; pass a tensor"):
        metric(*args)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("metric", "i"), [(m, i) for m, i in EACH if m is not metrics.gaussian_loss])
def test_numbers_that_are_not_finite_are_refused(metric, i, value):
    args = [torch.ones(4, requires_grad=True) for _ in ARGUMENTS[metric]]
    args[i] = torch.tensor([1.0, value, 1.0, 1.0], requires_grad=True)
    with pytest.raises(ValueError, match=rf"^{ARGUMENTS[metric][i]} has {value} among its values \(1 in all\); remove"):
        metric(*args)


@pytest.mark.parametrize("value", [0.0, -0.5])
@pytest.mark.parametrize("metric", [m for m in GAUSSIAN if m is not metrics.gaussian_loss])
def test_a_variance_that_is_not_positive_is_refused(metric, value):
    with pytest.raises(ValueError, match=rf"^variance has the value {value}; make it positive"):
        metric(torch.ones(2), torch.tensor([1.0, value]), torch.ones(2))


@pytest.mark.parametrize("metric", [metrics.interval_width, metrics.interval_coverage])
def test_swapped_bounds_are_refused(metric):
    lower, upper = torch.tensor([0.0, 3.0]), torch.tensor([1.0, 2.5])
    with pytest.raises(ValueError, match=r"^lower exceeds upper, in one row by 0\.5; swap"):
        metric(lower, upper, *([torch.ones(2)] if metric is metrics.interval_coverage else []))


@pytest.mark.parametrize("metric", [*LABELLED, metrics.entropy])
@pytest.mark.parametrize(
    ("probabilities", "error", "message"),
    [
        (torch.tensor([[0.5, 0.5], [0.5, 0.6]]), ValueError, r"has a row with sum 1\.1\d*, not 1; divide by the sum"),
        (torch.tensor([[0.5, 0.5], [0.5, 0.4]]), ValueError, r"has a row with sum 0\.9\d*, not 1; divide by the sum"),
        (torch.tensor([[0.5, 0.5], [1.5, -0.5]]), ValueError, r"has the value -0\.5; if these are logits"),
        (torch.tensor([[0.5, 0.5], [math.nan, 1.0]]), ValueError, r"has nan among its values \(1 in all\)"),
        (torch.tensor([[0.5, 0.5], [math.inf, 1.0]]), ValueError, r"has inf among its values \(1 in all\)"),
        (torch.tensor([0.5, 0.5]), ValueError, r"has shape \(2,\) and dtype torch\.float32; pass floats \(N, K\)"),
        (torch.full((2, 1, 2), 0.5), ValueError, r"has shape \(2, 1, 2\)"),
        (torch.tensor([[0, 1], [1, 0]]), ValueError, r"has shape \(2, 2\) and dtype torch\.int64; pass floats"),
        (torch.ones(0, 2), ValueError, r"is empty, shape \(0, 2\); pass at least one row"),
        (torch.ones(2, 0), ValueError, r"is empty, shape \(2, 0\)"),
        (np.full((2, 2), 0.5), TypeError, r"is a ndarray; pass a tensor"),
    ],
)
def test_what_is_not_a_distribution_is_refused(metric, probabilities, error, message):
    with pytest.raises(error, match="^probabilities " + message):
        metric(*([probabilities] if metric is metrics.entropy else [probabilities, torch.tensor([0, 1])]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_softmax_in_low_precision_is_a_distribution(dtype):
    p = (3 * numbers((200, 100))).to(dtype).softmax(-1)
    assert metrics.entropy(p).isfinite().all()


@pytest.mark.parametrize("metric", LABELLED)
@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (torch.tensor([0, 2]), ValueError, r"has labels from 0 to 2; number the 2 classes 0 to 1"),
        (torch.tensor([-1, 1]), ValueError, r"has labels from -1 to 1; number the 2 classes 0 to 1"),
        (torch.tensor([[0], [1]]), ValueError, r"has shape \(2, 1\) and dtype torch\.int64; pass integers \(2,\)"),
        (torch.tensor([[0, 1], [1, 0]]), ValueError, r"has shape \(2, 2\) .*, or y\.argmax\(-1\) if one-hot"),
        (torch.tensor([0, 1, 1]), ValueError, r"has shape \(3,\)"),
        (torch.tensor([0.0, 1.0]), ValueError, r"has shape \(2,\) and dtype torch\.float32; .*y\.reshape\(-1\)\.long"),
        (torch.tensor([False, True]), ValueError, r"has shape \(2,\) and dtype torch\.bool"),
        (torch.tensor([0.0, math.nan]), ValueError, r"has nan among its values"),
        (torch.tensor([], dtype=torch.int64), ValueError, r"is empty, shape \(0,\)"),
        ([0, 1], TypeError, r"is a list; pass a tensor, torch\.as_tensor\(y\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(metric, y, error, message):
    with pytest.raises(error, match="^y " + message):
        metric(torch.tensor([[0.3, 0.7], [0.6, 0.4]]), y)


@pytest.mark.parametrize("bins", [0, -3, 2.5])
def test_bins_that_are_no_count_are_refused(bins):
    with pytest.raises(ValueError, match=rf"^bins is {bins}; pass a whole number"):
        metrics.ece(*classes(), bins=bins)


def test_auroc_needs_a_mask():
    with pytest.raises(TypeError, match=r"^positive has dtype torch\.int64; pass a mask"):
        metrics.auroc(torch.tensor([0.1, 0.2]), torch.tensor([0, 1]))


@pytest.mark.parametrize(("value", "count"), [(True, 3), (False, 0)])
def test_auroc_of_one_kind_is_undefined(value, count):
    with pytest.raises(
        ValueError, match=rf"^auroc is undefined: positive has {count} true rows of 3; pass rows of both"
    ):
        metrics.auroc(torch.arange(3.0), torch.full((3,), value))


@pytest.mark.parametrize(("y", "count"), [([0, 1], 0), ([1, 0], 2)])
def test_error_auroc_without_an_error_or_a_correct_row_is_undefined(y, count):
    with pytest.raises(
        ValueError, match=rf"^error_auroc is undefined: {count} of 2 rows are errors; pass rows of both"
    ):
        metrics.error_auroc(torch.tensor([[0.7, 0.3], [0.4, 0.6]]), torch.tensor(y))
