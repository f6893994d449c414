"""What is wrong with a module, noted while it is read."""

from __future__ import annotations

from hlo_inspect.errors import Location
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.problems import Problem


class FaultLog:
    """Notes what is wrong with `module`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.is_cut_off = False

    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        """Notes something wrong at a line of the input."""
        self.is_cut_off |= code == "HI002"
        self.module.problems.add(Problem(code, message, self.module.location(line), subject))

    def unreadable(self, message: str, location: Location, lines: int) -> None:
        """Notes `lines` lines that cannot be read."""
        self.module.unparsed_lines += lines
        self.module.problems.add(Problem("HI001", message, location))

    def drop_unreadable(self, first_line: int) -> None:
        """Forgets the unreadable lines from `first_line` on: they turned out to stand behind the module."""
        self.module.problems.drop_from("HI001", first_line)
