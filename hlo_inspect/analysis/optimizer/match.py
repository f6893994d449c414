"""Which sites of a region are updates of weights, and by which rule."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.contents import Contents
from hlo_inspect.analysis.optimizer.dynamics import is_one_way
from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.normal import ONE, Forms, Sum, is_constant, split_zero
from hlo_inspect.analysis.optimizer.numeric import agrees
from hlo_inspect.analysis.optimizer.reach import Reach
from hlo_inspect.analysis.optimizer.readings import COARSE, EXACT
from hlo_inspect.analysis.optimizer.reductions import Reductions
from hlo_inspect.analysis.optimizer.rules import RULES
from hlo_inspect.analysis.optimizer.sites import Region, Site
from hlo_inspect.analysis.optimizer.update import LEAST_KEPT, Claim, State, Surroundings, Update, split

MAX_ROUNDS = 4


@dataclass(slots=True)
class Weight:
    """One updated weight. `claim` is `None` where no rule explains it; `copy` is the copy that the forward pass reads."""

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
        changed = [site for site in region.sites if site.is_float and not site.is_unchanged]
        self.moving = [site for site in changed if graph.ops[site.new] != "constant"]
        self.accumulators = [s for s in changed if s.shape.elements != 1 and graph.value(s.new) == 0.0]
        self.counters = [s for s in region.sites if not s.is_float and s.shape.elements == 1 and not s.is_unchanged]
        cut = frozenset(site.new for site in self.moving if graph.args[site.new])
        live = frozenset(site.own for site in self.moving)
        self.forms = Forms(graph, cut, live)
        self.reach = Reach(flow)
        self.reductions = Reductions(flow, region, self.forms)
        self._by_atom: dict[int, Site] = {}
        for site in self.moving:
            if site.new in cut:
                self._by_atom.setdefault(self.forms.leaf(site.new), site)
            self._by_atom.setdefault(self.forms.leaf(site.own), site)
        beside = [self.forms.leaf(site.own) for site in self.counters + self.accumulators]
        self._definitions: dict[int, Sum] = {}
        self.contents = Contents(self.forms, dict.fromkeys([*self._by_atom, *beside]), self._inputs_of)
        self._states: list[Site] = []
        self._hidden_bits: dict[frozenset[int | None], int] = {}
        self._candidates: set[int] = set()
        self._checked: dict[Hashable, bool] = {}
        self._chains: dict[int, list[State]] = {}
        self._own_bits: dict[int, int] = {}
        self._copies = self._find_copies()

    def weights(self) -> list[Weight]:
        """The weights of the region, by output."""
        candidates = [site for site in self.moving if self._feeds_itself(site)]
        possible = {id(site) for site in candidates}
        for site in self.moving:
            if not any(id(one) in possible for one in (site, *site.twins)) and self._is_state(site):
                self._states.append(site)
        self._candidates = {site.new for site in candidates if self._is_kept(site)}
        self._chains.clear()  # other weights are no states
        primaries = {primary.new: primary for primary in map(self._primary, candidates)}
        found = [weight for site in primaries.values() if (weight := self._match(site)) is not None]
        for _ in range(MAX_ROUNDS):
            known = {id(site) for w in found if w.claim for site in (*w.claim.roles.values(), *w.claim.extra)}
            if all(w.claim for w in found) or not any(id(site) in known for site in self._states):
                break  # else: where one network's gradient goes through the update of another, that one's states are explained
            self._states = [site for site in self._states if id(site) not in known]
            self._hidden_bits.clear()
            found = [w if w.claim else self._match(w.site) or w for w in found]
        if self.forms.is_cut_short:
            frame = self.flow.frames[self.region.frame]
            self.flow.faults.note(frame, frame.body.root, "has expressions too large to compare")
        return self._without_followers(found)

    # -- what a site depends on -----------------------------------------------------------------------------------------

    def definition(self, site: Site) -> Sum:
        known = self._definitions.get(site.new)
        if known is None:
            known = self._definitions[site.new] = self.forms.definition(site.new)
        return known

    def _inputs_of(self, leaf: int) -> int:
        """The inputs behind an opaque leaf; all that there can be, -1, behind what could not be followed."""
        node = self.forms.atoms[leaf].node
        if node in self.flow.graph.broken or node not in self.flow.graph.places:
            return -1
        return self.reach.inputs(self.flow.graph.places[node]) if node in self.flow.graph.places else 0

    def _own(self, site: Site) -> int:
        """The inputs that hold the old value of a site: its own and those of its copies."""
        known = self._own_bits.get(site.new)
        if known is None:
            known = 0
            for one in (site, *site.twins, *self._copies.get(site.new, ())):
                known |= self.reach.bit(one.source)
            self._own_bits[site.new] = known
        return known

    def _find_copies(self) -> dict[int, list[Site]]:
        """Sites that are nothing but the new value of another one, apart from `+ 0 * x`, by that value's node."""
        copies: dict[int, list[Site]] = {}
        for site in self.moving:
            form = split_zero(self.definition(site))
            ((monomial, value),) = form.items() if len(form) == 1 else (((), 0.0),)
            if value == 1.0 and len(monomial) == 1 and monomial[0][1] == 1.0:
                node = self.forms.atoms[monomial[0][0]].node
                if node is not None and node != site.own:
                    copies.setdefault(node, []).append(site)
        return copies

    def _feeds_itself(self, site: Site) -> bool:
        """Whether the new value depends on the old one through something opaque: a gradient does."""
        inputs = self.contents.inputs(self.definition(site))
        for state in self._states_of(site):
            inputs |= self.contents.inputs(state.form)
        return bool(inputs & self._own(site))

    def _is_state(self, site: Site) -> bool:
        """Whether a site that is no weight can be the state of an optimizer: not a scalar, and not just any output that is
        computed from an input of its shape.
        """
        if site.shape.elements == 1:
            return False
        factor, _ = split(self.definition(site), self.forms.leaf(site.own))
        sizes = [self.flow.graph.sizes[self.forms.atoms[leaf].node or 0] for leaf in self.forms.leaves(factor)]
        return site.is_given or (bool(factor) and all(size == 1 for size in sizes))

    def _is_kept(self, site: Site) -> bool:
        """Whether a new value is the old one, all or most of it, and something added."""
        factor, rest = split(self.definition(site), self.forms.leaf(site.own))
        return bool(rest) and LEAST_KEPT <= factor.get(ONE, 0.0) <= 1.0

    def _hidden(self, weight: Site) -> int:
        """The inputs that hold states which can belong to a weight: a gradient that depends on one is none."""
        sizes = frozenset(weight.shape.dimensions)
        bits = self._hidden_bits.get(sizes)
        if bits is None:
            bits = 0
            for site in self._states:
                if sizes.issuperset(site.shape.dimensions):
                    bits |= self.reach.bit(site.source)
            self._hidden_bits[sizes] = bits
        return bits

    def _primary(self, site: Site) -> Site:
        """Of sites with the same new value the one whose old value it holds."""
        values = self.contents.values(self.definition(site))
        return next((s for s in (site, *site.twins) if self.contents.bit(self.forms.leaf(s.own)) & values), site)

    # -- matching -------------------------------------------------------------------------------------------------------

    def _match(self, site: Site) -> Weight | None:
        update = Update(
            self.forms,
            site,
            self._states_of(site),
            Surroundings(self.contents, self.reductions, self._own(site), self._hidden(site)),
            tolerance=COARSE if self.flow.graph.coarse[site.new] else EXACT,
        )
        claim = _claim(update)
        if (claim is None or claim.rule == "sgd") and is_one_way(update):
            return None
        if claim is not None and not _descends(claim):
            if not claim.roles:
                return None  # a step of a solver, a residual: what goes up without a state is no update
            claim = None
        if claim is not None and not self._agrees(claim, update):
            claim = None
        if claim is None and not update.is_step():
            return None
        return Weight(site, update, claim, self._working_copy(site), *self._beside(update))

    def _agrees(self, claim: Claim, update: Update) -> bool:
        """Whether the algebra holds in numbers; looked at once for each rule and set of constants."""
        kind = (claim.rule, tuple(claim.readings.items()))
        if kind not in self._checked:
            self._checked[kind] = agrees(self.forms, update.site.new, update.form)
        return self._checked[kind]

    def _beside(self, update: Update) -> tuple[list[Site], list[Site]]:
        """The counters and the accumulators in the expression of an update."""
        values = self.contents.values(update.form)
        for state in update.states:
            values |= self.contents.values(state.form)
        held = set(self.contents.atoms(values))
        return [s for s in self.counters if self.forms.leaf(s.own) in held], [
            s for s in self.accumulators if self.forms.leaf(s.own) in held
        ]

    def _states_of(self, site: Site) -> list[State]:
        """The other sites in the expression of a site, and in theirs."""
        known = self._chains.get(site.new)
        if known is not None:
            return known
        found: dict[int, State] = {}
        seen = 0
        open_ = [site]
        while open_:
            values = self.contents.values(self.definition(open_.pop())) & ~seen
            seen |= values
            for atom in self.contents.atoms(values):
                other = self._by_atom.get(atom)
                if other is None or other is site or other.new in found or other.new in self._candidates:
                    continue
                form = self.definition(other)
                if other.shape.elements == 1 and not self.contents.inputs(form) & self._own(site):
                    continue  # a loss scale, a counter
                found[other.new] = State(other, self.forms.leaf(other.own), self.forms.leaf(other.new), form)
                open_.append(other)
        self._chains[site.new] = list(found.values())
        return self._chains[site.new]

    def _working_copy(self, site: Site) -> Site | None:
        copies = [one for one in (*site.twins, *self._copies.get(site.new, ())) if one.bytes < site.bytes]
        return copies[0] if copies else None

    def _without_followers(self, found: list[Weight]) -> list[Weight]:
        """Leaves out what follows another weight (an average of it) or serves one as its state."""
        serving = {id(site) for w in found if w.claim for site in (*w.claim.roles.values(), *w.claim.extra)}
        new = 0
        for weight in found:
            new |= self.contents.bit(self.forms.leaf(weight.site.new))
        kept = []
        for weight in found:
            follows = self.contents.values(weight.update.form) & new
            if id(weight.site) in serving or (weight.claim is None and follows):
                continue
            kept.append(weight)
        return kept


def _claim(update: Update) -> Claim | None:
    """The claim of the rule that explains an update. Constants can be anything: where arithmetic with them fails none does."""
    for rule in RULES.values():
        try:
            claim = rule(update)
        except ArithmeticError:
            continue
        if claim is not None:
            return claim
    return None


def _descends(claim: Claim) -> bool:
    """Whether the step goes down: with a rate that is a number, it has to be positive."""
    return not is_constant(claim.rate) or claim.rate.get(ONE, 0.0) > 0.0
