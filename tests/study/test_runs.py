"""Fleets turned into records: each once, whole, and the same in whatever company it was trained."""

import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from ganns.recipes import split_rows
from ganns.study import datasets, plan, records, runs
from ganns.study.catalogue import DATASETS, Arrays
from ganns.study.evaluation import SCORES
from ganns.study.locks import locked


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Every dataset is at hand, small and made up."""
    monkeypatch.setattr(datasets, "load", lambda name: datasets.synthetic(DATASETS[name], 150))
    runs.held.cache_clear()
    yield
    runs.held.cache_clear()


def _units(name, methods, *, merge=False, seeds=2, epochs=2, hidden=(8, 4), style="paper"):
    jobs = plan.jobs_for(
        DATASETS[name], "data", style=style, methods=methods, seeds=range(seeds), epochs=epochs, hidden=hidden
    )
    jobs = [replace(job, recipe=replace(job.recipe, batch_size=16)) for job in jobs]
    return plan.units(jobs, merge=merge)


def _run(units, folder, **kwargs):
    settings = runs.Settings(folder, **{"plain_loop": False, **kwargs})
    assert all(runs.run(unit, settings) for unit in units)
    return {record.job.method: record for record in records.read_all(folder)}


def _content(record):
    return replace(record, timings={}, environment={}).to_json()


@pytest.mark.parametrize("name", ["airfoil", "digits", "fashion_mnist"])
def test_every_method_has_a_complete_record(name, tmp_path):
    methods = [key for key in plan.METHODS if plan.exists(plan.METHODS[key], DATASETS[name])]
    found = _run(_units(name, methods), tmp_path)
    assert found.keys() == set(methods)
    for method, record in found.items():
        ensemble, published = plan.METHODS[method].size > 1, DATASETS[name].split is not None
        assert len(record.seeds) == (1 if ensemble and published else 2)
        for result in record.seeds:
            assert result.calibrated.keys() <= set(SCORES[DATASETS[name].task])
            assert all(math.isfinite(value) for value in result.calibrated.values())
            assert result.diverged is None
            if plan.METHODS[method].network and not ensemble:
                assert len(result.history["validation"]) == 2
                assert result.validation == pytest.approx(result.history["validation"][result.best_epoch - 1], rel=1e-6)
        assert {"train", "evaluate", "fleet"} <= record.timings.keys()
        assert record.environment["torch"]
        shown = {"error", "coverage"} if DATASETS[name].task == "regression" else {"error", "reliability"}
        has_priors = plan.METHODS[method].variance is not None
        assert record.diagnostics.keys() == shown | ({"surprise", "detection", "priors"} if has_priors else set())
    assert list(tmp_path.glob("**/*.safetensors")) == []


def test_rows_are_counted(tmp_path):
    assert _run(_units("airfoil", ["ann"]), tmp_path)["ann"].rows == {"train": 90, "validation": 30, "test": 30}
    found = _run(_units("fashion_mnist", ["ann-d"]), tmp_path)["ann-d"]
    assert found.rows == {"train": 120, "validation": 30, "test": 25, "published_train": 60000}


def test_company_changes_nothing(tmp_path):
    methods = ["gann-sparse", "gann-sparse-d", "gann-ensemble"]
    alone = _run(_units("airfoil", methods, merge=False), tmp_path / "alone")
    (unit,) = _units("airfoil", methods, merge=True)
    together = _run([unit], tmp_path / "together")
    assert [_content(alone[key]) for key in methods] == [_content(together[key]) for key in methods]
    assert together["gann-sparse"].timings["fleet"] == len(plan.members(unit)) == 12


def test_scores_are_of_the_rows_that_the_seed_leaves_for_test(tmp_path):
    """Boosting, fitted and scored by hand."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    record = _run(_units("airfoil", ["boosting"]), tmp_path)["boosting"]
    arrays = datasets.load("airfoil")
    for seed, result in enumerate(record.seeds):
        split = split_rows(len(arrays.x), seed, (0.6, 0.2, 0.2))
        model = HistGradientBoostingRegressor(random_state=seed).fit(arrays.x[split.train], arrays.y[split.train])
        error = np.abs(model.predict(arrays.x[split.test]) - arrays.y[split.test]).mean()
        assert result.raw["mae"] == pytest.approx(error, rel=1e-5)


def test_records_that_are_there_are_left_alone(tmp_path, monkeypatch):
    units = _units("digits", ["ann"])
    path = tmp_path / units[0].jobs[0].name
    _run(units, tmp_path)
    before = path.stat().st_mtime_ns
    monkeypatch.setattr(runs, "fit_fleet", None)
    _run(units, tmp_path)
    assert path.stat().st_mtime_ns == before
    runs.forget(units[0], tmp_path)
    assert runs.missing(units[0], tmp_path)


def test_what_another_process_is_at_is_not_deleted(tmp_path):
    (unit,) = _units("digits", ["ann"])
    _run([unit], tmp_path)
    checkpoint = tmp_path / runs.WORK / unit.name / "fleet.json"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    with locked(tmp_path / runs.WORK / f"{unit.name}.lock"):
        runs.forget(unit, tmp_path)
        assert checkpoint.exists()
        assert not runs.missing(unit, tmp_path)
    runs.forget(unit, tmp_path)
    assert not checkpoint.exists()


def test_a_locked_unit_is_left_to_its_owner(tmp_path):
    (unit,) = _units("digits", ["ann"])
    with locked(tmp_path / runs.WORK / f"{unit.name}.lock"):
        assert not runs.run(unit, runs.Settings(tmp_path))
    assert runs.missing(unit, tmp_path)


def test_an_interrupted_unit_goes_on_and_comes_to_the_same(tmp_path):
    (unit,) = _units("digits", ["gann-sparse"], epochs=300)
    settings = runs.Settings(tmp_path / "interrupted", plain_loop=False)

    def interrupt(progress):
        if progress.share < 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        runs.run(unit, settings, interrupt)
    assert runs.missing(unit, settings.folder)
    assert list(settings.folder.glob("**/*.safetensors"))
    shares = []
    assert runs.run(unit, settings, lambda progress: shares.append(progress.share))
    (record,) = records.read_all(settings.folder)
    assert record.timings["resumed"] == 1.0
    assert _content(record) == _content(_run([unit], tmp_path / "whole")["gann-sparse"])


def test_a_training_that_diverges_at_once_is_reported_as_such(tmp_path):
    (unit,) = _units("airfoil", ["ann"], seeds=1)
    job = unit.jobs[0]
    job = replace(job, recipe=replace(job.recipe, learning_rate=1e30, clip_norm=None))
    record = _run([replace(unit, jobs=(job,))], tmp_path)["ann"]
    (result,) = record.seeds
    assert result.diverged == 1
    assert result.best_epoch == 0
    assert all(math.isnan(value) for value in result.raw.values())
    assert record.diagnostics == {}


def test_the_plain_loop_is_measured_and_extrapolated(tmp_path):
    for name, method in (("airfoil", "varhead"), ("digits", "gann-dense")):
        timings = _run(_units(name, [method]), tmp_path, plain_loop=True)[method].timings
        assert timings["steps"] == 2 * 2 * (90 // 16)
        assert 0 < timings["loop_seconds"] < 60


def test_random_data_are_said_to_be_random(tmp_path):
    (unit,) = _units("yacht", ["ann"])
    assert not _run([unit], tmp_path / "real")["ann"].synthetic
    assert _run([replace(unit, synthetic=True)], tmp_path / "random")["ann"].synthetic


def test_a_training_set_with_fewer_classes_than_published_still_runs(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(200, 11)).astype(np.float32)
    monkeypatch.setattr(datasets, "load", lambda name: Arrays(x, np.arange(200) % 5))
    found = _run(_units("wine_classification", ["ann", "boosting"]), tmp_path)
    assert found["boosting"].seeds[0].calibrated["accuracy"] > 0
