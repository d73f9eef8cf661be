"""Which score tells pictures of digits from pictures that are none, and what training with priors changes.

With alpha 0 the priors are fitted after training, with the network's weights untouched. The scores: surprise is
the inner loss; typicality the distance of the layers' surprises from the usual ones, in either direction; entropy and
energy look at the clean outputs. As a yardstick without any network, the Mahalanobis distance of the pixels.

    python examples/surprise.py --help
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from statistics import mean

import digits
import torch
from priors import STRANGE, train
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import ganns

EXAMPLES = """\
  python examples/surprise.py                           five seeds, about a minute
  python examples/surprise.py --alpha 1 --seeds 10      priors that count more, more runs"""

SCORES = ("surprise", "typicality", "entropy", "energy")
Network = tuple[str, float]  # variance model and alpha
Results = dict[tuple[str, str, Network], list[float]]  # by picture, score and network; seed by seed


@torch.no_grad()
def score(model: nn.Module, typical: ganns.Typicality, x: Tensor) -> dict[str, Tensor]:
    """How strange each picture looks, by each score of one network."""
    unusual, logits = typical.scores(x), model(x)
    entropy = ganns.metrics.entropy(logits.softmax(-1))
    return dict(zip(SCORES, (unusual.surprise, unusual.typicality, entropy, digits.energy(logits)), strict=True))


def run_seed(
    seed: int, networks: list[Network], epochs: int, after_epoch: Callable[[], object]
) -> dict[tuple[str, str, Network], float]:
    """Train each network once and score test digits and strange pictures with it."""
    training, _, test = digits.load(seed)
    pictures = digits.strange(test.x, seed)
    numbers = {}
    for variance, alpha in networks:
        torch.manual_seed(seed)
        model = ganns.GaussianMLP(64, 10, hidden=(256, 128, 64), variance=variance, dropout=0.3)
        train(model, training, alpha, epochs, seed, after_epoch)
        typical = ganns.Typicality.fit(model, training.x)
        with torch.no_grad():
            accuracy = ganns.metrics.accuracy(model(test.x).softmax(-1), test.y).item()
        numbers["digits", "accuracy", (variance, alpha)] = accuracy
        usual = score(model, typical, test.x)
        for kind, x in pictures.items():
            for name, unusual in score(model, typical, x).items():
                numbers[kind, name, (variance, alpha)] = digits.auroc(usual[name], unusual)
            distances = (digits.pixel_distance(training.x, rows) for rows in (test.x, x))
            numbers[kind, digits.PIXELS, (variance, alpha)] = digits.auroc(*distances)
    return numbers


def build_table(results: Results, networks: list[Network]) -> Table:
    """AUROC by picture and score, a column for each network."""
    table = Table("", title="AUROC: other pictures against test digits")
    for variance, alpha in networks:
        table.add_column(f"{variance}\nalpha {alpha:g}", justify="right")
    section = ""
    for kind, name in dict.fromkeys(key[:2] for key in results):
        if kind != section:
            section = kind
            table.add_section()
            table.add_row(f"[bold]{kind}")
        table.add_row(name, *[digits.spread(results[kind, name, network]) for network in networks])
    return table


def verdict(results: Results, networks: list[Network], alpha: float) -> str:
    """What the numbers say: each score at its worst, and typicality with and without training, seed by seed."""
    lines = ["The lowest mean AUROC of each score, over pictures and networks:"]
    for name in (*SCORES, digits.PIXELS):
        worst = min(mean(results[kind, name, network]) for kind in STRANGE for network in networks)
        lines.append(f"  {name}: {worst:.3f}")
    pairs = {
        f"{variance} {kind}": [results[kind, "typicality", (variance, weight)] for weight in (alpha, 0.0)]
        for variance in ("sparse", "dense")
        for kind in STRANGE
    }
    return "\n".join([*lines, f"Typicality, trained with alpha {alpha:g} against alpha 0:", digits.compare(pairs)])


def main() -> None:
    """Train, score, print."""
    parser = digits.options(__doc__.splitlines()[0], EXAMPLES, seeds=5)
    parser.add_argument(
        "--alpha", type=digits.at_least_zero, default=0.3, help="compared with alpha 0 (default: %(default)s)"
    )
    args = parser.parse_args()
    if args.alpha == 0:
        parser.error("argument --alpha: 0 is there anyway; give a number above it to compare with")
    networks = [(variance, alpha) for variance in ("sparse", "dense") for alpha in (0.0, args.alpha)]
    console = Console()
    console.print(f"Training {args.seeds} x {len(networks)} networks on 1,078 digits, {args.epochs} epochs.")
    results: Results = defaultdict(list)
    with digits.progress_bar() as progress:
        bar = progress.add_task("", total=args.seeds * len(networks) * args.epochs)
        for seed in range(args.seeds):
            progress.update(bar, description=f"seed {seed + 1} of {args.seeds}")
            for key, value in run_seed(seed, networks, args.epochs, partial(progress.advance, bar)).items():
                results[key].append(value)
    console.print(build_table(results, networks))
    console.print(verdict(results, networks, args.alpha), highlight=False)


if __name__ == "__main__":
    digits.run(main)
