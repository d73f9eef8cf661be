"""What to type to make records again."""

from collections.abc import Iterable

from ganns.study.catalogue import DATASETS
from ganns.study.methods import METHODS
from ganns.study.plan import HIDDEN, SWEPT, exists, recipe_for
from ganns.study.records import Record


def commands(records: Iterable[Record]) -> list[str]:
    """One command for all datasets that were run alike, and the one that makes the report of them all."""
    groups: dict[str, list[str]] = {}
    records = list(records)
    for style in dict.fromkeys(record.job.style for record in records):
        for name in DATASETS:
            own = [record for record in records if record.job.style == style and record.job.dataset == name]
            if own:
                groups.setdefault(_options(own), []).append(name)
    made = [f"ganns reproduce {' '.join(names)} {options} --out FOLDER" for options, names in groups.items()]
    return [*made, "ganns report FOLDER"]


def _options(records: list[Record]) -> str:
    """Of the records of one dataset and style; what is as usual goes without saying."""
    job, dataset = records[0].job, DATASETS[records[0].job.dataset]
    found = [f"--recipe {job.style}", f"--seeds {max(len(record.job.seeds) for record in records)}"]
    usual = {SWEPT[job.style]} if job.style in SWEPT else {key for key, m in METHODS.items() if exists(m, dataset)}
    methods = {record.job.method for record in records}
    if methods != usual:
        found.append(f"--methods {','.join(key for key in METHODS if key in methods)}")
    networks = [record.job for record in records if record.job.hidden]
    epochs = {network.recipe.epochs for network in networks}
    if len(epochs) == 1 and epochs != {recipe_for(dataset, job.style).epochs}:
        found.append(f"--epochs {epochs.pop()}")
    if networks and networks[0].hidden != HIDDEN:
        found.append(f"--hidden {','.join(map(str, networks[0].hidden))}")
    if any(record.synthetic for record in records):
        found.append("--synthetic")
    return " ".join(found)
