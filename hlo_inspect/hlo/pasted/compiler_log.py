"""Warnings of XLA in the log around a module, and the instructions that XLA's log prints.

XLA warns if a change of sharding replicates a tensor on every device (`spmd_partitioner.cc`). It also warns of slow compilation
(`slow_operation_alarm.cc`) and slow constant folding (`hlo_constant_folding.cc`). The first warning has three wordings. Until
2024 it lacks the instruction. Later wordings have it; the latest begins with `[SPMD]`. Out-of-memory reports print instructions
too.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import CompilerWarning
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_KEPT = 1 << 12
"""Limit of warnings that are kept of one text."""

_MARKS = (
    r"\[(?:spmd|SPMD)\] (?P<resharding>Involuntary full rematerialization)",
    r"(?:\[(?P<context>[^\]\n]{0,300}+)\] )?+(?:(?:Very s|S)(?P<compiling>low compile\?)"
    r"|(?P<took>The operation took )(?P<duration>[0-9a-zµ.]{1,40}))",
    r"(?P<folding>Constant folding an instruction is taking > )",
    r"(?:XLA [Ll]abel: |while allocating on stack for )",
)
"""Patterns of the signs: of each warning, and of an instruction in an out-of-memory report."""
_MARK = lazy_pattern("|".join(_MARKS))
_SHARDING = lazy_pattern(r"(?:from sharding|to) (?=\{)")
_OPERATION = lazy_pattern(r"for HLO operation:? (?=%?[A-Za-z_])")
_AFTER = lazy_pattern(r"\. (?:As the last resort|You probably want)")
_DURATION = lazy_pattern(r"([0-9.]+)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

RESHARDING, COMPILING, FOLDING = "involuntary full rematerialization", "slow compile", "slow constant folding"


class CompilerLog:
    """Collector of XLA's warnings in text outside modules. `quoted` numbers the lines on which XLA prints an instruction."""

    def __init__(self) -> None:
        self._warnings: list[CompilerWarning] = []
        self._seconds: float | None = None  # of an operation that the next line names
        self._folding = 0  # the line of a warning whose instruction follows
        self.quoted: set[int] = set()
        self.left_out = 0

    def take(self, text: str, line: int) -> None:
        """Read whole lines; the first line has the number `line`."""
        position = 0
        while position < len(text):
            if self._folding:
                end = _line_end(text, position)
                self._take_folded(text[position:end].strip(), line)
                position, line = end + 1, line + 1
                continue
            mark = _MARK.search(text, position)
            if mark is None:
                return
            line += text.count("\n", position, mark.start())
            end = _line_end(text, mark.end())
            self._take_mark(mark, text[mark.end() : end], line)
            position, line = end + 1, line + 1

    def finish(self) -> list[CompilerWarning]:
        """Return the warnings since the last call."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def _take_mark(self, mark: re.Match[str], rest: str, line: int) -> None:
        """Read a line with a sign of XLA's log, which `rest` follows."""
        context = mark["context"] or ""
        if mark["resharding"]:
            self.quoted.add(line)
            self._keep(_resharding(rest, line))
        elif mark["took"] and not context:
            self._seconds = _seconds(mark["duration"])
        elif mark["took"] or mark["compiling"]:
            self._keep(CompilerWarning(line, COMPILING, context=context, seconds=_seconds(mark["duration"] or "")))
        elif mark["folding"]:
            self._folding = line
        else:
            self.quoted.add(line)

    def _take_folded(self, text: str, line: int) -> None:
        """Read the line after a warning of slow constant folding; a blank line may come first."""
        if text:
            self.quoted.add(line)
            self._keep(CompilerWarning(self._folding, FOLDING, text, seconds=self._seconds))
            self._folding, self._seconds = 0, None

    def _keep(self, warning: CompilerWarning) -> None:
        if len(self._warnings) < MAX_KEPT:
            self._warnings.append(warning)
        else:
            self.left_out += 1


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _resharding(text: str, line: int) -> CompilerWarning:
    """Read the shardings and the operation; a truncated line lacks some of them."""
    old, end = _sharding(text, 0)
    new, end = _sharding(text, end)
    operation = _OPERATION.search(text, end)
    printed = _AFTER.split(text[operation.end() :])[0] if operation is not None else ""
    return CompilerWarning(line, RESHARDING, printed, old, new)


def _sharding(text: str, position: int) -> tuple[str, int]:
    """Return the next sharding and the index after it; nothing if there is none or it is truncated."""
    start = _SHARDING.search(text, position)
    if start is None:
        return "", position
    try:
        end = tokens.balanced_end(text, start.end())
    except tokens.ScanError:
        return "", len(text)
    return text[start.end() : end], end


def _seconds(duration: str) -> float | None:
    """Parse a duration as Abseil prints it: `2m3.5s`."""
    parts = _DURATION.findall(duration)
    try:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None
    except ValueError:
        return None
