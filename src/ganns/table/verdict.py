"""Words about a comparison: who is better at what, and whether a GaNN is worth it."""

import math
from dataclasses import dataclass

import numpy as np

from ganns.table.comparing import Comparison
from ganns.table.rivals import METHODS, Method
from ganns.table.scoring import MEASURES, Measure
from ganns.table.wording import fixed

LEVEL = 0.05
_FEW = 5  # splits; below, hardly anything can be told apart


@dataclass(frozen=True)
class Difference:
    """How much better one method is than another, over splits.

    Args:
        gain: mean over splits, above 0 if it is better.
        error: standard error of that.
        p: probability of so large a difference by chance.
        detectable: the least difference that would count as one with this spread.
    """

    gain: float
    error: float
    p: float
    detectable: float

    @property
    def sign(self) -> int:
        """1 better, −1 worse, 0 not distinguishable."""
        return int(np.sign(self.gain)) if self.p < LEVEL else 0


def corrected_test(gains: np.ndarray, train: int, test: int) -> Difference:
    """The corrected resampled t-test of Nadeau and Bengio (2003), two-sided.

    Splits share training rows, so their differences are not independent: the variance of the mean of k of them is
    taken as (1/k + n_test / n_train) s² instead of s² / k.

    >>> corrected_test(np.array([1.0, 1.1, 0.9]), train=80, test=20).sign
    1
    """
    from scipy.stats import t

    k = len(gains)
    error = math.sqrt((1 / k + test / train) * gains.var(ddof=1))
    limit = float(t.ppf(1 - LEVEL / 2, k - 1))
    gain = float(gains.mean())
    if error == 0:
        return Difference(gain, 0.0, 1.0 if gain == 0 else 0.0, 0.0)
    return Difference(gain, error, float(2 * t.sf(abs(gain) / error, k - 1)), limit * error)


def difference(comparison: Comparison, measure: Measure, method: str, other: str) -> Difference:
    """How much better a method is than another by a measure."""
    sign = 1 if measure.higher_is_better else -1
    gains = sign * (comparison.values(method, measure.key) - comparison.values(other, measure.key))
    return corrected_test(gains, comparison.rows.train, comparison.rows.test)


def headline(task: str) -> tuple[Measure, Measure]:
    """The two measures that verdicts speak about: errors, and how sure it is of what."""
    measures = MEASURES[task]
    return measures[0], measures[-1]


def verdict(comparison: Comparison) -> list[str]:
    """Sentences, the most important one first."""
    ganns = [method for method in METHODS if method.gann]
    return [_worth(comparison), *(_against_plain(comparison, gann) for gann in ganns), *_caution(comparison)]


def _worth(comparison: Comparison) -> str:
    """Whether a GaNN is worth it on this table."""
    measures, rivals = headline(comparison.task), [method for method in METHODS if not method.gann]
    contests = [(gann, measure) for gann in METHODS if gann.gann for measure in measures]
    signs = {pair: {r.key: _sign(comparison, *pair, r) for r in rivals} for pair in contests}
    wins = [pair for pair in contests if all(sign > 0 for sign in signs[pair].values())]
    helps = [pair for pair in contests if signs[pair]["plain"] > 0]
    best = _best(comparison, measures)
    if wins:
        gann, measure = wins[0]
        return (
            f"A GaNN is worth it on this table: the {gann.title} has a better {measure.noun} than every rival. {best}"
        )
    if not helps:
        return f"A GaNN is not worth it on this table: nothing shows that it is better than a plain network. {best}"
    gann, measure = helps[0]
    start = f"Priors help a network on this table: the {gann.title} has a better {measure.noun} than the plain network"
    better = [r for r in rivals if any(signs[gann, m][r.key] < 0 for m in measures)]
    if better:
        names = _joined([_the(rival) for rival in better])
        return f"{start}; but {names} {_are(better)} better than it at something. {best}"
    return f"{start}, and no rival is distinguishably better than it. {best}"


def _sign(comparison: Comparison, gann: Method, measure: Measure, rival: Method) -> int:
    return difference(comparison, measure, gann.key, rival.key).sign


def _best(comparison: Comparison, measures: tuple[Measure, Measure]) -> str:
    """Who has the best mean."""
    names = [_the(_leader(comparison, measure)) for measure in measures]
    if names[0] == names[1]:
        return f"On average {names[0]} is best at both measures."
    return f"On average {names[0]} is best by {measures[0].noun}, {names[1]} by NLL."


def _leader(comparison: Comparison, measure: Measure) -> Method:
    pick = max if measure.higher_is_better else min
    return pick(METHODS, key=lambda method: comparison.values(method.key, measure.key).mean())


def _against_plain(comparison: Comparison, gann: Method) -> str:
    """One GaNN against the plain network, and who beats it."""
    parts, measures = [], headline(comparison.task)
    for measure in measures:
        found = difference(comparison, measure, gann.key, "plain")
        noun = measure.title if measure.key == "nll" else measure.noun
        amount = f"{fixed(abs(found.gain), found.error)} ± {fixed(found.error, found.error)}"
        words = {1: f"better by {amount}", -1: f"worse by {amount}", 0: f"not distinguishable (difference {amount})"}
        parts.append(f"its {noun} is {words[found.sign]}")
    sentence = f"The {gann.title} against the plain network: {'; '.join(parts)}."
    rivals = [method for method in METHODS if not method.gann and method.key != "plain"]
    both = [r for r in rivals if all(difference(comparison, m, r.key, gann.key).sign > 0 for m in measures)]
    one = {
        m: [r for r in rivals if r not in both and difference(comparison, m, r.key, gann.key).sign > 0]
        for m in measures
    }
    if both:
        sentence += f" {_capital(_joined([_the(r) for r in both]))} {_are(both)} better than it at both."
    for measure, better in one.items():
        if better:
            noun = measure.title if measure.key == "nll" else measure.noun
            sentence += f" {_capital(_joined([_the(r) for r in better]))} {_are(better)} better at {noun}."
    return sentence


def _caution(comparison: Comparison) -> list[str]:
    """What so many splits can tell."""
    measures = headline(comparison.task)
    limits = []
    for measure in measures:
        found = [difference(comparison, measure, gann.key, "plain").detectable for gann in METHODS if gann.gann]
        noun = measure.title if measure.key == "nll" else measure.noun
        limits.append(f"{fixed(float(np.median(found)), float(np.median(found)))} in {noun}")
    words = f"With {comparison.splits} splits a difference below about {_joined(limits)} would not show"
    few = comparison.splits < _FEW
    return [f"{words}{'; so few splits can tell almost nothing, repeat with --splits 10' if few else ''}."]


def _the(method: Method) -> str:
    return method.title if method.key == "boosting" else f"the {method.title}"


def _are(methods: list[Method]) -> str:
    return "is" if len(methods) == 1 else "are"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
