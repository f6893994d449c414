"""What is wrong with a module, noted while it is read."""

from __future__ import annotations

from hlo_inspect.errors import Location, ParseError
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.problems import Problem


class FaultLog:
    """Notes what is wrong with `module`. `strict` raises the first problem as a `ParseError`."""

    def __init__(self, module: Module, *, strict: bool) -> None:
        self.module = module
        self.strict = strict
        self.is_cut_off = False

    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Notes something wrong at a line of the input."""
        self.is_cut_off |= code == "HI002"
        self._add(Problem(code, message, self.module.location(line), subject), "")

    def unreadable(self, message: str, location: Location, lines: int, text: str) -> None:
        """Notes `lines` lines that cannot be read, of which the first is `text`."""
        self.module.unparsed_lines += lines
        self._add(Problem("HI001", message, location), text)

    def refused(self, error: ParseError, first_line: int) -> None:
        """Notes what XLA's parser refuses in the module's own text, which starts in line `first_line`, unless it is known."""
        line = (error.line or 1) + first_line - 1
        if all(problem.code != error.code and problem.location.line != line for problem in self.module.problems):
            message = f"XLA's parser refuses this: {error.message} ({error.code} under --strict)"
            self._add(Problem("HI018", message, self.module.location(line, error.column)), "")

    def drop_unreadable(self, first_line: int) -> None:
        """Forgets the unreadable lines from `first_line` on: they turned out to stand behind the module."""
        self.module.problems.drop_from("HI001", first_line)

    def _add(self, problem: Problem, text: str) -> None:
        if self.strict:
            at = problem.location
            place = Location(at.path, at.line, at.column or 1)  # a fault of a whole line stands at its start
            raise ParseError(problem.message, place, text or None, problem.code)
        self.module.problems.add(problem)
