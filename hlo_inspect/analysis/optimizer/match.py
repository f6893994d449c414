"""Which sites of a region are updates of weights, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.normal import Forms, Sum, split_zero
from hlo_inspect.analysis.optimizer.reach import Reach
from hlo_inspect.analysis.optimizer.readings import COARSE, EXACT
from hlo_inspect.analysis.optimizer.reductions import Reductions
from hlo_inspect.analysis.optimizer.rules import RULES
from hlo_inspect.analysis.optimizer.sites import Region, Site
from hlo_inspect.analysis.optimizer.update import Claim, State, Update, split


@dataclass(slots=True)
class Weight:
    """One updated weight. `claim` is `None` where no rule explains the update; `copy` is the copy that the forward pass reads."""

    site: Site
    update: Update
    claim: Claim | None
    copy: Site | None = None
    counters: list[Site] = field(default_factory=list)
    accumulators: list[Site] = field(default_factory=list)

    @property
    def rule(self) -> str:
        return self.claim.rule if self.claim is not None else "unknown"


class Matcher:
    """Matches the sites of one region."""

    def __init__(self, flow: Flow, region: Region) -> None:
        self.flow = flow
        self.region = region
        graph = flow.graph
        self.moving = [site for site in region.sites if site.is_float and not site.is_unchanged and graph.args[site.new]]
        self.accumulators = [s for s in region.sites if s.is_float and s.shape.elements != 1 and graph.value(s.new) == 0.0]
        self.counters = [s for s in region.sites if not s.is_float and s.shape.elements == 1 and not s.is_unchanged]
        cut = frozenset(site.new for site in self.moving)
        live = frozenset(site.own for site in region.sites if site.is_float)
        self.forms = Forms(graph, cut, live)
        self.reach = Reach(flow)
        self.reductions = Reductions(flow, region, self.forms)
        self._by_atom: dict[int, Site] = {}
        for site in self.moving:
            self._by_atom.setdefault(self.forms.leaf(site.new), site)
            self._by_atom.setdefault(self.forms.leaf(site.own), site)
        self._definitions: dict[int, Sum] = {}
        self._inputs: dict[int, int] = {}
        self._states = 0

    def weights(self) -> list[Weight]:
        """The weights of the region, by output."""
        candidates = [site for site in self.moving if self._feeds_itself(site)]
        possible = {id(site) for site in candidates}
        for site in self.moving:
            if not any(id(one) in possible for one in (site, *site.twins)) and self._is_state(site):
                self._states |= self.reach.bit(site.source)
        found: list[Weight] = []
        seen: set[int] = set()
        for site in candidates:
            primary = self._primary(site)
            if primary.new in seen:
                continue
            seen.add(primary.new)
            weight = self._match(primary)
            if weight is not None:
                found.append(weight)
        return self._without_followers(found)

    # -- what a site depends on -----------------------------------------------------------------------------------------

    def definition(self, site: Site) -> Sum:
        known = self._definitions.get(site.new)
        if known is None:
            known = self._definitions[site.new] = self.forms.definition(site.new)
        return known

    def inputs_of(self, leaf: int) -> int:
        """The inputs behind an opaque leaf."""
        known = self._inputs.get(leaf)
        if known is None:
            atom = self.forms.atoms[leaf]
            place = atom.attribute
            known = self.reach.inputs(place) if atom.op == "opaque" and isinstance(place, tuple) else 0  # type: ignore[arg-type]
            self._inputs[leaf] = known
        return known

    def _own(self, site: Site) -> int:
        bits = 0
        for one in (site, *site.twins, *self._copies(site)):
            bits |= self.reach.bit(one.source)
        return bits

    def _copies(self, site: Site) -> list[Site]:
        """Sites that are nothing but the new value of another one, apart from `+ 0 * x`."""
        atom = self.forms.leaf(site.new)
        return [
            other for other in self.moving if other.new != site.new and split_zero(self.definition(other)) == {((atom, 1.0),): 1.0}
        ]

    def _feeds_itself(self, site: Site) -> bool:
        own = self._own(site)
        leaves = set(self.forms.leaves(self.definition(site)))
        for state in self._states_of(site):
            leaves |= self.forms.leaves(state.form)
        return any(self.inputs_of(leaf) & own for leaf in leaves)

    def _is_state(self, site: Site) -> bool:
        """Whether a site that is no weight can be the state of an optimizer: not a scalar, and not just any output that is
        computed from an input of its shape.
        """
        if site.shape.elements == 1:
            return False
        factor, _ = split(self.definition(site), self.forms.leaf(site.own))
        sizes = [self.flow.graph.sizes[self.forms.atoms[leaf].node or 0] for leaf in self.forms.leaves(factor)]
        return site.is_given or (bool(factor) and all(size == 1 for size in sizes))

    def _primary(self, site: Site) -> Site:
        """Of sites with the same new value the one whose old value it holds."""
        leaves = self.forms.leaves(self.definition(site))
        return next((s for s in (site, *site.twins) if self.forms.leaf(s.own) in leaves), site)

    # -- matching -------------------------------------------------------------------------------------------------------

    def _match(self, site: Site) -> Weight | None:
        own = self._own(site)
        update = Update(
            self.forms,
            site,
            self._states_of(site),
            lambda leaf: bool(self.inputs_of(leaf) & own),
            lambda leaf: bool(self.inputs_of(leaf) & self._states),
            self.reductions,
            tolerance=self._tolerance(site),
        )
        claim = next((claim for rule in RULES.values() if (claim := rule(update)) is not None), None)
        if claim is None and not update.is_step():
            return None
        return Weight(site, update, claim, self._working_copy(site), *self._beside(update))

    def _beside(self, update: Update) -> tuple[list[Site], list[Site]]:
        """The counters and the accumulators in the expression of an update."""
        leaves = set(self.forms.leaves(update.form))
        for state in update.states:
            leaves |= self.forms.leaves(state.form)
        nodes = {self.forms.atoms[leaf].node for leaf in leaves}
        return [s for s in self.counters if s.own in nodes], [s for s in self.accumulators if s.own in nodes]

    def _states_of(self, site: Site) -> list[State]:
        """The other sites in the expression of a site, and in theirs."""
        found: dict[int, State] = {}
        open_ = [site]
        while open_:
            for leaf in sorted(self.forms.leaves(self.definition(open_.pop()))):
                other = self._by_atom.get(leaf)
                if other is None or other is site or other in site.twins or other.new in found:
                    continue
                if other.shape.elements == 1 and not self._takes_gradient(other, site):
                    continue  # a loss scale, a counter
                old, new = self.forms.leaf(other.own), self.forms.leaf(other.new)
                found[other.new] = State(other, old, new, self.definition(other))
                open_.append(other)
        return list(found.values())

    def _takes_gradient(self, state: Site, weight: Site) -> bool:
        own = self._own(weight)
        return any(self.inputs_of(leaf) & own for leaf in self.forms.leaves(self.definition(state)))

    def _tolerance(self, site: Site) -> float:
        graph = self.flow.graph
        is_coarse = any(
            graph.ops[node] == "constant" and graph.attributes[node][1]  # type: ignore[index]
            for node in graph.below([site.new])
        )
        return COARSE if is_coarse else EXACT

    def _working_copy(self, site: Site) -> Site | None:
        copies = [one for one in (*site.twins, *self._copies(site)) if one.bytes < site.bytes]
        return copies[0] if copies else None

    def _without_followers(self, found: list[Weight]) -> list[Weight]:
        """Leaves out what follows another weight (an average of it) or serves one as its state."""
        serving = {id(site) for w in found if w.claim for site in (*w.claim.roles.values(), *w.claim.extra)}
        new = {self.forms.leaf(w.site.new): w for w in found}
        kept = []
        for weight in found:
            held = self.forms.leaves(weight.update.form) & new.keys()
            if id(weight.site) in serving or (weight.claim is None and held):
                continue
            kept.append(weight)
        return kept
