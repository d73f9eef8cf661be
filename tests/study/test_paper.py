import pytest

from ganns.study.catalogue import DATASETS
from ganns.study.duels import PAPER, Duel, duel
from ganns.study.methods import METHODS
from ganns.study.paper import PRINTED, Printed


@pytest.mark.parametrize(
    ("metric", "dataset", "method", "expected"),
    [
        ("mae", "airfoil", "gann-sparse", Printed("2.335 ± 0.075", 2.335, 0.075)),
        ("mae", "year_prediction_msd", "varhead-wd-d", Printed("33.075 ± 1.157", 33.075, 1.157)),
        ("accuracy", "tiny_imagenet", "ann-wd-d", Printed("0.129 ± 0.003", 0.129, 0.003)),
        ("nll", "utkface", "gann-dense", Printed("12.92", 12.92)),
        ("nll", "digits", "ann-d", Printed("0.06", 0.06)),
        ("auroc", "cifar100", "gann-sparse-d", Printed("0.734", 0.734)),
    ],
)
def test_numbers_are_the_printed_ones(metric, dataset, method, expected):
    assert PRINTED[metric][dataset, method] == expected


# Sums over the paper's tables, in units of the last digit: of each row and each column, means and standard deviations.
ROWS = {
    "mae": {
        "airfoil": (35913, 1261),
        "yacht": (16986, 1391),
        "utkface": (84327, 826),
        "wine_regression": (4842, 79),
        "year_prediction_msd": (100028, 2708),
    },
    "accuracy": {
        "cifar100": (1912, 17),
        "digits": (6873, 7),
        "fashion_mnist": (6290, 9),
        "wine_classification": (3994, 105),
        "tiny_imagenet": (863, 14),
    },
    "nll": {
        "airfoil": (1805, 0),
        "yacht": (1287, 0),
        "utkface": (3738, 0),
        "wine_regression": (702, 0),
        "year_prediction_msd": (2672, 0),
        "cifar100": (1560, 0),
        "digits": (50, 0),
        "fashion_mnist": (191, 0),
        "wine_classification": (511, 0),
        "tiny_imagenet": (2288, 0),
    },
    "auroc": {
        "cifar100": (3716, 0),
        "digits": (4809, 0),
        "fashion_mnist": (4309, 0),
        "wine_classification": (2929, 0),
        "tiny_imagenet": (3528, 0),
    },
}
COLUMNS = {
    "mae": {
        "gann-dense": (21824, 380),
        "gann-sparse": (20018, 351),
        "gann-sparse-d": (21690, 524),
        "ann": (21198, 354),
        "varhead-d": (68412, 2153),
        "ann-wd": (21195, 354),
        "varhead-wd-d": (67759, 2149),
    },
    "accuracy": {
        "gann-dense": (2861, 19),
        "gann-sparse": (2851, 19),
        "gann-sparse-d": (2843, 25),
        "ann": (2845, 22),
        "ann-d": (2841, 24),
        "ann-wd": (2848, 19),
        "ann-wd-d": (2843, 24),
    },
    "nll": {
        "gann-dense": (3478, 0),
        "gann-sparse": (2871, 0),
        "gann-sparse-d": (2845, 0),
        "varhead": (1856, 0),
        "varhead-d": (1935, 0),
        "ann": (957, 0),
        "ann-d": (862, 0),
    },
    "auroc": {
        "gann-dense": (3851, 0),
        "gann-sparse": (3832, 0),
        "gann-sparse-d": (3799, 0),
        "ann": (3925, 0),
        "ann-d": (3884, 0),
    },
}


@pytest.mark.parametrize(("part", "sums"), [(0, ROWS), (1, COLUMNS)], ids=["rows", "columns"])
def test_no_cell_differs_from_the_papers(part, sums):
    """A slip of the pen changes the sum of its row and that of its column."""
    for metric, expected in sums.items():
        unit = 100 if metric == "nll" else 1000
        found = {}
        for key, printed in PRINTED[metric].items():
            mean, std = found.get(key[part], (0, 0))
            found[key[part]] = mean + round(unit * printed.mean), std + round(unit * (printed.std or 0))
            assert printed.text == " ± ".join(
                f"{number:.{2 if unit == 100 else 3}f}" for number in (printed.mean, printed.std) if number is not None
            )
        assert found == expected


def test_every_cell_has_a_dataset_and_a_method():
    assert {metric: len(cells) for metric, cells in PRINTED.items()} == {
        "mae": 35,
        "accuracy": 35,
        "nll": 50,
        "auroc": 25,
    }
    for metric, cells in PRINTED.items():
        for dataset, method in cells:
            task = DATASETS[dataset].task
            assert METHODS[method].fits(task)
            assert task == {"mae": "regression", "accuracy": "classification", "auroc": "classification"}.get(
                metric, task
            )


def test_the_papers_own_counts_come_out_as_it_says():
    assert duel(PAPER.performance, "gann-sparse", "ann") == Duel(9, 1, 0)
    assert duel(PAPER.performance, "gann-dense", "ann") == Duel(7, 1, 2)
