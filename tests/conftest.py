"""Shared by all tests: float64 where exactness matters, the same random numbers every time, one thread a worker."""

import os

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("default")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["SCIPY_ARRAY_API"] = "1"  # one of scikit-learn's checks of estimators is skipped without it


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(0)


@pytest.fixture
def double():
    """Parameters and tensors in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
