"""The optional extra `[xla]`: XLA's own parser for `--strict`, and HLO text for serialized HLO and StableHLO.

jaxlib runs in a process of its own (`xla_worker`), since some inputs abort it. One process serves a whole run; after an abort
the next task starts another. What jaxlib logs is read only for the reason of an abort.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from hlo_inspect.errors import InputError, Location, MissingExtraError, ParseError
from hlo_inspect.hlo.foreign_text import Format
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.protobuf import find_module
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import Source
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from subprocess import Popen

INSTALL = "pip install 'hlo-inspect[xla]'"
UPGRADE = "pip install --upgrade 'hlo-inspect[xla]'"
LOG_BYTES = 1 << 16

_PLACE = re.compile(r"^was parsing (\d{1,18}):(\d{1,18}): error: (.*)$", re.ASCII | re.MULTILINE)
_MLIR_PLACE = re.compile(r"^(?:[A-Z_]+: )?-:(\d{1,18}):(\d{1,18}): error: (.*)$", re.ASCII | re.MULTILINE)
_FATAL = re.compile(r"^F\d{4} [^\]\n]*\] (.*)$", re.ASCII | re.MULTILINE)
_STATUS = re.compile(r"[A-Z_]+: ", re.ASCII)
_STRAY = re.compile(
    r"^[ \t]*+((?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]*+=[ \t]++\(*+[a-z][a-z0-9]*+\[[^\n]*\()", re.ASCII | re.MULTILINE
)
"""An instruction with its shape."""


class XlaError(Exception):
    """What XLA answered instead of a result: its message. `aborted` when its process did not survive."""

    def __init__(self, message: str, *, aborted: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.aborted = aborted


class Xla:
    """jaxlib in a process of its own, which starts when something requires it."""

    def __init__(self) -> None:
        self.version = ""
        self._process: Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def close(self) -> None:
        """Ends the process; the next task would start another."""
        if self._process is not None:
            self._process.kill()
            self._end(self._process)
        if self._log is not None:
            self._log.close()
            self._log = None

    def require(self, purpose: str, location: Location | None = None) -> None:
        """Starts jaxlib. `MissingExtraError` where it is missing, too old or cannot be imported: `purpose` is what it says
        first.
        """
        if self._process is not None:
            return
        if find_spec("jaxlib") is None:
            raise MissingExtraError(f"{purpose} the extra [xla]: {INSTALL}", location)
        greeting = self._start()
        if greeting["error"] is not None:
            reason = f"jaxlib cannot be imported ({greeting['error']})"
        elif greeting["missing"]:
            reason = f"jaxlib {greeting['version']} is too old: it has no {greeting['missing'][0]}"
        else:
            self.version = greeting["version"]
            return
        self.close()
        raise MissingExtraError(f"{purpose} the extra [xla], but {reason} ({UPGRADE})", location)

    def ask(self, task: str, data: bytes | memoryview) -> str:
        """What XLA makes of `data`. `XlaError` with its message where it refuses or does not survive."""
        process = self._process
        assert process is not None, "require comes first"  # noqa: S101 - a fault of the caller
        assert process.stdin is not None  # noqa: S101
        try:
            process.stdin.write(json.dumps({"task": task, "size": len(data)}).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        except OSError:  # it ended before it read everything
            pass
        answer = self._answer(process)
        if answer["error"] is not None:
            raise XlaError(answer["error"])
        assert process.stdout is not None  # noqa: S101
        return process.stdout.read(answer["size"]).decode()

    def _start(self) -> dict[str, Any]:
        """Starts the process; what it says first."""
        import subprocess  # few runs need them
        import tempfile

        self._log = self._log or tempfile.TemporaryFile("ab+")  # noqa: SIM115 - closed with the process
        self._log.truncate(0)
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - text is wanted
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "hlo_inspect.xla_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            return self._answer(self._process)
        except XlaError as error:
            return {"error": error.message}

    def _answer(self, process: Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None  # noqa: S101
        line = process.stdout.readline()
        if line:
            return dict(json.loads(line))
        status = self._end(process)
        raise XlaError(f"{_signal_name(status)}{self._last_words()}", aborted=True)

    def _end(self, process: Popen[bytes]) -> int:
        """The exit status of the process, which has ended or was killed."""
        self._process = None
        for pipe in (process.stdin, process.stdout):
            try:
                assert pipe is not None  # noqa: S101
                pipe.close()
            except OSError:
                pass
        return process.wait()

    def _last_words(self) -> str:
        """The last fatal line of the log, else its last line."""
        assert self._log is not None  # noqa: S101
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        text = self._log.read().decode(errors="backslashreplace")
        fatal: list[str] = _FATAL.findall(text)
        other = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("*** ", "    @ "))]
        words = fatal or other
        return f": {words[-1].strip()}" if words else ""

    def as_text(self, source: Source, data: bytes) -> bytes:
        """The HLO text of serialized HLO or StableHLO, as a `Source` wants it of its converter. `InputError` for what XLA does
        not read.
        """
        location = Location(source.name)
        source.note = f"this is the HLO text that jaxlib makes of {source.format}; lines are counted in that text"
        self.require(f"this is {source.format}; reading it needs", location)
        if source.format is not Format.HLO_PROTO:
            return self._mlir_as_text(location, data)
        found = find_module(memoryview(data))
        if found is None or found.fault:
            raise InputError(f"is {source.format} and {found.fault if found else 'is damaged'}", location)
        try:
            return self.ask("proto", found.data).encode()
        except XlaError as error:
            if error.aborted:
                raise InputError(f"XLA does not survive this serialized HLO ({error.message})", location) from error
            reason = f"jaxlib {self.version} does not read this serialized HLO: {_first_line(error.message)}"
            raise InputError(f"{reason} (if it is of a newer XLA: {UPGRADE})", location) from error

    def _mlir_as_text(self, location: Location, data: bytes) -> bytes:
        try:
            return self.ask("mlir", data).encode()
        except XlaError as error:
            if error.aborted:
                raise InputError(f"XLA does not survive this MLIR ({error.message})", location) from error
            match = _MLIR_PLACE.match(error.message)
            reason = f"jaxlib {self.version} makes no HLO of this MLIR"
            if match is None or match[1] == "0":
                raise InputError(f"{reason}: {_first_line(match[3] if match else error.message)}", location) from error
            place, picture = _place_in(data.decode(errors="backslashreplace"), int(match[1]), int(match[2]))
            raise InputError(f"{reason}: {match[3]}", Location(location.path, *place), picture) from error

    def modules(self, source: Source, wants: Wants, *, strict: bool) -> Iterator[tuple[Module, str | None]]:
        """Every module of `source`, with a note where XLA's print of it was read instead of its text. Under `strict` a
        `ParseError` for what XLA's parser refuses, and for an instruction between modules.
        """
        source.converter = self.as_text
        if strict:
            yield from self._checked_modules(source, wants)
        else:
            for module in read_modules(source, wants):
                module.origin = source.format
                yield module, None

    def _checked_modules(self, source: Source, wants: Wants) -> Iterator[tuple[Module, str | None]]:
        self.require("--strict needs")
        source.keep_text()
        lines = 0
        for module in read_modules(source, wants):
            _refuse_stray(source.take_lines(module.first_line - 1 - lines), source.name, lines)
            text = source.take_lines(module.lines)
            lines = module.first_line - 1 + module.lines
            module.origin = source.format
            printed = "" if source.format else self._parsed(text, module)  # what XLA itself printed needs no check
            yield (_read_again(printed, module), _PRINTED) if printed else (module, None)
        if lines:
            _refuse_stray(source.take_lines(), source.name, lines)

    def _parsed(self, text: str, module: Module) -> str:
        """XLA's print of a module whose text leaves out shapes, else nothing. `ParseError` where XLA refuses the text."""
        try:
            return self.ask("check", text.encode())
        except XlaError as error:
            if error.aborted:
                raise _parse_error(f"XLA's parser does not survive this module ({error.message})", text, module) from error
            places = _PLACE.findall(error.message)
            if not places:
                raise _parse_error(f"XLA's parser: {_first_line(error.message)}", text, module) from error
            message = places[0][2]
            if message.endswith(":") and len(places) > 1:  # it says what follows from the next one
                message += f" {places[1][2]}"
            line, column = int(places[0][0]), int(places[0][1])
            raise _parse_error(f"XLA's parser: {message}", text, module, line, column) from error


_PRINTED = (
    "shapes are left out in the text: this is what XLA's printer writes of the module, and lines are counted in that print"
)


def _parse_error(message: str, text: str, module: Module, line: int = 1, byte: int = 1) -> ParseError:
    """The error for a place in the text of a module."""
    (line, column), picture = _place_in(text, line, byte)
    return ParseError(message, module.location(module.first_line - 1 + line, column), picture)


def _place_in(text: str, line: int, byte: int) -> tuple[tuple[int, int], str]:
    """Line and column in characters of a place that is counted in bytes, and the text of its line. A place after the end is at
    the end of the last line.
    """
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    if line > len(lines):
        line, byte = len(lines), len(lines[-1].encode()) + 1
    picture = lines[line - 1]
    return (line, len(picture.encode()[: byte - 1].decode(errors="ignore")) + 1), picture


def _refuse_stray(text: str, name: str, lines: int) -> None:
    """Refuses an instruction in the text between modules; `lines` are before it."""
    match = _STRAY.search(text)
    if match is not None:
        start = text.rfind("\n", 0, match.start(1)) + 1
        line = lines + text.count("\n", 0, match.start(1)) + 1
        picture = text[start : text.find("\n", start)]
        raise ParseError("an instruction outside of any computation", Location(name, line, match.start(1) - start + 1), picture)


def _read_again(printed: str, module: Module) -> Module:
    """The module as XLA prints it, at the place where its text is."""
    data = printed.encode()
    again = next(read_modules(Source(module.path, lambda: io.BytesIO(data)), module.wants))
    again.first_line, again.lines, again.bytes = module.first_line, module.lines, module.bytes
    return again


def _first_line(message: str) -> str:
    """The first line of a message, without the name of its status."""
    return _STATUS.sub("", message.strip().partition("\n")[0], count=1)


def _signal_name(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in {s.value for s in signal.Signals} else f"signal {-status}"
    return f"{name}, perhaps since memory ran out" if name == "SIGKILL" else name
