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
