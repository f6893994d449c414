"""Facts by name: which specification covers a name, and the facts of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from hlo_inspect.errors import UnknownFactError, did_you_mean
from hlo_inspect.figure import Figure
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import FactSpec
from hlo_inspect.report.table import LOWER_BOUND, UPPER_BOUND, Plain, Value, lower_bound, plain, upper_bound

_FAMILY = lazy_pattern(r"(.*)<(\w+)>(.*)")
_WHOLE = lazy_pattern(r"[1-9][0-9]*")


class Facts(dict[str, Plain]):
    """The facts of a report by name, as scripts read them. A member of a family that does not occur is 0.

    An unknown fact is None, and its bounds, if it has some, are facts of their own (`table.figure_of` joins them). Another name
    raises UnknownFactError with the nearest names.
    """

    def __init__(self, values: Mapping[str, Value], specs: Iterable[FactSpec]) -> None:
        super().__init__()
        self._specs = tuple(specs)
        for name, value in values.items():
            self[name] = plain(value)
            if isinstance(value, Figure):
                bounds = {LOWER_BOUND: lower_bound(value) or None, UPPER_BOUND: upper_bound(value)}
                self.update({f"{name}{suffix}": bound for suffix, bound in bounds.items() if bound is not None})

    def __missing__(self, name: str) -> Plain:
        spec_and_member = find_spec(name, self._specs) if isinstance(name, str) else None
        if spec_and_member is not None and spec_and_member[1] is not None and exact_name(name) == name:
            return 0
        raise UnknownFactError(f"this report has no fact {name!r}{did_you_mean(str(name), self, cutoff=0.5)}")


def find_spec(name: str, specs: Iterable[FactSpec]) -> tuple[FactSpec, str | None] | None:
    """Return the specification that covers the fact, with the member if it is a family; None if there is none.

    A single fact comes before a family; of several families the one with the longest fixed text wins:
    `collectives.group_size.8.count` is not about a kind called `group_size.8`. A bound of a fact has its specification.
    """
    of_bound = exact_name(name) != name
    name = exact_name(name)
    fits = [
        (spec, member)
        for spec in specs
        for member in members_of(name, spec)
        if not (of_bound and spec.unit in ("text", "bool"))
    ]
    return max(fits, key=lambda fit: len(name) - len(fit[1] or ""), default=None)


class SpecIndex:
    """The specifications of many facts by the fixed text that their names begin with. It answers as `find_spec` does."""

    def __init__(self, specs: Iterable[FactSpec]) -> None:
        self._by_start: dict[str, list[FactSpec]] = {}
        lengths: set[int] = set()
        for spec in specs:
            family = _family_parts(spec.name)
            start = spec.name if family is None else family[0]
            self._by_start.setdefault(start, []).append(spec)
            if family is not None:
                lengths.add(len(start))
        self._lengths = sorted(lengths)

    def find(self, name: str) -> tuple[FactSpec, str | None] | None:
        """Return the specification that covers the fact, with the member if it is a family; None if there is none."""
        exact = exact_name(name)
        starts = {exact, *(exact[:length] for length in self._lengths)}
        candidates = [spec for start in sorted(starts & self._by_start.keys()) for spec in self._by_start[start]]
        return find_spec(name, candidates) if candidates else None


def is_family(spec: FactSpec) -> bool:
    """Return True if the specification stands for many facts, one for each member."""
    return _FAMILY.fullmatch(spec.name) is not None


def exact_name(name: str) -> str:
    """Return the name of the fact of which `name` is a bound, else `name`."""
    return name.removesuffix(LOWER_BOUND).removesuffix(UPPER_BOUND)


@lru_cache(maxsize=1024)
def _family_parts(name: str) -> tuple[str, str, str] | None:
    """Return the text before a family's placeholder, the placeholder and the text after it; None for a single fact."""
    family = _FAMILY.fullmatch(name)
    return (family[1], family[2], family[3]) if family is not None else None


def members_of(name: str, spec: FactSpec) -> Iterator[str | None]:
    """Yield None if `spec` is this very fact, or the member if it is a family with that member; else nothing."""
    family = _family_parts(spec.name)
    if family is None:
        if name == spec.name:
            yield None
        return
    prefix, placeholder, suffix = family
    if not name.startswith(prefix):
        return
    member = name.removeprefix(prefix).removesuffix(suffix)
    if not member or name != prefix + member + suffix:
        return
    open_to_it = placeholder != "n" or _WHOLE.fullmatch(member) is not None
    if open_to_it if spec.members is None else member in spec.members:
        yield member


def fact_names(specs: Iterable[FactSpec]) -> Iterator[str]:
    """Yield every name of a fact; an open family as it is specified."""
    for spec in specs:
        family = _FAMILY.fullmatch(spec.name)
        if family is None or spec.members is None:
            yield spec.name
        else:
            yield from (family[1] + member + family[3] for member in sorted(spec.members))
