"""Running units on a Ray cluster, behind the same list of units as in `ganns.study.pool`."""

import socket
from dataclasses import replace
from typing import Any

import torch

from ganns.study import datasets
from ganns.study.plan import Unit
from ganns.study.pool import LOOK, PATIENCE, Answer, Beacon, Died, attempt, beacon
from ganns.study.runs import Settings

_KNOCK = 10.0  # seconds


class Ray:
    """A Ray cluster. All machines must see the folder of the records and that of the datasets under the same path.

    Args:
        settings: for all units.
        address: of a running cluster; "local" starts one on this machine.
        limit: how many units at a time; None: as many as the cluster has room for.
    """

    def __init__(self, settings: Settings, address: str, limit: int | None = None):
        try:
            import ray
        except ImportError as error:
            raise ImportError("--cluster needs Ray; pip install 'ganns[cluster]'.") from error
        _knock(address)
        self.ray: Any = ray
        self.settings = replace(settings, folder=settings.folder.absolute())  # workers start in other folders
        local = address == "local"
        ray.init(
            address=address,
            num_cpus=limit if local else None,
            include_dashboard=False if local else None,
            log_to_driver=False,
            runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", "GANNS_DATA": str(datasets.folder().absolute())}},
        )
        on_gpu = settings.device.startswith("cuda")
        self.limit = limit or max(1, int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 1)))
        self.task = ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=0)(_on_ray)
        self.running: dict[Any, Unit] = {}

    def start(self, unit: Unit) -> None:
        """Hand it to the cluster."""
        self.running[self.task.remote(unit, self.settings)] = unit

    def answers(self) -> list[tuple[Unit, Answer]]:
        """What tasks have returned, or that their worker died."""
        if not self.running:
            return []
        ended, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=LOOK)
        return [(self.running.pop(task), self._answer(task)) for task in ended]

    def _answer(self, task: Any) -> Answer:
        try:
            return self.ray.get(task)
        except self.ray.exceptions.RayError as error:
            return Died(f"with {type(error).__name__}: {str(error).partition(chr(10))[0]}")

    def stop(self) -> None:
        """Cancel what runs, and leave the cluster."""
        for task in self.running:
            self.ray.cancel(task)
        if self.running:
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=PATIENCE)
        self.running.clear()
        self.ray.shutdown()


def _on_ray(unit: Unit, settings: Settings) -> bool | str:
    torch.set_num_threads(1)
    return attempt(unit, settings, Beacon(beacon(unit, settings.folder)))


def _knock(address: str) -> None:
    """Raise ConnectionError where nobody listens; Ray itself would go on asking for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), _KNOCK).close()
        except OSError as error:
            raise ConnectionError(f"no Ray cluster answers at {address} ({error.strerror or error}).") from error
