"""`--strict`: looks through a module as it is read, and raises a `ParseError` at what XLA's parser refuses.

The reader calls it for each part of the text, in order. What only XLA's verifier refuses (a shape that is not what the operands
give, a dimension out of range) is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from hlo_inspect.errors import Location, ParseError
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import TABLE_NAMES
from hlo_inspect.hlo.shapes import Shape, subshape
from hlo_inspect.hlo.strict.header import HEADER, HeaderFacts, take_header, take_table
from hlo_inspect.hlo.strict.instructions import take_instruction
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.shapes import compatible, take_shape
from hlo_inspect.hlo.strict.tokens import INTERFACE, NAME, SYNTAX, RefusedError, Tokens

_ENTRY = re.compile(r"ENTRY(?![\w.\-])")


class _Place(NamedTuple):
    """Where something stands, and the line that it stands in."""

    location: Location
    line_text: str


class _Signature(NamedTuple):
    """A computation's name, whether it is the entry, its place, and the result that it states, with
    its place.
    """

    name: str
    is_entry: bool
    start: _Place
    result: tuple[Shape, _Place] | None


class StrictCheck:
    """One module. Each method takes a text that starts in line `line` at `base`, and the extent in it to look at."""

    def __init__(self, path: str, read_quoted: Callable[[str], None]) -> None:
        self._path = path
        self._read_quoted = read_quoted
        self._computations: dict[str, int] = {}
        self._wrapped: set[str] = set()
        self._scope = self._new_scope()
        self._signature = _Signature("", is_entry=False, start=_Place(Location(path), ""), result=None)
        self._parameters: dict[int, _Place] = {}
        self._header: tuple[HeaderFacts, list[_Place]] = (HeaderFacts([], None, []), [])
        self._begun = False
        self._tables = 0
        self._entry_seen = False
        self._result: Shape | None = None

    def header(self, text: str, base: int, line: int) -> int:
        """Takes the header at `base`; the first computation behind it ends it. The index of what follows."""
        self._begun = True
        with self._located(text, base, line):
            tokens = Tokens(text, base, len(text))
            facts = take_header(tokens)
            for quoted, position in facts.quoted:
                self._take_quoted(quoted, position)
        lines: dict[int | None, str] = {}  # one for all: the line may be long, and its entries many
        places = (self._place(text, base, line, place) for _, place in facts.aliased)
        self._header = (facts, [_Place(at, lines.setdefault(at.line, line_text)) for at, line_text in places])
        return tokens.position

    def _take_quoted(self, text: str, position: int) -> None:
        """`text` is a module, its escapes not undone. What is wrong in it is told of, its place is that of the quotes."""
        try:
            self._read_quoted(scan.unquote(f'"{text}"'))
        except ParseError as error:
            raise RefusedError(HEADER, f"in the quoted module: {error.message}", position) from None

    def table(self, text: str, base: int, line: int) -> int:
        """Takes a table: the index of what follows."""
        with self._located(text, base, line):
            tokens = Tokens(text, base, len(text))
            if self._tables == len(TABLE_NAMES) or self._computations:
                tokens.refuse(SYNTAX, "expected a computation")
            take_table(tokens, self._tables)
        self._tables += 1
        return tokens.position

    def begin(self, text: str, base: int, end: int, line: int) -> None:
        """Takes the start of a computation, up to its brace."""
        with self._located(text, base, line):
            tokens = Tokens(text, base, end)
            if 0 < self._tables < len(TABLE_NAMES):
                tokens.refuse(HEADER, f"expected the table {TABLE_NAMES[self._tables]}")
            is_entry = tokens.match(_ENTRY) is not None
            if is_entry and self._entry_seen:
                tokens.refuse("HI010", "a second ENTRY computation", base)
            name = self._take_name(tokens)
            if tokens.at("(") and not (is_entry or self._begun):  # to XLA this starts a single instruction
                tokens.refuse(HEADER, "expected ENTRY or a module's header before a computation with parameters", base)
            self._begun = True
            result = self._take_result(tokens) if tokens.at("(") else None
            tokens.expect("{")
        stated = (result[0], self._place(text, base, line, result[1])) if result is not None else None
        self._signature = _Signature(name, is_entry, self._place(text, base, line, base), stated)
        self._entry_seen |= is_entry
        self._scope = self._new_scope()
        self._parameters = {}

    def _new_scope(self) -> Scope:
        return Scope(self._computations, self._wrapped, [])

    def _take_name(self, tokens: Tokens) -> str:
        start = tokens.position
        name = _name_and_colon(tokens, "a computation")
        if name in self._computations:
            tokens.refuse("HI007", f"computation {name} is defined twice", start)
        return name

    @staticmethod
    def _take_result(tokens: Tokens) -> tuple[Shape, int]:
        """Passes `(name: shape) -> shape`: the result and its place. XLA does not compare the parameters with anything."""
        for _ in tokens.list("(", ")", SYNTAX):
            _name_and_colon(tokens, "a parameter")
            take_shape(tokens)
        tokens.expect("->")
        start = tokens.position
        return take_shape(tokens), start

    def instruction(self, text: str, base: int, end: int, line: int) -> None:
        scope = self._scope
        with self._located(text, base, line):
            tokens = Tokens(text, base, end)
            take_instruction(tokens, scope)
            if not tokens.at_end():
                tokens.refuse(SYNTAX, "expected ','")
            while scope.bodies:
                self._body(text, *scope.bodies.pop(), scope.bodies)
        if len(scope.parameters) > len(self._parameters):
            for number in scope.parameters.keys() - self._parameters.keys():
                self._parameters[number] = self._place(text, base, line, scope.parameters[number])

    def single(self, text: str) -> None:
        """Takes a text that is one instruction."""
        self._scope.single = True
        self.instruction(text, 0, len(text), 1)
        self._signature = _Signature("", is_entry=True, start=self._place(text, 0, 1, 0), result=None)
        self.end()

    def _body(self, text: str, start: int, end: int, bodies: list[tuple[int, int]]) -> None:
        """A computation in place, which sees the computations before it and no instructions but its own."""
        scope = Scope(self._computations, self._wrapped, bodies)
        tokens = Tokens(text, start, end)
        while not tokens.at_end() or scope.last is None:
            take_instruction(tokens, scope)
        for number, place in scope.parameters.items():
            if number >= len(scope.parameters):
                raise RefusedError(INTERFACE, f"parameter {number} of {len(scope.parameters)}", place)

    def end(self) -> None:
        """Behind the closing brace of a computation."""
        scope, signature = self._scope, self._signature
        if scope.last is None:
            self._refuse(SYNTAX, f"computation {signature.name} has no instructions", signature.start)
        for number, place in self._parameters.items():
            if number >= len(self._parameters):
                self._refuse(INTERFACE, f"parameter {number} of {len(self._parameters)}", place)
        root = (scope.last if scope.root is None else scope.instructions[scope.root]).shape
        if signature.result is not None and root is not None and not compatible(signature.result[0], root):
            message = f"computation {signature.name} states {signature.result[0]}, and its root is {root}"
            self._refuse(INTERFACE, message, signature.result[1])
        self._computations[signature.name] = len(scope.parameters)
        if signature.is_entry or not self._entry_seen:
            self._result = root

    def finish(self) -> None:
        """Behind the last computation: what the header aliases has to be there."""
        facts, places = self._header
        result = facts.result or self._result
        for (index, _), place in zip(facts.aliased, places, strict=True):
            if result is not None and subshape(result, index) is None:
                shown = ",".join(map(str, index))
                self._refuse(HEADER, f"input_output_alias of the output {{{shown}}}, which {result} does not have", place)

    # -- places ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _located(self, text: str, base: int, line: int) -> Iterator[None]:
        """Turns what is refused inside into a `ParseError` with its place."""
        try:
            yield
        except scan.ScanError as error:
            code = error.code if isinstance(error, RefusedError) else SYNTAX
            self._refuse(code, error.message, self._place(text, base, line, error.position))

    def _place(self, text: str, base: int, line: int, position: int) -> _Place:
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        number = line + text.count("\n", base, position)
        return _Place(Location(self._path, number, position - start + 1), text[start : end if end >= 0 else len(text)])

    @staticmethod
    def _refuse(code: str, message: str, place: _Place) -> NoReturn:
        raise ParseError(message, place.location, place.line_text, code)


def _name_and_colon(tokens: Tokens, what: str) -> str:
    """Passes a name and the colon that may directly follow it."""
    name = tokens.match(NAME)
    if name is None:
        tokens.refuse(SYNTAX, f"expected {what}")
    if tokens.text.startswith(":", name.end()):
        tokens.expect(":")
    return name[1]
