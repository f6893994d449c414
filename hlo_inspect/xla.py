"""The optional extra `[xla]`: XLA's own parser for `--strict`, and HLO text for serialized HLO and StableHLO.

jaxlib runs in a separate process (`xla_worker`), which serves all inputs. After an abort, the next task starts another.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_inspect.errors import InputError, Location, MissingExtraError, ParseError
from hlo_inspect.hlo.input.foreign_text import Format, find_module
from hlo_inspect.hlo.input.inputs import Text, read_input, texts_of
from hlo_inspect.hlo.input.source import Source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.profiler.programs import DeviceAssignment, ProfiledProgram
    from hlo_inspect.xla_worker import Worker

NO_MODULES = "is a profile without the modules of its programs; `hlo-inspect measured PROFILE DUMP` takes them from a dump"
_WITHOUT_EXTRA = "`hlo-inspect measured PROFILE DUMP` takes modules from a dump; those of this recorded profile need"
INSTALL = "pip install jaxlib"
UPGRADE = "pip install --upgrade jaxlib"

_PLACE = lazy_pattern(r"^was parsing (\d{1,18}):(\d{1,18}): error: (.*)$", re.ASCII | re.MULTILINE)
_MLIR_PLACE = lazy_pattern(r"^(?:[A-Z_]+: )?-:(\d{1,18}):(\d{1,18}): error: (.*)$", re.ASCII | re.MULTILINE)
_STATUS = lazy_pattern(r"[A-Z_]+: ", re.ASCII)
_STRAY = lazy_pattern(
    r"^[ \t]*+((?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]*+=[ \t]++\(*+[a-z][a-z0-9]*+\[[^\n]*\()", re.ASCII | re.MULTILINE
)
"""Pattern of a line that holds an instruction with its shape."""


class Xla:
    """jaxlib in a separate process, which starts on first use."""

    def __init__(self) -> None:
        self._version = ""
        self._worker: Worker | None = None

    def close(self) -> None:
        """End the process; the next task starts another."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def require(self, purpose: str, location: Location | None = None) -> Worker:
        """Start the jaxlib process unless it runs, and return it.

        Raise MissingExtraError, which begins with `purpose`, if jaxlib is missing, too old or broken.
        """
        if self._worker is not None:
            return self._worker
        from importlib.util import find_spec

        if find_spec("jaxlib") is None:
            raise MissingExtraError(f"{purpose} the extra [xla]: {INSTALL}", location)
        from hlo_inspect.xla_worker import Worker

        worker = Worker()
        greeting = worker.greeting
        if greeting["error"] is not None:
            reason = f"jaxlib cannot be imported: {greeting['error']}"
        elif greeting["missing"]:
            reason = f"jaxlib {greeting['version']} is too old: it has no {greeting['missing'][0]}"
        else:
            self._worker, self._version = worker, greeting["version"]
            return worker
        worker.close()
        raise MissingExtraError(f"{purpose} the extra [xla], but {reason} ({UPGRADE})", location)

    def as_text(self, source: Source, data: bytes) -> bytes:
        """Convert serialized HLO or StableHLO to HLO text, as a source's converter. Raise InputError if XLA cannot read it."""
        location = Location(source.name)
        source.note = f"jaxlib converted {source.format} to HLO text; line numbers refer to that text"
        if source.format is Format.HLO_PROTO:
            return self._text_of(_serialized_module(data, location), source.format, location)
        return self._text_of(data, source.format, location)

    def _text_of(self, data: bytes | memoryview, form: str | None, location: Location) -> bytes:
        """Convert a serialized module or StableHLO to HLO text. Raise InputError if XLA cannot read it."""
        from hlo_inspect.worker_process import XlaAbortError, XlaError

        worker = self.require(f"this is {form}; reading it needs", location)
        try:
            return worker.ask("proto" if form is Format.HLO_PROTO else "mlir", data).encode()
        except XlaAbortError as error:
            self.close()
            raise InputError(f"XLA crashed on this input, {form} ({error.message})", location) from error
        except XlaError as error:
            if form is Format.HLO_PROTO:
                reason = f"jaxlib {self._version} cannot read this serialized HLO: {_first_line(error.message)}"
                raise InputError(f"{reason} (if a newer XLA wrote it: {UPGRADE})", location) from error
            reason = f"jaxlib {self._version} cannot convert this MLIR to HLO"
            raise _mlir_error(error.message, reason, bytes(data), location) from error

    def modules(self, source: Source, wants: Wants, *, strict: bool) -> Iterator[tuple[Module, str | None] | ParseError]:
        """Yield each module of `source`, with a note if XLA's print of it was read instead of its text.

        Under `strict`, yield a ParseError for a module that XLA's parser refuses; raise it for an instruction between modules.
        """
        source.converter = self.as_text
        if strict and not (source.peek() and source.format is Format.PROFILE):
            for text in texts_of(source):
                yield from self._checked_text(text, wants)
        else:
            yield from ((module, None) for module in self.read(source, wants))

    def read(self, source: Source, wants: Wants) -> Iterator[Module]:
        """Yield each module of `source`; XLA does not check it."""
        source.converter = self.as_text
        if source.peek() and source.format is Format.PROFILE:
            yield from self._profiled_modules(source, wants)
            return
        for module in read_input(source, wants):
            module.origin = source.format
            yield module

    def _profiled_modules(self, source: Source, wants: Wants) -> Iterator[Module]:
        """Yield the modules of a recorded profile. Raise InputError if it has none."""
        from hlo_inspect.profiler.profile import ProfileFile

        with source.seekable() as stream:
            profile = ProfileFile(source.name, stream, source.on_bytes)
            if not profile.programs:
                raise InputError(NO_MODULES, Location(source.name))
            self.require(_WITHOUT_EXTRA, Location(source.name))
            for program in profile.programs:
                proto = find_module(memoryview(profile.proto(program)))
                if proto is None or proto.fault:
                    raise InputError(
                        f"the module of {program.label} is damaged; record the profile again", Location(source.name)
                    )
                yield self._profiled_module(source, program, proto.data, wants)

    def _profiled_module(self, source: Source, program: ProfiledProgram, proto: memoryview, wants: Wants) -> Module:
        """Return the module of a program of a profile. Its device assignment states the counts that XLA's print leaves out."""
        from hlo_inspect.profiler.programs import device_assignment

        place, assignment = f"{source.name}#{program.label}", device_assignment(proto)
        text = self._text_of(proto, Format.HLO_PROTO, Location(place))
        text = with_device_counts(text, assignment)
        source.note = f"jaxlib converted the modules of {source.format} to HLO text; line numbers refer to that text"
        module = next(read_modules(Source(place, lambda: io.BytesIO(text)), wants))
        module.program, module.text_line = program.label, 0
        module.origin = None if assignment is not None else source.format
        return module

    def _checked_text(self, whole: Text, wants: Wants) -> Iterator[tuple[Module, str | None] | ParseError]:
        from hlo_inspect.worker_process import XlaAbortError, XlaError

        worker = self.require("--strict needs")
        source = whole.source
        source.keep_text()
        lines = 0
        for module in read_modules(source, wants):
            _refuse_stray(source.take_lines(module.first_line - 1 - lines), whole, lines)
            text = source.take_lines(module.lines)
            lines = module.first_line - 1 + module.lines
            module.origin = source.format
            try:
                printed = "" if source.format else worker.ask("check", text.encode())  # text from XLA needs no check
            except XlaAbortError as error:
                self.close()
                worker = self.require("--strict needs")
                refused = _parse_error(f"XLA's parser crashed on this module ({error.message})", text, module)
                yield _relocate(refused, whole)
            except XlaError as error:
                yield _relocate(_refusal(error.message, text, module), whole)
            else:
                yield (_read_again(printed, module), _PRINTED) if printed else (whole.finished(module), None)
        if lines:
            _refuse_stray(source.take_lines(), whole, lines)


def with_device_counts(text: bytes, assignment: DeviceAssignment | None) -> bytes:
    """Return XLA's print of a module with the counts of a device assignment, which the print leaves out."""
    if assignment is None:
        return text
    head, newline, rest = text.partition(b"\n")
    counts = (("replica_count", assignment.replicas), ("num_partitions", assignment.partitions))
    head += b"".join(f", {name}={count}".encode() for name, count in counts if count > 1)
    return head + newline + rest


_PRINTED = "the text leaves out shapes, so XLA printed the module again; line numbers refer to that print"


def _serialized_module(data: bytes, location: Location) -> memoryview:
    """Return the `HloModuleProto` in serialized HLO. Raise InputError if it is damaged."""
    module = find_module(memoryview(data))
    if module is None or module.fault:
        raise InputError(f"is {Format.HLO_PROTO}, but {module.fault if module else 'is damaged'}; write it again", location)
    return module.data


def _mlir_error(message: str, reason: str, data: bytes, location: Location) -> InputError:
    """Return the error for MLIR that XLA refuses, at the place in XLA's `message`."""
    match = _MLIR_PLACE.match(message)
    if match is None or match[1] == "0":  # bytecode has no lines
        return InputError(f"{reason}: {_first_line(match[3] if match else message)}", location)
    place, picture = _place_in(data.decode(errors="backslashreplace"), int(match[1]), int(match[2]))
    return InputError(f"{reason}: {match[3]}", Location(location.path, *place), picture)


def _refusal(message: str, text: str, module: Module) -> ParseError:
    """Return the error for a module that XLA's parser refuses, at the first place in its `message`."""
    places = _PLACE.findall(message)
    if not places:
        return _parse_error(f"XLA's parser: {_first_line(message)}", text, module)
    line, column, reason = places[0]
    if reason.endswith(":") and len(places) > 1:  # the next place has the reason
        reason += f" {places[1][2]}"
    return _parse_error(f"XLA's parser: {reason}", text, module, int(line), int(column))


def _parse_error(message: str, text: str, module: Module, line: int = 1, byte: int = 1) -> ParseError:
    """Return the error for a place in the text of a module."""
    (line, column), picture = _place_in(text, line, byte)
    return ParseError(message, module.location(module.first_line - 1 + line, column), picture)


def _place_in(text: str, line: int, byte: int) -> tuple[tuple[int, int], str]:
    """Convert a place counted in bytes to line and column in characters; return them and the text of the line.

    A place after the end becomes the end of the last line.
    """
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    if line > len(lines):
        line, byte = len(lines), len(lines[-1].encode()) + 1
    picture = lines[line - 1]
    return (line, len(picture.encode()[: byte - 1].decode(errors="ignore")) + 1), picture


def _relocate(error: ParseError, text: Text) -> ParseError:
    """Move an error from its place in a mended text to its place in the input."""
    if error.location is None or error.location.line is None:
        return error
    line, column = text.mended.places.place(error.location.line, error.location.column or 1)
    picture = error.source_line if column == error.location.column else None  # the caret would be misplaced
    return ParseError(error.message, Location(error.location.path, line, column), picture)


def _refuse_stray(text: str, whole: Text, lines: int) -> None:
    """Raise ParseError if the text between modules holds an instruction. `lines` lines precede the text."""
    match = _STRAY.search(text)
    if match is not None:
        start = text.rfind("\n", 0, match.start(1)) + 1
        line = lines + text.count("\n", 0, match.start(1)) + 1
        picture = text[start : text.find("\n", start)]
        place = Location(whole.source.name, *whole.mended.places.place(line, match.start(1) - start + 1))
        raise ParseError("this instruction is outside any computation; --strict checks whole modules only", place, picture)


def _read_again(printed: str, module: Module) -> Module:
    """Read a module again, from XLA's print. It keeps its place in the input."""
    data = printed.encode()
    again = next(read_modules(Source(module.path, lambda: io.BytesIO(data)), module.wants))
    again.first_line, again.lines, again.bytes = module.first_line, module.lines, module.bytes
    return again


def _first_line(message: str) -> str:
    """Return the first line of a message, without a status such as `INVALID_ARGUMENT`."""
    return _STATUS.sub("", message.strip().partition("\n")[0], count=1)
