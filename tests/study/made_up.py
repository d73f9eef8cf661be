"""Records that nobody computed: the paper's numbers plus noise, with curves of a plausible shape."""

import math
import zlib
from dataclasses import replace

import numpy as np

from ganns.study.catalogue import DATASETS
from ganns.study.methods import METHODS
from ganns.study.paper import PRINTED
from ganns.study.plan import exists, recipe_for
from ganns.study.records import Job, Record, SeedResult

ALL = tuple(DATASETS)


def record(dataset="digits", method="ann", style="paper", seeds=5, epochs=40, scores=None, history=True, **recipe):
    """One record; `scores` (seed -> metrics of both variants) replaces the made-up ones."""
    known = DATASETS[dataset]
    base = replace(recipe_for(known, style if style in ("paper", "modern") else "paper"), epochs=epochs)
    job = Job(
        dataset=dataset,
        method=method,
        style=style,
        recipe=replace(METHODS[method].apply(base, "paper"), **recipe),
        seeds=tuple(range(seeds)),
        hidden=(1024, 512, 256),
        data="none",
    )
    random = np.random.default_rng(zlib.crc32(f"{dataset} {method} {style} {recipe}".encode()))
    results = tuple(_result(job, seed, random, scores, epochs if history else 0) for seed in job.seeds)
    rows = {"train": 60, "validation": 20, "test": 20}
    if dataset == "tiny_imagenet":
        rows = {"train": 16000, "validation": 4000, "test": 10000, "published_train": 100000}
    return Record(
        job=job,
        rows=rows,
        seeds=results,
        diagnostics=_diagnostics(job, random),
        timings={"train": 12.5, "evaluate": 1.25, "fleet": 20.0, "loop_seconds": 900.0},
        environment={"device": "cpu: made up", "date": "2026-01-01T00:00:00+00:00", "ganns": "0", "torch": "0"},
    )


def study(datasets=ALL, styles=("paper",), **options):
    """Records of all methods on some datasets, and a sweep over α if CIFAR-100 is among them."""
    found = [
        record(dataset, method.key, style, **options)
        for dataset in datasets
        for style in styles
        for method in METHODS.values()
        if exists(method, DATASETS[dataset])
    ]
    if "cifar100" in datasets:
        found += [
            record("cifar100", "gann-sparse", "sweep", seeds=1, alpha=alpha)
            for alpha in (0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 1.0)
        ]
    return found


def _result(job, seed, random, scores, epochs):
    if scores is not None:
        return SeedResult(seed, 1, None, dict(scores[seed]), dict(scores[seed]), 0.5)
    regression = DATASETS[job.dataset].task == "regression"
    headline = "mae" if regression else "accuracy"
    printed = PRINTED[headline].get((job.dataset, job.method)) or PRINTED[headline][job.dataset, "ann"]
    level = printed.mean * (1 + 0.01 * random.standard_normal())
    if job.style == "sweep":
        level *= 1 - max(0.0, job.recipe.alpha - 0.3)
    nll = PRINTED["nll"].get((job.dataset, job.method))
    raw = {headline: level, "nll": (nll.mean if nll else 2.0) * (1 + 0.05 * random.standard_normal())}
    raw["rmse" if regression else "auroc"] = 1.3 * level if regression else 0.7 + 0.05 * random.standard_normal()
    if regression and job.recipe.head == "mean" and job.method in ("ann", "ann-wd"):
        del raw["nll"]
    calibrated = {**raw, "nll": 0.8 * raw.get("nll", 2.5)}
    return SeedResult(seed, max(1, epochs - 3), None, raw, calibrated, level, _history(job, level, epochs, random))


def _history(job, level, epochs, random):
    if not epochs or not METHODS[job.method].network or METHODS[job.method].size > 1:
        return {}
    slow = {"dense": 3.0, "sparse": 1.5}.get(METHODS[job.method].variance or "", 1.0)
    time = np.arange(1, epochs + 1) / epochs
    progress = np.exp(-8 * time / slow) * (1 + 0.05 * random.standard_normal(epochs))
    better = DATASETS[job.dataset].task == "classification"
    history = {
        "base": progress + 0.05,
        "norm": 1 + progress,
        "validation": level * (1 - progress) if better else level * (1 + 4 * progress),
    }
    if METHODS[job.method].variance:
        history |= {"inner": 800 * np.exp(-4 * time) - 300, "coefficient": progress}
    return {name: series.tolist() for name, series in history.items()}


def _diagnostics(job, random):
    grid, bend = np.linspace(0.1, 0.9, 9), 1 + 0.2 * random.random()
    found = {"error": [{"uncertainty": u, "error": u**bend, "rows": 30} for u in np.linspace(0.2, 2, 10).tolist()]}
    if DATASETS[job.dataset].task == "regression":
        found["coverage"] = [
            {"variant": variant, "nominal": p, "observed": p ** (power * bend)}
            for variant, power in (("raw", 2.0), ("calibrated", 1.1))
            for p in grid.tolist()
        ]
    else:
        found["reliability"] = [
            {"variant": variant, "confidence": p, "accuracy": p ** (power * bend), "rows": 40}
            for variant, power in (("raw", 1.6), ("calibrated", 1.05))
            for p in grid.tolist()
        ]
    if METHODS[job.method].variance and METHODS[job.method].size == 1:
        kinds = {"test": 0.0, "shuffled": 1.0, "noise": 4.0}
        found["surprise"] = [
            {"rows": name, "from": 5.0 * n, "to": 5.0 * n + 5, "share": share}
            for name, tilt in kinds.items()
            for n, share in enumerate(_shares(tilt))
        ]
        found["detection"] = [
            {"rows": name, "surprise": 0.6 + 0.01 * random.random(), "typicality": 0.95, "entropy": None}
            for name in ("shuffled", "noise")
        ]
        found["priors"] = [
            {"layer": layer, "quantile": q, "mean": layer * (q - 0.2), "sd": 0.7 + bend * q * q / layer}
            for layer in (1, 2, 3)
            for q in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
        ]
    return found


def _shares(tilt):
    weights = [math.exp(tilt * n / 5) for n in range(20)]
    return [weight / sum(weights) for weight in weights]
