"""Words about a comparison: who is better at what, and whether a GaNN is worth it."""

import math
from dataclasses import dataclass

import numpy as np

from ganns.table.comparing import Comparison
from ganns.table.rivals import METHODS, Method
from ganns.table.scoring import MEASURES, Measure
from ganns.table.wording import fixed, number, percent

LEVEL = 0.05
GANNS = tuple(method for method in METHODS if method.gann)
RIVALS = tuple(method for method in METHODS if not method.gann)
_TINY = 1e-5  # errors below would be rounded away
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

    def __str__(self) -> str:
        return plus_minus(self.gain, self.error)


def plus_minus(value: float, error: float, like: float | None = None) -> str:
    """A number with its error, both with as many places as show two digits of the error, or of `like`.

    >>> plus_minus(0.10862, 0.0312), plus_minus(-12.25, 31.4), plus_minus(1.234e-9, 0.5e-9)
    ('0.109 ± 0.031', '−12 ± 31', '1.2e-09 ± 5e-10')
    """
    if 0 < error < _TINY:
        return f"{value:.2g} ± {error:.2g}".replace("-", "−", int(value < 0))
    places = 10 * (error if like is None else like)
    return f"{fixed(value, places)} ± {fixed(error, places)}".replace("-", "−")


def corrected_test(gains: np.ndarray, train: int, test: int) -> Difference:
    """The corrected resampled t-test of Nadeau and Bengio (2003), two-sided.

    Splits share training rows, so their differences are not independent: the variance of the mean of k of them is
    taken as (1/k + n_test / n_train) s² instead of s² / k. Where all k are the same there is no spread to hold them
    against, and it is the sign test that decides.

    >>> corrected_test(np.array([1.0, 1.1, 0.9]), train=80, test=20).sign
    1
    """
    from scipy.stats import t

    k = len(gains)
    gain, error = float(gains.mean()), math.sqrt((1 / k + test / train) * gains.var(ddof=1))
    if np.ptp(gains) == 0:
        return Difference(gain, 0.0, 2 * 0.5**k if gain else 1.0, 0.0)
    return Difference(gain, error, float(2 * t.sf(abs(gain) / error, k - 1)), float(t.isf(LEVEL / 2, k - 1)) * error)


def difference(comparison: Comparison, measure: Measure, method: str, other: str) -> Difference:
    """How much better a method is than another by a measure."""
    return corrected_test(gains(comparison, measure, method, other), comparison.rows.train, comparison.rows.test)


def gains(comparison: Comparison, measure: Measure, method: str, other: str) -> np.ndarray:
    """How much better a method is than another by a measure, on each split."""
    sign = 1 if measure.higher_is_better else -1
    return sign * (comparison.values(method, measure.key) - comparison.values(other, measure.key))


def level(comparison: Comparison, measure: Measure, method: str) -> tuple[str, str]:
    """A method's mean over splits, and that ± its standard deviation, with as many places as all methods get."""
    spread = float(np.median([comparison.values(each.key, measure.key).std(ddof=1) for each in METHODS]))
    values = comparison.values(method, measure.key)
    words = plus_minus(float(values.mean()), float(values.std(ddof=1)), spread)
    return words.partition(" ")[0], words


def chance(p: float) -> str:
    """A probability p of a test.

    >>> chance(0.00004), chance(0.0312), chance(0.5)
    ('< 0.001', '0.031', '0.50')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def headline(task: str) -> tuple[Measure, Measure]:
    """The two measures that verdicts speak about: errors, and how sure it is of what."""
    measures = MEASURES[task]
    return measures[0], measures[-1]


def leader(comparison: Comparison, measure: Measure, methods: tuple[Method, ...] = METHODS) -> Method:
    """Who has the best mean, whether or not others can be told apart from it."""
    pick = max if measure.higher_is_better else min
    return pick(methods, key=lambda method: comparison.values(method.key, measure.key).mean())


def verdict(comparison: Comparison) -> list[str]:
    """Sentences, the most important one first."""
    return [_worth(comparison), *(_against(comparison, gann) for gann in GANNS), _caution(comparison)]


def _worth(comparison: Comparison) -> str:
    """Whether a GaNN is worth it on this table.

    It is asked of each GaNN for each measure, so each answer needs a p that many times smaller (Bonferroni).
    """
    measures = headline(comparison.task)
    asked = {(gann, measure): _against_rivals(comparison, gann, measure) for gann in GANNS for measure in measures}
    average = _average(comparison, measures)

    def sure(found: Difference) -> bool:
        return found.sign > 0 and found.p < LEVEL / len(asked)

    for (gann, measure), found in asked.items():
        if all(sure(each) for each in found.values()):
            better = f"the {gann.title} has a better {measure.noun} than every rival"
            return f"A GaNN is worth it on this table: {better}. {average}"
    helps = [pair for pair, found in asked.items() if found["plain"].sign > 0]
    if not helps:
        return f"A GaNN is not worth it on this table: nothing shows that it is better than a plain network. {average}"
    gann, measure = min(helps, key=lambda pair: asked[pair]["plain"].p)
    against_plain = asked[gann, measure]["plain"]
    it = f"the {gann.title} has a better {measure.noun} than the plain network"
    if not sure(against_plain):
        return (
            f"Whether a GaNN is worth it on this table is not clear: {it} (p = {against_plain.p:.2f}), but one of "
            f"{len(asked)} such comparisons comes out like this by chance on up to {percent(LEVEL / 2 * len(asked))} "
            f"of tables. {average}"
        )
    better = [rival for rival in RIVALS if any(asked[gann, each][rival.key].sign < 0 for each in measures)]
    if better:
        but = f"; but {_names(better)} better than it at something"
    else:
        but = ", and no rival is distinguishably better than it"
    return f"Priors help a network on this table: {it}{but}. {average}"


def _against_rivals(comparison: Comparison, gann: Method, measure: Measure) -> dict[str, Difference]:
    return {rival.key: difference(comparison, measure, gann.key, rival.key) for rival in RIVALS}


def _average(comparison: Comparison, measures: tuple[Measure, Measure]) -> str:
    """Who has the best mean."""
    first, last = (leader(comparison, measure).name for measure in measures)
    if first == last:
        return f"On average {first} is best at both {_short(measures[0])} and {_short(measures[1])}."
    return f"On average {first} is best at {_short(measures[0])}, {last} at {_short(measures[1])}."


def _against(comparison: Comparison, gann: Method) -> str:
    """One GaNN against the plain network, and who beats it."""
    parts, measures = [], headline(comparison.task)
    for measure in measures:
        found = difference(comparison, measure, gann.key, "plain")
        amount = f"by {plus_minus(abs(found.gain), found.error)}"
        way = "worse" if found.gain < 0 else "better"
        words = f"{way} {amount}" if found.sign else f"not distinguishable ({way} {amount})"
        words = words if found.gain else "the same on average"
        parts.append(f"its {_short(measure)} is {words}")
    sentence = f"The {gann.title} against the plain network: {'; '.join(parts)}."
    others = [rival for rival in RIVALS if rival.key != "plain"]
    beaten = {m: [r for r in others if difference(comparison, m, r.key, gann.key).sign > 0] for m in measures}
    both = [rival for rival in others if all(rival in better for better in beaten.values())]
    if both:
        sentence += f" {_capital(_names(both))} better than it at both."
    for measure, better in beaten.items():
        if one := [rival for rival in better if rival not in both]:
            sentence += f" {_capital(_names(one))} better than it at {_short(measure)}."
    return sentence


def _caution(comparison: Comparison) -> str:
    """What so many splits can tell."""
    limits = []
    for measure in headline(comparison.task):
        found = [difference(comparison, measure, gann.key, "plain").detectable for gann in GANNS]
        limits.append(f"{number(float(np.median(found)), 2)} in {_short(measure)}")
    words = f"With {comparison.splits} splits a difference below about {' and '.join(limits)} would not show"
    few = comparison.splits < _FEW
    return f"{words}{'; so few splits can tell almost nothing, repeat with --splits 10' if few else ''}."


def _short(measure: Measure) -> str:
    """A measure within a sentence that names several."""
    return measure.title if measure.key == "nll" else measure.noun


def _names(methods: list[Method]) -> str:
    """Names and the verb that goes with so many."""
    names = [method.name for method in methods]
    words = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{words} {'is' if len(names) == 1 else 'are'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
