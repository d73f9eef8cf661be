"""What records cost to make."""

from collections.abc import Iterable
from dataclasses import dataclass

from ganns.study.plan import teams, units
from ganns.study.records import Record


@dataclass(frozen=True)
class Cost:
    """Of some records.

    Args:
        trainings: networks trained, each counted once although an ensemble may share it with another method.
        seconds: of training and evaluation, added up over processes.
        loop: seconds of the same trainings, one after another in a plain loop, without evaluation; 0: not measured.
    """

    trainings: int
    seconds: float
    loop: float


def cost(records: Iterable[Record]) -> Cost:
    """What records cost; of those that say so little, nothing is known and nothing is added."""
    records, trained = list(records), []
    for style, synthetic in dict.fromkeys((record.job.style, record.synthetic) for record in records):
        of_job = {r.job: r for r in records if (r.job.style, r.synthetic) == (style, synthetic)}
        for unit in units(of_job, merge=True):  # one fleet, or one that could have been
            makers = {member: of_job[job] for job in unit.jobs for team in teams(job) for member in team}
            trained += makers.values()
    return Cost(
        len(trained),
        sum(_share(record, "train") for record in trained) + sum(r.timings.get("evaluate", 0.0) for r in records),
        sum(_share(record, "loop_seconds") for record in trained),
    )


def _share(record: Record, name: str) -> float:
    """Of one training."""
    return record.timings.get(name, 0.0) / sum(len(team) for team in teams(record.job))
