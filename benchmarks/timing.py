"""How the benchmarks measure: contestants take turns in one run, and each is compared with the first."""

import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def measure(contestants: dict[str, Callable[[], object]], rounds: int, calls: int = 1) -> dict[str, list[float]]:
    """Seconds a call of each contestant, one number a round. A round runs every contestant `calls` times in a row."""
    for contestant in contestants.values():
        for _ in range(3):
            contestant()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            contestant()  # after the others, its data are cold
            start = time.perf_counter()
            for _ in range(calls):
                contestant()
            seconds[name].append((time.perf_counter() - start) / calls)
    return seconds


def compare(title: str, seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Print a table of medians and their ratio to the first contestant; the spread is that of the rounds' ratios."""
    first = next(iter(seconds))
    print(f"\n{title}\n{'':34}{'ms':>10}{'ratio':>9}   rounds from .. to")
    rows = {}
    for name, values in seconds.items():
        ratios = sorted(value / base for value, base in zip(values, seconds[first], strict=True))
        tenth = len(ratios) // 10
        row = rows[name] = {
            "ms": 1e3 * statistics.median(values),
            "ratio": statistics.median(ratios),
            "low": ratios[tenth],
            "high": ratios[-1 - tenth],
        }
        print(f"{name:34}{row['ms']:10.2f}{row['ratio']:9.3f}   {row['low']:.3f} .. {row['high']:.3f}")
    return rows


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def finish(name: str, results: dict) -> None:
    """Print the whole benchmark as one line of JSON."""
    print(json.dumps({"benchmark": name, **machine(), **results}))
