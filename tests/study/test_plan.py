"""From names to jobs and fleets."""

from collections import Counter
from dataclasses import replace

import pytest

from ganns.study import plan
from ganns.study.catalogue import DATASETS
from ganns.study.methods import METHODS, find


def _jobs(name, **kwargs):
    return plan.jobs_for(DATASETS[name], "data", **kwargs)


@pytest.mark.parametrize(
    ("name", "epochs", "alpha", "rate", "features"),
    [
        ("airfoil", 3000, 1.0, 0.1, "standardised"),
        ("yacht", 5000, 1.0, 0.1, "standardised"),
        ("utkface", 120, 1.0, 0.1, "unit"),
        ("cifar100", 120, 0.01, 0.01, "unit"),
        ("digits", 120, 0.1, 0.01, "raw"),
        ("fashion_mnist", 120, 0.1, 0.01, "unit"),
        ("wine_classification", 120, 0.1, 0.01, "standardised"),
        ("tiny_imagenet", 120, 0.01, 0.01, "unit"),
    ],
)
def test_the_papers_recipe(name, epochs, alpha, rate, features):
    recipe = plan.recipe_for(DATASETS[name], "paper")
    assert (recipe.epochs, recipe.alpha, recipe.learning_rate, recipe.features) == (epochs, alpha, rate, features)
    assert (recipe.floor, recipe.step_epoch, recipe.clip_norm, recipe.batch_size) == (0.5, 30, 10.0, 64)


def test_rows_of_a_published_training_set_are_not_tested():
    assert plan.recipe_for(DATASETS["cifar100"], "paper").split == (0.8, 0.2, 0.0)
    assert plan.recipe_for(DATASETS["digits"], "paper").split == (0.6, 0.2, 0.2)


def test_methods_have_the_papers_strengths():
    jobs = {job.method: job.recipe for job in _jobs("digits")}
    assert jobs["ann-wd-d"].dropout == 0.3
    assert jobs["ann-wd-d"].weight_decay == 1e-4
    assert jobs["ann"].dropout == jobs["ann"].weight_decay == 0
    assert {job.method: job.recipe.dropout for job in _jobs("airfoil")}["gann-sparse-d"] == 0.1


def test_classification_has_no_variance_head_and_boosting_is_for_tables():
    assert {job.method for job in _jobs("airfoil")} == set(METHODS)
    heads = {"varhead", "varhead-d", "varhead-wd-d"}
    assert {job.method for job in _jobs("wine_classification")} == set(METHODS) - heads
    assert {job.method for job in _jobs("cifar100")} == set(METHODS) - heads - {"boosting"}


def test_numbers_can_be_chosen():
    (job,) = _jobs("digits", methods=["ann"], seeds=range(2), epochs=7, hidden=[8])
    assert (job.recipe.epochs, job.seeds, job.hidden, job.data) == (7, (0, 1), (8,), "data")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("gann", "gann-dense or gann-sparse or gann-sparse-d or gann-ensemble"),
        ("ANN", "ann or ann-d or ann-wd or ann-wd-d"),
        ("spars", "gann-sparse"),
        ("zzz", "choose from gann-dense"),
        ("", "choose from gann-dense"),
    ],
)
def test_unknown_methods_are_answered_with_the_nearest(wrong, near):
    with pytest.raises(ValueError, match=near):
        find(wrong)


def test_units_say_what_they_vary():
    titles = [unit.title for unit in plan.units(_jobs("digits", style="search"), merge=False)]
    assert titles[0] == "Digits-MNIST: ANN, raw, batches of 32"
    (unit,) = plan.units(_jobs("digits", style="sweep", seeds=[0]), merge=True)
    assert unit.title == "Digits-MNIST: GaNN-sparse, α = 0, 0.001, 0.01, 0.1, 0.3, 0.5, 1"
    last = plan.units(_jobs("digits", style="floors"), merge=False)[-1]
    assert last.title == "Digits-MNIST: GaNN-sparse, v = 2"
    assert plan.units(_jobs("digits", methods=["ann"]), merge=False)[0].title == "Digits-MNIST: ANN"


def test_every_difference_gives_a_record_of_its_own():
    (job,) = _jobs("digits", methods=["ann"])
    others = [replace(job, data="other"), replace(job, seeds=(0,)), replace(job, hidden=(8,))]
    others += [replace(job, recipe=replace(job.recipe, batch_size=32)), replace(job, style="modern")]
    assert len({job.name, *(other.name for other in others)}) == 6


def test_on_a_gpu_what_has_one_shape_is_one_fleet():
    fleets = [{job.method for job in unit.jobs} for unit in plan.units(_jobs("airfoil"), merge=True)]
    assert sorted(map(sorted, fleets)) == [
        ["ann", "ann-d", "ann-wd", "ann-wd-d", "ensemble"],
        ["boosting"],
        ["gann-dense"],
        ["gann-ensemble", "gann-sparse", "gann-sparse-d"],
        ["varhead", "varhead-d", "varhead-wd-d"],
    ]


def test_elsewhere_a_fleet_is_one_job_with_the_ensemble_made_of_it():
    sizes = Counter(len(unit.jobs) for unit in plan.units(_jobs("airfoil"), merge=False))
    assert sizes == {1: 9, 2: 2}


def test_the_ensemble_of_a_published_split_costs_no_training():
    (unit,) = plan.units(_jobs("cifar100", methods=["ann", "ensemble"]), merge=False)
    assert len(plan.members(unit)) == 5
    (team,) = plan.teams(unit.jobs[1])
    assert {member.split for member in team} == {0}
    assert len({member.seed for member in team}) == 5


def test_elsewhere_an_ensembles_members_share_the_split_of_their_seed():
    alone, ensemble = (plan.teams(job) for job in _jobs("airfoil", methods=["ann", "ensemble"]))
    assert [member.split for (member,) in alone] == [0, 1, 2, 3, 4]
    for (member,), team in zip(alone, ensemble, strict=True):
        assert team[0] == member
        assert {other.split for other in team} == {member.split}
        assert len({other.seed for other in team}) == 5


def test_sweeps_are_one_fleet():
    for style, values, name in (("sweep", plan.ALPHAS, "alpha"), ("floors", plan.FLOORS, "floor")):
        jobs = _jobs("cifar100", style=style, seeds=[0])
        assert [getattr(job.recipe, name) for job in jobs] == list(values)
        assert {job.method for job in jobs} == {"gann-sparse"}
        (unit,) = plan.units(jobs, merge=True)
        assert len(plan.members(unit)) == len(values)


def test_the_search_varies_what_the_paper_does_not_state():
    settings = [(job.recipe.features, job.recipe.batch_size, job.method) for job in _jobs("cifar100", style="search")]
    scales = [("raw", 64, "ann"), ("standardised", 64, "ann")]
    assert settings == [*(("unit", size, "ann") for size in (32, 64, 128, 256)), *scales]
    yacht = [(job.recipe.features, job.recipe.batch_size) for job in _jobs("yacht", style="search")]
    assert yacht == [*(("standardised", size) for size in (32, 64, 128)), ("raw", 64)]  # of 185 rows


def test_bigger_work_is_told_apart():
    small, big = (plan.units(_jobs(name, methods=["ann"]), merge=True)[0].work for name in ("digits", "tiny_imagenet"))
    assert big > 100 * small
