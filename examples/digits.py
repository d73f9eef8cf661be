"""What the examples share: pictures of digits, pictures that are none, and the words for results."""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits
from torch import Tensor

import ganns

PIXELS = "pixels, no network"  # the row of pixel_distance in tables


class Rows(NamedTuple):
    """Pictures of 64 pixels from 0 to 16, one a row, and the digits they show."""

    x: Tensor
    y: Tensor


def load(seed: int) -> tuple[Rows, Rows, Rows]:
    """scikit-learn's 1797 handwritten digits: 60 % to train with, 20 % to calibrate with, 20 % to test with."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(seed))
    x, y = torch.tensor(pixels, dtype=torch.float32)[order], torch.tensor(labels)[order]
    first, second = round(0.6 * len(x)), round(0.8 * len(x))
    return Rows(x[:first], y[:first]), Rows(x[first:second], y[first:second]), Rows(x[second:], y[second:])


def strange(x: Tensor, seed: int) -> dict[str, Tensor]:
    """Pictures that are no digits, as many as in x."""
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(x.shape, generator=generator).argsort(1)  # each picture has its own
    return {"inverted": 16 - x, "noisy": 16 * torch.rand(x.shape, generator=generator), "shuffled": x.gather(1, orders)}


def energy(logits: Tensor) -> Tensor:
    """A common score of strangeness: high where no class has a large logit."""
    return -logits.logsumexp(-1)


def pixel_distance(training: Tensor, x: Tensor) -> Tensor:
    """Mahalanobis distance of the pixels from the training pictures; one grey level keeps constant pixels apart."""
    centred = (x - training.mean(0)).double()
    precision = torch.linalg.inv(training.double().T.cov() + torch.eye(x.shape[1], dtype=torch.float64))
    return torch.einsum("ni,ij,nj->n", centred, precision, centred)


def auroc(usual: Tensor, unusual: Tensor) -> float:
    """How well a score tells two sets apart: 1 always, 0.5 by chance, 0 always the wrong way round."""
    positive = torch.cat([torch.zeros(len(usual)), torch.ones(len(unusual))]).bool()
    return ganns.metrics.auroc(torch.cat([usual, unusual]), positive).item()


def spread(values: Sequence[float], decimals: int = 3) -> str:
    """Mean and standard deviation over the seeds."""
    deviation = f"±{stdev(values):.{decimals}f}" if len(values) > 1 else ""
    return f"{mean(values):.{decimals}f}{deviation}"


def compare(pairs: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Where ours is larger than theirs in all seeds, where smaller, and where neither, from {name: (ours, theirs)}."""
    groups: dict[str, list[str]] = {"better in each seed": [], "worse in each seed": [], "neither": []}
    better, worse, neither = groups.values()
    for name, (ours, theirs) in pairs.items():
        signs = {(a > b) - (a < b) for a, b in zip(ours, theirs, strict=True)}
        (better if signs == {1} else worse if signs == {-1} else neither).append(name)
    return "\n".join(f"  {group}: {', '.join(names) or 'nothing'}" for group, names in groups.items())


def options(description: str, examples: str, seeds: int) -> argparse.ArgumentParser:
    """A command line with the options that every example has."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=at_least_one, default=seeds, metavar="N", help="runs (default: %(default)s)")
    parser.add_argument(
        "--epochs", type=at_least_one, default=60, metavar="N", help="passes over the data (default: %(default)s)"
    )
    return parser


def at_least_one(text: str) -> int:
    """A whole number from 1, or an error that argparse shows."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def at_least_zero(text: str) -> float:
    """A finite number from 0, or an error that argparse shows."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def progress_bar() -> Progress:
    """A bar on the error stream that vanishes when done, and is silent where nobody watches."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def run(main: Callable[[], None]) -> None:
    """Run an example; Ctrl-C ends it without a traceback."""
    torch.set_num_threads(1)  # layers this small are fastest so, and do not suffer beside other work
    try:
        main()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
