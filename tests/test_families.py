"""Every family inherits one suite: a density that integrates to one with variance 1, and draws that follow it."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from numpy.testing import assert_allclose
from scipy.integrate import quad

from ganns.families import FAMILIES, Family, Gaussian, Laplace, StudentT, as_family

ORACLES = {
    "gaussian": (
        Gaussian(),
        torch.distributions.Normal(*torch.tensor([0.0, 1.0], dtype=torch.float64)),
        scipy.stats.norm(),
    ),
    "laplace": (
        Laplace(),
        torch.distributions.Laplace(*torch.tensor([0.0, math.sqrt(0.5)], dtype=torch.float64)),
        scipy.stats.laplace(scale=math.sqrt(0.5)),
    ),
    "student": (
        StudentT(df=5),
        torch.distributions.StudentT(*torch.tensor([5.0, 0.0, math.sqrt(0.6)], dtype=torch.float64)),
        scipy.stats.t(5, scale=math.sqrt(0.6)),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
class TestFamily:
    def density(self, family: Family, a: float, variance: float) -> float:
        energy = family.energy(torch.tensor(a, dtype=torch.float64), torch.tensor(variance, dtype=torch.float64))
        return math.exp(-energy.item() - family.normalizer)

    def test_has_an_oracle(self, name):
        assert isinstance(ORACLES[name][0], FAMILIES[name])

    @pytest.mark.parametrize("variance", [1.0, 0.3, 7.0])
    def test_integrates_to_one_with_the_variance_it_is_given(self, name, variance):
        family, _, _ = ORACLES[name]
        total, _ = quad(lambda a: self.density(family, a, variance), -np.inf, np.inf)
        second, _ = quad(lambda a: a * a * self.density(family, a, variance), -np.inf, np.inf, limit=200)
        assert_allclose(total, 1, rtol=1e-6)
        assert_allclose(second, variance, rtol=1e-5)

    def test_energy_equals_torch_distributions(self, name):
        family, oracle, _ = ORACLES[name]
        a = torch.linspace(-6, 6, 41, dtype=torch.float64)
        for variance in (0.5, 3.0):
            ours = -family.energy(a, torch.full_like(a, variance)) - family.normalizer
            theirs = oracle.log_prob(a / math.sqrt(variance)) - 0.5 * math.log(variance)
            assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-12)

    def test_draws_follow_the_density(self, name):
        family, _, oracle = ORACLES[name]
        draws = family.draw(np.random.default_rng(0), (200, 50))
        assert draws.shape == (200, 50)
        assert scipy.stats.kstest(draws.ravel(), oracle.cdf).pvalue > 0.01

    def test_is_found_by_name_and_equal_by_value(self, name):
        assert as_family(name) == FAMILIES[name]()
        family = ORACLES[name][0]
        assert as_family(family) is family


@pytest.mark.parametrize("df", [2.0, 0.0, -1.0, math.inf, math.nan])
def test_student_needs_a_variance(df):
    with pytest.raises(ValueError, match=f"df={df}.*above 2"):
        StudentT(df)


def test_unknown_family_lists_the_known():
    with pytest.raises(ValueError, match="family='cauchy' is unknown; choose one of 'gaussian', 'laplace', 'student'"):
        as_family("cauchy")
