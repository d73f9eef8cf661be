"""The numbers that the paper prints in its Tables 2 and 3."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A number as the paper prints it.

    Args:
        text: digit for digit.
        mean: as a number.
        std: over five seeds; None where the paper prints none.
    """

    text: str
    mean: float
    std: float | None = None


# For regression the paper's columns with dropout are networks with a variance head.
_MAE_COLUMNS = ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "varhead-d", "ann-wd", "varhead-wd-d")
_MAE = """
airfoil              2.706±0.099   2.335±0.075   2.853±0.075   2.494±0.090   11.516±0.416  2.494±0.090   11.515±0.416
yacht                2.208±0.154   0.804±0.119   1.173±0.107   0.879±0.119   5.521±0.386   0.880±0.120   5.521±0.386
utkface              10.164±0.094  10.131±0.124  10.227±0.116  10.183±0.078  16.719±0.168  10.184±0.078  16.719±0.168
wine_regression      0.573±0.008   0.589±0.008   0.596±0.009   0.613±0.005   0.929±0.022   0.613±0.005   0.929±0.022
year_prediction_msd  6.173±0.025   6.159±0.025   6.841±0.217   7.029±0.062   33.727±1.161  7.024±0.061   33.075±1.157
"""

_ACCURACY_COLUMNS = ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d", "ann-wd", "ann-wd-d")
_ACCURACY = """
cifar100             0.276±0.003  0.278±0.003  0.269±0.003  0.276±0.004  0.268±0.001  0.278±0.002  0.267±0.001
digits               0.981±0.001  0.980±0.001  0.984±0.001  0.980±0.001  0.984±0.001  0.980±0.001  0.984±0.001
fashion_mnist        0.900±0.001  0.898±0.001  0.899±0.002  0.897±0.002  0.899±0.001  0.898±0.001  0.899±0.001
wine_classification  0.583±0.011  0.576±0.013  0.564±0.018  0.574±0.013  0.563±0.018  0.570±0.014  0.564±0.018
tiny_imagenet        0.121±0.003  0.119±0.001  0.127±0.001  0.118±0.002  0.127±0.003  0.122±0.001  0.129±0.003
"""

_REGRESSION_NLL_COLUMNS = ("gann-dense", "gann-sparse", "gann-sparse-d", "varhead", "varhead-d")
_REGRESSION_NLL = """
airfoil              3.36   3.28  3.26  4.05  4.10
yacht                2.79   1.99  2.01  3.02  3.06
utkface              12.92  7.57  7.89  4.50  4.50
wine_regression      1.23   1.27  1.28  1.61  1.63
year_prediction_msd  5.05   5.05  5.18  5.38  6.06
"""

# For classification the column "ANN + varhead" is the plain network: its softmax is its uncertainty.
_NLL_AND_AUROC_COLUMNS = ("gann-dense", "gann-sparse", "gann-sparse-d", "ann", "ann-d")
_NLL_AND_AUROC = """
cifar100             3.17/0.750  3.17/0.746  3.02/0.734  3.20/0.751  3.04/0.735
digits               0.11/0.954  0.12/0.953  0.13/0.953  0.08/0.974  0.06/0.975
fashion_mnist        0.36/0.853  0.44/0.828  0.47/0.829  0.34/0.896  0.30/0.903
wine_classification  1.02/0.592  1.01/0.599  1.03/0.577  1.02/0.595  1.03/0.566
tiny_imagenet        4.77/0.702  4.81/0.706  4.18/0.706  4.93/0.709  4.19/0.705
"""


def _printed(text: str) -> Printed:
    mean, _, std = text.partition("±")
    return Printed(text.replace("±", " ± "), float(mean), float(std) if std else None)


def _parse(columns: tuple[str, ...], table: str, part: int = 0) -> dict[tuple[str, str], Printed]:
    rows = [line.split() for line in table.strip().splitlines()]
    return {
        (dataset, column): _printed(cell.split("/")[part])
        for dataset, *cells in rows
        for column, cell in zip(columns, cells, strict=True)
    }


PRINTED: dict[str, dict[tuple[str, str], Printed]] = {
    "mae": _parse(_MAE_COLUMNS, _MAE),
    "accuracy": _parse(_ACCURACY_COLUMNS, _ACCURACY),
    "nll": _parse(_REGRESSION_NLL_COLUMNS, _REGRESSION_NLL) | _parse(_NLL_AND_AUROC_COLUMNS, _NLL_AND_AUROC),
    "auroc": _parse(_NLL_AND_AUROC_COLUMNS, _NLL_AND_AUROC, part=1),
}
"""The paper's numbers by metric, and in each by (dataset, method)."""
