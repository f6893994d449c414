"""Where the learning rate of a weight comes from, in words."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.explain import text
from hlo_inspect.analysis.optimizer.find import Optimizer
from hlo_inspect.analysis.optimizer.match import Weight
from hlo_inspect.analysis.optimizer.normal import Forms, Sum
from hlo_inspect.analysis.optimizer.readings import ABSENT
from hlo_inspect.analysis.optimizer.schedules import counts_steps, opened, schedule_in_words


class Rates:
    """The rates of an optimizer's weights; equal expressions are looked at once."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._known: dict[tuple[int, frozenset[tuple[object, float]]], str] = {}
        self._counters = {id(m.forms): {m.forms.leaf(site.own): site for site in m.counters} for m in optimizer.matchers}

    def text(self, weight: Weight) -> str:
        """`constant`, `absent`, a schedule by name, or what the rate is computed from and how."""
        claim, forms = weight.claim, weight.update.forms
        state = (claim.readings.get("learning_rate", ABSENT) if claim is not None else ABSENT).state
        if claim is None or state != "computed":
            return state
        key = (id(forms), frozenset(claim.rate.items()))
        if key not in self._known:
            self._known[key] = self._schedule(forms, claim.rate) or self._expression(forms, claim.rate)
        return self._known[key]

    def _schedule(self, forms: Forms, rate: Sum) -> str | None:
        rate = opened(forms, rate)
        leaves = forms.leaves(rate)
        counter = next(iter(leaves)) if len(leaves) == 1 else None
        site = self._counters[id(forms)].get(counter) if counter is not None else None
        if counter is None or site is None or not counts_steps(forms, forms.definition(site.new), counter):
            return None
        return schedule_in_words(forms, rate, counter)

    def _expression(self, forms: Forms, rate: Sum) -> str:
        sources = [forms.graph.sources.get(node) for leaf in forms.leaves(rate) if (node := forms.atoms[leaf].node) is not None]
        parameters = [self._optimizer.parameters[source] for source in sources if source in self._optimizer.parameters]
        numbers = sorted({number for number, _ in parameters})
        plural = "s" if len(numbers) > 1 else ""
        source = f" from parameter{plural} {', '.join(map(str, numbers))}" if numbers else ""
        return f"computed{source}: {text(forms, rate)}"
