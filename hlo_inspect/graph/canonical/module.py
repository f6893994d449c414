"""A module without its names: the fingerprints of its computations, one of its program and of its schedule, and its text in
canonical names.

The name of an instruction says what it is and not where it stands: its opcode, five digits of a hash of its shape, opcode and
attributes, and the number among those of its computation that are alike. That of a computation says what calls it, with six
digits of its fingerprint. So a line that is put in changes the lines that use it, and few others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b

from hlo_inspect.graph.canonical.computation import CanonicalComputation
from hlo_inspect.graph.canonical.spelling import Speller, Spelling, plain
from hlo_inspect.graph.view import View, Views, operands_first
from hlo_inspect.hlo.instruction import Operand
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import Role, callee_roles
from hlo_inspect.lazy_pattern import lazy_pattern

ENTRY = "main"
UNUSED = "unused"
_CHANNEL = lazy_pattern(r"[1-9]\d{0,18}", re.ASCII)
_MAIN_THREAD = "main"
_THREAD = "async_execution_thread"
_SCHEDULED = "is_scheduled"
_ORIGINS = "origin_recovery_table"
_OF_COMPILER = lazy_pattern(r'fingerprint_before_lhs="[^"]*+"(?:, ?)?+')
"""A hash that the compiler notes in the header, of a text with its names."""

_UNKNOWN = 0
"""Stands for a computation that the module does not have, or that calls itself."""


class KnownRows:
    """What is known of rows by what they say: spellings by head, tail, and whether these name all operands; fingerprints."""

    def __init__(self) -> None:
        self.spellings: dict[tuple[str, str, bool], Spelling] = {}
        self.fingerprints: dict[Hashable, int] = {}

    def spelling(self, speller: Speller, view: View, index: int) -> Spelling:
        """What a row says."""
        row = view.heads[index].text, view.tails[index], view.whole_operands(index) is not None
        known = self.spellings.get(row)
        if known is None:
            known = self.spellings[row] = speller.spell(view, index)
        return known


class CanonicalModule:
    """The computations of a module that was read with its graph. Without `layouts` these count for nothing.

    Kernels of the same text up to names are one object.
    """

    def __init__(self, module: Module, views: Views, *, layouts: bool = True) -> None:
        self.module = module
        self._views = views
        self.layouts = layouts
        self._known = KnownRows()

    def share_rows(self, other: CanonicalModule) -> None:
        """Rows that this module, which is compared with another one, has in common with it are worked out once."""
        self._known = other._known

    def of(self, name: str) -> CanonicalComputation:
        """A computation; `KeyError` where the module has none of that name."""
        return self._computations[name]

    def __contains__(self, name: str) -> bool:
        return name in self._computations

    def view(self, name: str) -> View:
        """The rows of a computation."""
        return self._views.of(name)

    @cached_property
    def _computations(self) -> dict[str, CanonicalComputation]:
        found: dict[str, CanonicalComputation] = {}
        fingerprints: dict[str, int] = {}
        unnamed: dict[int, CanonicalComputation] = {}
        entry = self.module.entry.name if self.module.entry is not None else None
        speller = Speller(layouts=self.layouts)
        for name in self.module.computations:
            alike = self._views.fingerprints.of(name) if name != entry else None
            if alike is not None and not self._views.fingerprints.is_alone(name):
                alike = None
            known = unnamed.get(alike) if alike is not None else None
            if known is None:
                view = self._views.of(name)
                spellings = [self._known.spelling(speller, view, index) for index in range(len(view.rows))]
                known = CanonicalComputation(
                    view, spellings, lambda callee: fingerprints.get(callee, _UNKNOWN), self._known.fingerprints
                )
                if alike is not None:
                    unnamed[alike] = known
            found[name] = known
        for name in operands_first(found, lambda name: [one for one in found[name].callees if one in found]):
            if name != entry:  # which few ask for
                fingerprints[name] = found[name].fingerprint
        return found

    @cached_property
    def inner(self) -> Counter[int]:
        """How often each fingerprint is that of a computation other than the entry."""
        entry = self.module.entry.name if self.module.entry is not None else None
        return Counter(one.fingerprint for name, one in self._computations.items() if name != entry)

    @property
    def names(self) -> list[str]:
        """The computations, in the order of the text."""
        return list(self._computations)

    @cached_property
    def program(self) -> str:
        """Names the program, in 32 hexadecimal digits: the same for two texts that differ in the names of module, computations,
        instructions and channels, in metadata, in the order of independent lines, and in whether they are scheduled.
        """
        return self._hash(is_scheduled=False)

    @cached_property
    def schedule(self) -> str | None:
        """Names program and schedule, in 32 hexadecimal digits; `None` where the module is not scheduled."""
        return self._hash(is_scheduled=True) if self.module.header.is_scheduled else None

    def _hash(self, *, is_scheduled: bool) -> str:
        hashed = blake2b(digest_size=16)
        for line in CanonicalText(self, is_scheduled=is_scheduled).unnamed_lines():
            hashed.update(line.encode(errors="surrogatepass"))
        return hashed.hexdigest()


class CanonicalText:
    """The text of a module. It keeps the order of the lines where it `is_scheduled`, else each line stands behind what it uses
    in an order that does not depend on that of the text. With `metadata` it has what was said of where instructions come from.
    """

    def __init__(self, canonical: CanonicalModule, *, is_scheduled: bool, metadata: bool = False) -> None:
        self._canonical = canonical
        self._module = canonical.module
        self._is_scheduled = is_scheduled
        self._metadata = metadata
        self._channels: dict[str, int] = {}
        self._speller = Speller(layouts=canonical.layouts, metadata=True)
        self._bodies: dict[int, list[str]] = {}

    def lines(self) -> Iterator[str]:
        """The lines, with their ends."""
        if self._module.header.printed:
            yield f"HloModule {self._module.name}{self._header()}\n\n"
        if self._metadata:
            for table in self._module.frames.tables:
                yield f"{table}\n"
        yield from self._computation_lines()

    def unnamed_lines(self) -> Iterator[str]:
        """The lines without the name of the module."""
        yield self._header()
        yield from self._computation_lines()

    # -- the header -----------------------------------------------------------------------------------------------------

    def _header(self) -> str:
        attributes = {name: plain(text) for name, text in self._module.header.attributes.items()}
        if not self._is_scheduled:
            attributes.pop(_SCHEDULED, None)
        if not self._metadata:
            attributes.pop(_ORIGINS, None)
        if "frontend_attributes" in attributes:
            attributes["frontend_attributes"] = _OF_COMPILER.sub("", attributes["frontend_attributes"])
        layout = self._module.header.entry_layout
        if layout is not None and not self._canonical.layouts:
            attributes["entry_computation_layout"] = f"{{{layout[0]}->{layout[1]}}}"
        return "".join(f", {name}={text}" if text else f", {name}" for name, text in sorted(attributes.items()))

    # -- computations ---------------------------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> dict[str, str]:
        """The canonical names of the computations, callees before callers, the entry last."""
        entry = self._module.entry.name if self._module.entry is not None else None
        called_as: dict[str, Role] = {}
        known = set(self._canonical.names)

        def callees(name: str) -> list[str]:
            found: list[str] = []
            computation = self._canonical.of(name)
            for row in self._order(computation):
                spelling = computation.spellings[row]
                for attribute, names, _ in spelling.callees:
                    role = callee_roles(spelling.opcode).get(attribute, "custom")
                    called_as.update({callee: role for callee in names if callee not in called_as})
                    found += names
            return [name for name in found if name in known]

        order = list(operands_first([entry] if entry is not None else [], callees))
        rest = sorted(known.difference(order), key=lambda name: (self._canonical.of(name).fingerprint, name))
        taken = set(order)
        later = [name for name in operands_first(rest, callees) if name not in taken]
        order[-1:-1] = later
        counts: Counter[str] = Counter()
        names: dict[str, str] = {}
        for name in order:
            if name == entry:
                names[name] = ENTRY
                continue
            base = f"{called_as.get(name, UNUSED)}.{self._canonical.of(name).fingerprint & 0xFFFFFF:06x}"
            counts[base] += 1
            names[name] = base if counts[base] == 1 else f"{base}.{counts[base]}"
        return names

    @cached_property
    def _threads(self) -> dict[str, str]:
        """The threads of the computations that do not run on the main one."""
        threads: dict[str, str] = {}
        for name in reversed(self._names):
            own = threads.get(name, "")
            for spelling in self._canonical.of(name).spellings:
                if spelling.callees:
                    thread = dict(spelling.attributes).get(_THREAD, "").strip('"') or own
                    for callee in (one for _, names, _ in spelling.callees for one in names):
                        if thread not in ("", _MAIN_THREAD):
                            threads.setdefault(callee, thread)
        return threads

    def _computation_lines(self) -> Iterator[str]:
        for name, canonical_name in self._names.items():
            is_entry = canonical_name == ENTRY
            yield f"{'ENTRY ' if is_entry else ''}%{canonical_name} {{\n"
            yield from self._kept_body(name) if self._are_alike(name) else self._body(name)
            thread = self._threads.get(name)
            yield f'}}, execution_thread="{thread}"\n\n' if thread else "}\n" if is_entry else "}\n\n"

    def _order(self, computation: CanonicalComputation) -> Sequence[int]:
        return range(len(computation.spellings)) if self._is_scheduled else computation.canonical_order

    # -- instructions ---------------------------------------------------------------------------------------------------

    @cached_property
    def _uses(self) -> Counter[int]:
        """Of how many computations each body is."""
        return Counter(id(self._canonical.of(name)) for name in self._names)

    def _are_alike(self, name: str) -> bool:
        """Whether several computations have the lines of this one."""
        return not self._metadata and self._uses[id(self._canonical.of(name))] > 1

    def _kept_body(self, name: str) -> list[str]:
        key = id(self._canonical.of(name))
        known = self._bodies.get(key)
        if known is None:
            known = self._bodies[key] = list(self._body(name))
        return known

    def _body(self, name: str) -> Iterator[str]:
        computation = self._canonical.of(name)
        order = self._order(computation)
        names = _instruction_names(computation, order)
        places = {row: place for place, row in enumerate(order)}
        root = computation.view.root
        view = self._canonical.view(name) if self._metadata else None
        for row in order:
            one = computation.spellings[row] if view is None else self._speller.spell(view, row)
            inside = one.literal or _operands(computation, row, one.operands, names)
            attributes = self._attributes(
                one, [names[row] for row in sorted(computation.predecessors[row], key=places.__getitem__)]
            )
            head = f"{one.shape} {one.opcode}" if one.shape else one.opcode
            mark = "ROOT " if row == root else ""
            yield f"  {mark}%{names[row]} = {head}({inside}){attributes}{one.rest}\n"

    def _attributes(self, one: Spelling, predecessors: Sequence[str]) -> str:
        if not (one.callees or predecessors or one.channel):
            return "".join([f", {name}={text}" for name, text in one.attributes])
        attributes = dict(one.attributes)
        for attribute, names, is_list in one.callees:
            text = ", ".join(f"%{self._names.get(name, name)}" for name in names)
            attributes[attribute] = f"{{{text}}}" if is_list else text
        if predecessors:
            attributes["control-predecessors"] = f"{{{', '.join(f'%{name}' for name in predecessors)}}}"
        if one.channel:
            attributes["channel_id"] = self._channel(one.channel)
        return "".join(f", {name}={text}" for name, text in sorted(attributes.items()))

    def _channel(self, text: str) -> str:
        if _CHANNEL.fullmatch(text) is None:
            return text
        return str(self._channels.setdefault(text, len(self._channels) + 1))


def _instruction_names(computation: CanonicalComputation, order: Sequence[int]) -> list[str]:
    """The canonical names of the rows."""
    names = [""] * len(order)
    counts: dict[str, int] = {}
    for row in order:
        one = computation.spellings[row]
        mark = one.literal if one.opcode == "parameter" and one.literal.isdigit() else f"{computation.local[row] & 0xFFFFF:05x}"
        base = f"{one.opcode}.{mark}"
        count = counts[base] = counts.get(base, 0) + 1
        names[row] = base if count == 1 else f"{base}.{count}"
    return names


def _operands(computation: CanonicalComputation, row: int, uses: Sequence[Operand], names: Sequence[str]) -> str:
    """What a row uses, in the names of the rows; with its shape where the definition, or its shape, is left out."""
    rows = computation.operands[row]
    if not uses:
        return ", ".join([f"%{names[defined]}" for defined in rows if defined is not None])
    found = []
    for use, defined in zip(uses, rows, strict=False):
        shape = f"{use.shape} " if use.shape and (defined is None or not computation.spellings[defined].shape) else ""
        name = use.name if defined is None else names[defined]
        path = "".join(f"#{step}" for step in use.path)
        found.append(use.shape if name is None else f"{shape}%{name}{path}")
    return ", ".join(found)
