"""A module without its names: fingerprints of computations, program and schedule, and its text in canonical names.

The name of an instruction does not depend on its position. It is the opcode, five digits of a hash of shape, opcode and
attributes, and a number if the computation has several such names. The name of a computation is the role in which it is called,
with six digits of its fingerprint. So an inserted line changes the lines that use it, and few others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b

from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation
from hlo_inspect.graph.canonical.device_ids import DeviceTexts
from hlo_inspect.graph.canonical.spelling import Speller, Spelling, plain
from hlo_inspect.graph.canonical.tuple_elements import with_elements
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Operand
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import Role, callee_roles
from hlo_inspect.lazy_pattern import lazy_pattern

ENTRY = "main"
UNUSED = "unused"
_CHANNEL = lazy_pattern(r"[1-9]\d{0,18}", re.ASCII)
_NAMING_OTHERS = lazy_pattern(r"(?:channel_id|control-predecessors)=", re.ASCII)
_MAIN_THREAD = "main"
_THREAD = "async_execution_thread"
_SCHEDULED = "is_scheduled"
_ORIGINS = "origin_recovery_table"
_OF_COMPILER = lazy_pattern(r'fingerprint_before_lhs="[^"]*+"(?:, ?)?+')
"""A hash in the header that the compiler computes from a text with names."""

_UNKNOWN = 0
"""Fingerprint of a computation that the module does not have, or that calls itself."""


class CanonicalModule:
    """The computations of a module that was read with its graph. Without `layouts`, layouts do not count.

    `devices` replaces the texts that name devices; the meshes in the header do not count then. Without `tuning`, choices of
    autotuning do not count, as between processes that measure by themselves.
    Computations without callees whose texts differ only in names are one object.
    """

    def __init__(
        self,
        module: Module,
        views: Views,
        *,
        layouts: bool = True,
        devices: DeviceTexts | None = None,
        tuning: bool = True,
    ) -> None:
        self.module = module
        self._views = views
        self.layouts = layouts
        self.devices = devices
        self._tuning = tuning
        self._own_views: dict[str, View] = {}

    def computation(self, name: str) -> CanonicalComputation:
        """Return a computation. Raise KeyError if the module has none of that name."""
        return self._computations[name]

    def __contains__(self, name: str) -> bool:
        return name in self._computations

    def view(self, name: str) -> View:
        """Return the rows of a computation, with one for each element of a tuple that the text writes as `x#1`."""
        view = self._own_views.get(name)
        if view is None:
            view = self._own_views[name] = with_elements(self._views.for_computation(name))
        return view

    def is_printed(self, name: str, row: int) -> bool:
        """Return True if the text has the row, False if it writes `x#1`."""
        return row < len(self._views.for_computation(name).rows)

    @cached_property
    def _computations(self) -> dict[str, CanonicalComputation]:
        computations: dict[str, CanonicalComputation] = {}
        fingerprints: dict[str, int] = {}
        row_fingerprints: dict[Hashable, int] = {}
        unnamed: dict[int, CanonicalComputation] = {}
        entry = self.module.entry.name if self.module.entry is not None else None
        speller = Speller(layouts=self.layouts, devices=self.devices, tuning=self._tuning)
        for name in self.module.computations:
            number = self._views.classes.of_computation(name) if name != entry and self._has_own_names(name) else None
            canonical = unnamed.get(number) if number is not None else None
            if canonical is None:
                view = self.view(name)
                spellings = [speller.spell(view, index) for index in range(len(view.rows))]
                canonical = CanonicalComputation(
                    view, spellings, lambda callee: fingerprints.get(callee, _UNKNOWN), row_fingerprints
                )
                if number is not None:
                    unnamed[number] = canonical
            computations[name] = canonical
        for name in operands_first(
            computations, lambda name: [called for called in computations[name].callees if called in computations]
        ):
            if name != entry:  # rarely needed
                fingerprints[name] = computations[name].fingerprint
        return computations

    def _has_own_names(self, name: str) -> bool:
        """Return True if the rows of a computation name its own rows alone, and no callees, channels or predecessors."""
        rows = self.module.computations[name].rows
        return not rows.column.calling and not any(_NAMING_OTHERS.search(tail) for tail in rows.tails)

    @cached_property
    def inner(self) -> Counter[int]:
        """The number of computations other than the entry that have each fingerprint."""
        entry = self.module.entry.name if self.module.entry is not None else None
        return Counter(canonical.fingerprint for name, canonical in self._computations.items() if name != entry)

    @property
    def names(self) -> list[str]:
        """The computations, in the order of the text."""
        return list(self._computations)

    @cached_property
    def program(self) -> str:
        """Hash of the program, in 32 hexadecimal digits.

        It ignores the names of module, computations, instructions and channels, metadata, the order of independent lines, and
        whether they are scheduled.
        """
        return self._hash(is_scheduled=False)

    @cached_property
    def schedule(self) -> str | None:
        """Hash of program and schedule, in 32 hexadecimal digits; None if the module is not scheduled."""
        return self._hash(is_scheduled=True) if self.module.header.is_scheduled else None

    def ordered_rows(self) -> Iterator[tuple[View, int]]:
        """Yield the rows but for elements of tuples, in an order that does not depend on that of the text."""
        for name in CanonicalText(self, is_scheduled=False).computations:
            computation = self.computation(name)
            yield from ((self.view(name), row) for row in computation.canonical_order if row not in computation.elements)

    def _hash(self, *, is_scheduled: bool) -> str:
        hashed = blake2b(digest_size=16)
        for line in CanonicalText(self, is_scheduled=is_scheduled).unnamed_lines():
            hashed.update(line.encode(errors="surrogatepass"))
        return hashed.hexdigest()


class CanonicalText:
    """The text of a module.

    If the module `is_scheduled`, the text keeps the order of the lines. Otherwise operands stand before users, in an order that
    does not depend on the order of the module's text. With `metadata` the text keeps the origins of instructions.
    """

    def __init__(self, canonical: CanonicalModule, *, is_scheduled: bool, metadata: bool = False) -> None:
        self._canonical = canonical
        self._module = canonical.module
        self._is_scheduled = is_scheduled
        self._metadata = metadata
        self._channels: dict[str, int] = {}
        self._speller = Speller(layouts=canonical.layouts, metadata=True)
        self._bodies: dict[int, list[str]] = {}

    @property
    def computations(self) -> list[str]:
        """The computations in the order of the text: callees before callers, the entry last."""
        return list(self._names)

    def lines(self) -> Iterator[str]:
        """Yield the lines, with their ends."""
        if self._module.header.printed:
            yield f"HloModule {self._module.name}{self._header()}\n\n"
        if self._metadata:
            for table in self._module.frames.tables:
                yield f"{table}\n"
        yield from self._computation_lines()

    def unnamed_lines(self) -> Iterator[str]:
        """Yield the lines without the name of the module."""
        yield self._header()
        yield from self._computation_lines()

    # -- the header -----------------------------------------------------------------------------------------------------

    def _header(self) -> str:
        attributes = {name: plain(text) for name, text in self._module.header.attributes.items()}
        if not self._is_scheduled:
            attributes.pop(_SCHEDULED, None)
        if not self._metadata:
            attributes.pop(_ORIGINS, None)
        if self._canonical.devices is not None:
            attributes.pop("frontend_attributes", None)
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
        defined = set(self._canonical.names)

        def callees(name: str) -> list[str]:
            called: list[str] = []
            computation = self._canonical.computation(name)
            for row in self._order(computation):
                spelling = computation.spellings[row]
                for attribute, names, _ in spelling.callees:
                    role = callee_roles(spelling.opcode).get(attribute, "custom")
                    called_as.update({callee: role for callee in names if callee not in called_as})
                    called += names
            return [name for name in called if name in defined]

        order = list(operands_first([entry] if entry is not None else [], callees))
        rest = sorted(defined.difference(order), key=lambda name: (self._canonical.computation(name).fingerprint, name))
        used_names = set(order)
        later = [name for name in operands_first(rest, callees) if name not in used_names]
        order[-1:-1] = later
        counts: Counter[str] = Counter()
        names: dict[str, str] = {}
        for name in order:
            if name == entry:
                names[name] = ENTRY
                continue
            base = f"{called_as.get(name, UNUSED)}.{self._canonical.computation(name).fingerprint & 0xFFFFFF:06x}"
            counts[base] += 1
            names[name] = base if counts[base] == 1 else f"{base}.{counts[base]}"
        return names

    @cached_property
    def _threads(self) -> dict[str, str]:
        """The threads of the computations that do not run on the main thread."""
        threads: dict[str, str] = {}
        for name in reversed(self._names):
            own = threads.get(name, "")
            for spelling in self._canonical.computation(name).spellings:
                if spelling.callees:
                    thread = dict(spelling.attributes).get(_THREAD, "").strip('"') or own
                    for callee in (name for _, names, _ in spelling.callees for name in names):
                        if thread not in ("", _MAIN_THREAD):
                            threads.setdefault(callee, thread)
        return threads

    def _computation_lines(self) -> Iterator[str]:
        for name, canonical_name in self._names.items():
            is_entry = canonical_name == ENTRY
            yield f"{'ENTRY ' if is_entry else ''}%{canonical_name} {{\n"
            yield from self._kept_body(name) if self._is_repeated(name) else self._body(name)
            thread = self._threads.get(name)
            yield f'}}, execution_thread="{thread}"\n\n' if thread else "}\n" if is_entry else "}\n\n"

    def _order(self, computation: CanonicalComputation) -> Sequence[int]:
        return computation.rows if self._is_scheduled else computation.canonical_order

    # -- instructions ---------------------------------------------------------------------------------------------------

    @cached_property
    def _uses(self) -> Counter[int]:
        """The number of computations that share each body."""
        return Counter(id(self._canonical.computation(name)) for name in self._names)

    def _is_repeated(self, name: str) -> bool:
        """Return True if another computation has the same lines."""
        return not self._metadata and self._uses[id(self._canonical.computation(name))] > 1

    def _kept_body(self, name: str) -> list[str]:
        key = id(self._canonical.computation(name))
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = list(self._body(name))
        return body

    def _body(self, name: str) -> Iterator[str]:
        computation = self._canonical.computation(name)
        order = self._order(computation)
        names = _instruction_names(computation, order)
        places = {row: place for place, row in enumerate(order)}
        root = computation.view.root
        view = self._canonical.view(name) if self._metadata else None
        for row in order:
            spelling = computation.spellings[row] if view is None else self._speller.spell(view, row)
            content = spelling.literal or _operands(computation, row, spelling.operands, names)
            attributes = self._attributes(
                spelling, [names[row] for row in sorted(computation.predecessors[row], key=places.__getitem__)]
            )
            head = f"{spelling.shape} {spelling.opcode}" if spelling.shape else spelling.opcode
            mark = "ROOT " if row == root else ""
            yield f"  {mark}%{names[row]} = {head}({content}){attributes}{spelling.rest}\n"

    def _attributes(self, spelling: Spelling, predecessors: Sequence[str]) -> str:
        if not (spelling.callees or predecessors or spelling.channel):
            return "".join([f", {name}={text}" for name, text in spelling.attributes])
        attributes = dict(spelling.attributes)
        for attribute, names, is_list in spelling.callees:
            text = ", ".join(f"%{self._names.get(name, name)}" for name in names)
            attributes[attribute] = f"{{{text}}}" if is_list else text
        if predecessors:
            attributes["control-predecessors"] = f"{{{', '.join(f'%{name}' for name in predecessors)}}}"
        if spelling.channel:
            attributes["channel_id"] = self._channel(spelling.channel)
        return "".join(f", {name}={text}" for name, text in sorted(attributes.items()))

    def _channel(self, text: str) -> str:
        if _CHANNEL.fullmatch(text) is None:
            return text
        return str(self._channels.setdefault(text, len(self._channels) + 1))


def _instruction_names(computation: CanonicalComputation, order: Sequence[int]) -> list[str]:
    names = [""] * len(computation.spellings)
    counts: dict[str, int] = {}
    for row in order:
        spelling = computation.spellings[row]
        mark = (
            spelling.literal
            if spelling.opcode == "parameter" and spelling.literal.isdigit()
            else f"{computation.local[row] & 0xFFFFF:05x}"
        )
        base = f"{spelling.opcode}.{mark}"
        count = counts[base] = counts.get(base, 0) + 1
        names[row] = base if count == 1 else f"{base}.{count}"
    return names


def _operands(computation: CanonicalComputation, row: int, uses: Sequence[Operand], names: Sequence[str]) -> str:
    """Return the operands of a row in canonical names.

    An operand has its shape if its definition, or the shape of its definition, is left out.
    """
    rows = computation.operands[row]
    if not uses:
        return ", ".join([f"%{names[defined]}" for defined in rows if defined is not None])
    operands = []
    for use, defined in zip(uses, rows, strict=False):
        shape = f"{use.shape} " if use.shape and (defined is None or not computation.spellings[defined].shape) else ""
        name = use.name if defined is None else names[defined]
        path = "".join(f"#{step}" for step in use.path)
        operands.append(use.shape if name is None else f"{shape}%{name}{path}")
    return ", ".join(operands)
