"""The methods that the study compares: the paper's columns, and the references that a reader will ask for."""

import difflib
from dataclasses import dataclass, replace

from ganns.recipes import Recipe


@dataclass(frozen=True)
class Method:
    """One column of the tables.

    Args:
        key: names it in records and on the command line.
        title: as the tables print it.
        variance: of the priors: "sparse" or "dense"; None: a plain network.
        head: regression: "mean" or "variance"; classification has one head, and no method with "variance".
        dropout: whether it drops activities, in training and in every draw at prediction (Monte-Carlo dropout).
        weight_decay: whether it decays weights.
        size: networks whose predictions are joined: 5 in an ensemble.
        network: False for the reference that is no network.
    """

    key: str
    title: str
    variance: str | None = None
    head: str = "mean"
    dropout: bool = False
    weight_decay: bool = False
    size: int = 1
    network: bool = True

    def fits(self, task: str) -> bool:
        """Whether the method exists for a task."""
        return task == "regression" or self.head == "mean"

    def apply(self, recipe: Recipe, style: str) -> Recipe:
        """The recipe with the method's own numbers; in the paper's style dropout and weight decay are its alone."""
        head = "classes" if recipe.task == "classification" else self.head
        strength = Recipe.paper(recipe.task, weight_decay=self.weight_decay, dropout=self.dropout)
        decay = strength.weight_decay if style == "paper" else recipe.weight_decay
        return replace(recipe, head=head, dropout=strength.dropout, weight_decay=decay)


_IN_THE_PAPERS_ORDER = (
    Method("gann-dense", "GaNN-dense", "dense"),
    Method("gann-sparse", "GaNN-sparse", "sparse"),
    Method("gann-sparse-d", "GaNN-sparse + D", "sparse", dropout=True),
    Method("ann", "ANN"),
    Method("ann-d", "ANN + D", dropout=True),
    Method("ann-wd", "ANN + WD", weight_decay=True),
    Method("ann-wd-d", "ANN + WD + D", dropout=True, weight_decay=True),
    Method("varhead", "ANN + varhead", head="variance"),
    Method("varhead-d", "ANN + varhead + D", head="variance", dropout=True),
    Method("varhead-wd-d", "ANN + varhead + WD + D", head="variance", dropout=True, weight_decay=True),
    Method("ensemble", "ANN × 5", size=5),
    Method("gann-ensemble", "GaNN-sparse × 5", "sparse", size=5),
    Method("boosting", "Gradient boosting", network=False),
)

METHODS: dict[str, Method] = {method.key: method for method in _IN_THE_PAPERS_ORDER}


def find(key: str) -> Method:
    """The method of a key, or an error with the nearest keys.

    >>> find("gann-dense").variance
    'dense'
    """
    if key in METHODS:
        return METHODS[key]
    start = key.lower()
    near = [known for known in METHODS if start and known.startswith(start)]
    near = near or difflib.get_close_matches(start, METHODS, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(METHODS)}."
    raise ValueError(f"method={key!r} is not a method of the study; {hint}")
