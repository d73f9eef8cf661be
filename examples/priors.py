"""Train a Gaussian network and the same network without priors on handwritten digits, and compare them.

pip install 'ganns[study]'
python examples/priors.py --help
"""

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from statistics import mean

import digits
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import ganns

EXAMPLES = """\
  python examples/priors.py                             three seeds, half a minute
  python examples/priors.py --seeds 5 --alpha 0.3       more runs, priors that count more
  python examples/priors.py --variance dense            variances that depend on the layer before
  python examples/priors.py --alpha 0                   priors fitted after training, as to any network"""

STRANGE = ("inverted", "noisy", "shuffled")
Numbers = dict[tuple[str, str, str], float]  # by section, row and column of the table
Results = dict[tuple[str, str, str], list[float]]  # the same, seed by seed


def train(
    model: nn.Module, rows: digits.Rows, alpha: float, epochs: int, seed: int, after_epoch: Callable[[], object]
) -> None:
    """Train a classifier; the inner loss of its priors, if it has any, counts alpha times as much as the task."""
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(rows.x)).split(64):
            output, states = ganns.trace(model, rows.x[batch])
            loss = F.cross_entropy(output, rows.y[batch])
            if states:
                loss = ganns.total_loss(loss, ganns.inner_loss(states), alpha)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        after_epoch()
    model.eval()
    if states and alpha == 0:
        ganns.fit_priors(model, rows.x)


def fit_temperature(logits: Tensor, y: Tensor) -> float:
    """What to divide the logits of a plain network by, so that validation rows become likeliest."""
    grid = torch.logspace(-1.3, 1.7, 400).tolist()
    return min(grid, key=lambda temperature: F.cross_entropy(logits / temperature, y).item())


@torch.no_grad()
def evaluate(gaussian: nn.Module, plain: nn.Module, data: tuple[digits.Rows, ...], seed: int) -> Numbers:
    """All numbers of one seed."""
    training, validation, test = data
    temperature = fit_temperature(plain(validation.x), validation.y)
    calibration = ganns.calibrate(gaussian, *validation, task="classification")
    typical = ganns.Typicality.fit(gaussian, training.x)
    raw = ganns.Calibration("classification")  # gamma = 1: all the noise that the priors expect
    numbers: Numbers = {}

    probabilities = {
        "plain": (plain(test.x).softmax(-1), (plain(test.x) / temperature).softmax(-1)),
        "GaNN": [ganns.predict(gaussian, test.x, how).probabilities for how in (raw, calibration)],
    }
    for name, (before, after) in probabilities.items():
        numbers["Predictions", f"{name} accuracy", "digits"] = ganns.metrics.accuracy(after, test.y).item()
        numbers["Predictions", f"{name} NLL raw", "digits"] = ganns.metrics.nll(before, test.y).item()
        numbers["Predictions", f"{name} NLL calibrated", "digits"] = ganns.metrics.nll(after, test.y).item()

    usual: dict[str, Tensor] = {}
    for kind, x in {"digits": test.x, **digits.strange(test.x, seed)}.items():
        unusual = typical.scores(x)
        numbers["Median percentile", "GaNN surprise", kind] = unusual.surprise_percentile.median().item()
        numbers["Median percentile", "GaNN typicality", kind] = unusual.typicality_percentile.median().item()
        scores = {
            "GaNN surprise": unusual.surprise,
            "GaNN typicality": unusual.typicality,
            "GaNN entropy": ganns.predict(gaussian, x, calibration).entropy,
            "GaNN energy": digits.energy(gaussian(x)),
            "plain entropy": ganns.metrics.entropy((plain(x) / temperature).softmax(-1)),
            "plain energy": digits.energy(plain(x)),
            digits.PIXELS: digits.pixel_distance(training.x, x),
        }
        usual = usual or scores
        for row, score in scores.items() if kind != "digits" else ():
            numbers["AUROC", row, kind] = digits.auroc(usual[row], score)
    return numbers


def build_table(results: Results) -> Table:
    """The results: a row for each measure, a column for each kind of picture."""
    table = Table("", "test digits", *STRANGE, title="Digits, and pictures that are none")
    table.caption = (
        "Mean and standard deviation over seeds (split, weights).\n"
        "Percentile: share of training digits that are less unusual.\n"
        "AUROC: test digits and other pictures told apart; 0.5 is chance."
    )
    for column in table.columns[1:]:
        column.justify = "right"
    section = ""
    for title, row in dict.fromkeys(key[:2] for key in results):
        if title != section:
            section = title
            table.add_section()
            table.add_row(f"[bold]{title}")
        decimals = 1 if title == "Median percentile" else 3
        values = [results.get((title, row, kind)) for kind in ("digits", *STRANGE)]
        table.add_row(row, *[digits.spread(found, decimals) if found else "" for found in values])
    return table


def verdict(results: Results) -> str:
    """What the numbers say, seed by seed; typicality meets the better one of the plain network's two scores."""
    pairs = {}
    for measure, sign in {"accuracy": 1, "NLL raw": -1, "NLL calibrated": -1}.items():
        both = (results["Predictions", f"{name} {measure}", "digits"] for name in ("GaNN", "plain"))
        pairs[measure] = [[sign * value for value in values] for values in both]
    for kind in STRANGE:
        rival = max(("plain entropy", "plain energy"), key=lambda row: mean(results["AUROC", row, kind]))
        pairs[f"AUROC {kind}"] = [results["AUROC", row, kind] for row in ("GaNN typicality", rival)]
    lines = [
        f"The GaNN against the plain network, {len(pairs['accuracy'][0])} seed(s):",
        digits.compare(pairs),
        "(AUROC: typicality against the plain network's entropy or energy, whichever is better.)",
    ]
    easy = [
        kind
        for kind in STRANGE
        if mean(results["AUROC", digits.PIXELS, kind]) >= mean(results["AUROC", "GaNN typicality", kind])
    ]
    if easy:
        lines.append(f"The distance of raw pixels does as well or better, without a network: {', '.join(easy)}.")
    lines.append("So few seeds of one small data set are an illustration, not evidence.")
    return "\n".join(lines)


def main() -> None:
    """Train, compare, print."""
    parser = digits.options(__doc__.splitlines()[0], EXAMPLES, seeds=3)
    parser.add_argument(
        "--alpha", type=digits.at_least_zero, default=0.1, help="weight of the inner loss (default: %(default)s)"
    )
    parser.add_argument(
        "--variance", choices=("constant", "sparse", "dense"), default="sparse", help="of priors (default: %(default)s)"
    )
    args = parser.parse_args()
    console = Console()
    console.print(
        f"Training {args.seeds} x 2 networks on 1,078 digits: {args.variance} priors, alpha {args.alpha:g}, "
        f"{args.epochs} epochs."
    )
    results: Results = defaultdict(list)
    with digits.progress_bar() as progress:
        bar = progress.add_task("", total=2 * args.seeds * args.epochs)
        for seed in range(args.seeds):
            data = digits.load(seed)
            torch.manual_seed(seed)
            gaussian = ganns.GaussianMLP(64, 10, hidden=(256, 128, 64), variance=args.variance, dropout=0.3)
            plain = deepcopy(gaussian.plain())  # begins with the same weights
            for name, model in {"GaNN": gaussian, "plain": plain}.items():
                progress.update(bar, description=f"seed {seed + 1} of {args.seeds}: {name}")
                train(model, data[0], args.alpha, args.epochs, seed, partial(progress.advance, bar))
            for key, value in evaluate(gaussian, plain, data, seed).items():
                results[key].append(value)
    console.print(build_table(results))
    console.print(verdict(results), highlight=False)
    console.print("Next: --alpha 0.3, --variance dense, or examples/surprise.py.", highlight=False)


if __name__ == "__main__":
    digits.run(main)
