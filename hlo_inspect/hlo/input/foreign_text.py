"""Recognition of inputs other than HLO text: formats that XLA converts, and formats that an error names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern

MAX_BYTES = (1 << 31) - 1
"""The largest size of a protocol buffer."""

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_OPCODE = lazy_pattern(rb"[a-z][a-z0-9\-]*+")


class WireError(ValueError):
    """Bytes that are not a protocol buffer."""


class CutOffError(WireError):
    """The bytes end inside a field."""


class SerializedModule(NamedTuple):
    """An `HloModuleProto`. `fault` says why it cannot be read to its end."""

    data: memoryview
    fault: str = ""


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field of a message: an integer, or bytes as far as present.

    Numbers of 4 and 8 bytes are skipped. Raise WireError if `data` is not a message, CutOffError after the last field if it
    ends too early.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
        elif kind == _BYTES:
            size, position = _varint(data, position)
            yield number, data[position : position + size]
            position += size
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            position += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise WireError
    if position > len(data):
        raise CutOffError


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the integer at `position` and the index after it."""
    value = 0
    for count, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, position + count + 1
    raise CutOffError if len(data) < position + 10 else WireError


def messages(data: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the values of field `number` that are bytes, as far as `data` is readable."""
    try:
        for field, value in fields(data):
            if field == number and isinstance(value, memoryview):
                yield value
    except WireError:
        return


def find_module(data: memoryview, depth: int = 2) -> SerializedModule | None:
    """Return the `HloModuleProto` that `data` is, or has in its field 1; the start of a file suffices."""
    first: memoryview | None = None
    is_module, fault = False, ""
    try:
        for number, value in fields(data):
            if isinstance(value, memoryview):
                first = value if number == 1 else first
                is_module = is_module or (number == 3 and _is_computation(value))
    except CutOffError:
        fault = "is truncated"
    except WireError:
        fault = "is damaged"
    if is_module:
        return SerializedModule(data, fault)
    inner = find_module(first, depth - 1) if first is not None and depth else None
    return SerializedModule(inner.data, inner.fault or fault) if inner is not None else None


def _is_computation(data: memoryview) -> bool:
    """Return True if `data` is an `HloComputationProto`: field 2 is an instruction, whose field 2 is an opcode."""
    for instruction in messages(data, 2):
        return any(_OPCODE.fullmatch(opcode) for opcode in messages(instruction, 2))
    return False


class Format(StrEnum):
    """Formats that XLA converts into HLO text. Of a profile, these are the modules in it."""

    HLO_PROTO = "serialized HLO"
    MLIR = "StableHLO or another MLIR text"
    MLIR_BYTECODE = "MLIR bytecode"
    PROFILE = "a recorded profile"


_MLIR_START = lazy_pattern(
    rb"(?:\s++|//[^\n]*+\n)*+"
    rb'(?:module\b(?=\s*+(?:@|\{|attributes\b))|[#!]\w++\s*+=|#(?:loc|sdy)\b|"builtin\.module"|(?:stablehlo|mhlo|func)\.)'
)
_MLIR_DIALECT = lazy_pattern(rb"\b(?:stablehlo|mhlo|chlo|vhlo|func|sdy)\.\w")
_MLIR_LOCATIONS = lazy_pattern(rb"#loc\w*+\s*=")  # many of them can precede the module
_MLIR_BYTECODE = b"ML\xefR"

_PROTO_STARTS = (b"\x0a", b"\x12", b"\x1a")  # the tags of fields 1 to 3

_TEXTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy_pattern(r"\S+ model_parallel_NPU_group: |(?:HYBRID|DATA|MODEL)_\w+|MICRO\b"), "an ASTRA-sim text workload"),
    (lazy_pattern(r"BufferAssignment:"), "XLA's buffer assignment; read the file of this name without -buffer-assignment"),
    (
        lazy_pattern(r"module\b\s*(?:@|attributes\b)|\s*(?:stablehlo|mhlo|func)\.\w+|#loc\b|#sdy\b"),
        "MLIR text without StableHLO",
    ),
    (lazy_pattern(r"(?:hlo_module|name|id)\s*[:{]"), "a protobuf in text format"),
    (lazy_pattern(r"; ModuleID|source_filename ="), "LLVM IR"),
    (lazy_pattern(r"(?://\s*)+Generated by (?:LLVM )?NVPTX|\.version \d"), "PTX"),
    (lazy_pattern(r"digraph "), "a Graphviz graph"),
    (lazy_pattern(r"<!DOCTYPE|<html", re.IGNORECASE), "HTML"),
    (lazy_pattern(r'\{\s*+(?:\}|"(?:[^"\\\n]++|\\.)*+"\s*+:)|\[\s*+[\[\]{"\d]'), "JSON"),
    (lazy_pattern(r"Thunk|\d+: k\w+\t"), "XLA's thunk sequence"),
)
_POLICY = r"HYBRID_(?:DATA_MODEL|MODEL_DATA|TRANSFORMER(?:_FWD_IN_BCKWD)?|DLRM(?:_ENHANCED)?|CUSTOMIZED)"
_WORKLOAD = lazy_pattern(
    rf"\s*+(?:{_POLICY}[ \t]*+(?:[\w.]++:|\d++|\r|\n|\Z)"
    r"|(?:DATA|MODEL|MICRO|DISTRIBUTED_INFERENCE)[ \t\r]*+\n\s*+\d++[ \t\r]*+(?:\n|\Z)"
    r"|(?:[A-Z][A-Z0-9_]*+[ \t]++)?+(?:[^\s:]++:?[ \t]++[^\s:]++[ \t]++){0,12}?model_parallel_NPU_group:"
    r"|[A-Z][A-Z0-9_]*+(?:[ \t]++[\w.:\-]++){0,40}+[ \t\r]*+\n"
    r"\s*+\d++[ \t\r]*+\n\s*+[^\n]*?[ \t]-?\d++[ \t]++\S++[ \t]++[A-Za-z])",
    re.ASCII,
)
"""Pattern of a policy and keys, or of another word in capitals, a number of rows and a row."""

MEMORY_FILE = lazy_pattern(r"\s*+(?:(BufferAssignment:)|(HloLiveRange \(max)|(Memory Space: |Total bytes used: ))")
"""Pattern of the start of XLA's files about memory: a group each for buffer assignment, live ranges and usage report."""

_BINARIES: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "an ELF object or executable"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "a profile in Riegeli records (.xplane.riegeli); record it as .xplane.pb"),
    (b"\x80", "a Python pickle"),
)
_TENSORFLOW_OPERATION = lazy_pattern(rb"[A-Z_]\w*+")
_LETTERS = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_CONTROL = lazy_pattern(rb"[\0-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def convertible_format(start: bytes) -> Format | None:
    """Return the format if XLA converts the input into HLO text, judged by its first bytes, not its name."""
    if start.startswith(b"HloModule"):  # nearly always
        return None
    if start.startswith(_MLIR_BYTECODE):
        return Format.MLIR_BYTECODE
    if _is_profile(start):
        return Format.PROFILE
    if start.startswith(_PROTO_STARTS) and find_module(memoryview(start)) is not None:
        return Format.HLO_PROTO
    ends_in_locations = _MLIR_LOCATIONS.match(start) is not None and b"\nmodule" not in start
    if _MLIR_START.match(start) and (_MLIR_DIALECT.search(start) or ends_in_locations):
        return Format.MLIR
    return None


def _is_profile(start: bytes) -> bool:
    """Return True if the first bytes of a file are those of a profile (XSpace), by the name of its first plane."""
    return start[:1] == b"\x0a" and any(
        bytes(label[:8]).startswith((b"/device:", b"/host:", b"Task Env"))
        for plane in _first(memoryview(start), 1)
        for label in _first(plane, 2)
    )


def describe_non_text(start: bytes) -> str:
    """Return the message if the first bytes of an input are not UTF-8 text, else an empty string.

    Text has no NUL, and no more control characters than a program's coloured output.
    """
    head = start[:4096]
    is_text = b"\0" not in head and len(_CONTROL.findall(head)) <= max(3, len(head) / 50)
    if is_text and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    encoding = _wide_encoding(start)
    return (
        f"is {encoding} text; convert it to UTF-8 first"
        if encoding
        else f"is a binary file without HLO{_describe_binary(start)}"
    )


def _wide_encoding(start: bytes) -> str:
    """Return `UTF-16` or `UTF-32` if the input is such text, with or without a byte-order mark; else nothing."""
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    start = start[:64]
    letters = sum(map(start.count, _LETTERS))
    for name, width in (("UTF-32", 4), ("UTF-16", 2)):  # ASCII letters, each with zeros
        if letters > 4 and start.count(0) == len(start) // width * (width - 1) == letters * (width - 1):
            return name
    return ""


def is_workload(start: str) -> bool:
    """Return True if `start` begins a workload file of a network simulator (ASTRA-sim, SimAI, aicb)."""
    return not start.startswith("HloModule") and _WORKLOAD.match(start) is not None


def no_workload(start: str) -> str:
    """Return the message for a text that begins with `start` and is not a workload file."""
    return f"is not a workload file of a network simulator{describe_foreign_text(start)}"


def describe_foreign_text(start: str) -> str:
    """Return `: it looks like …` for the start of a text without HLO; empty if no format matches."""
    start = start.lstrip()
    if not start:
        return ": it is empty"
    for pattern, name in _TEXTS:
        if pattern.match(start):
            return f": it looks like {name}"
    return ""


def describe_log(keys: Sequence[str]) -> str:
    """Return `: it is a log with …` for the keys of measurements in a text without HLO; empty without keys."""
    if not keys:
        return ""
    counted = "a measurement" if len(keys) == 1 else f"{len(keys):,} measurements"
    names = list(dict.fromkeys(keys))
    return f": it is a log with {counted}: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def _describe_binary(start: bytes) -> str:
    """Return `: it looks like …` for the first bytes of a binary file; empty if no format matches."""
    for prefix, name in _BINARIES:
        if start.startswith(prefix):
            return f": it looks like {name}"
    data = memoryview(start)
    graphs = [data, *(graph for meta in _first(data, 2) for graph in _first(meta, 2))]  # SavedModel.meta_graphs[0].graph_def
    for operation in (op for graph in graphs for node in _first(graph, 1) for op in _first(node, 2)):  # GraphDef.node[0].op
        if _TENSORFLOW_OPERATION.fullmatch(operation):
            return ": it looks like a TensorFlow graph"
    return ": it looks like a protobuf without a module" if _is_protobuf(data) else ""


def _is_protobuf(data: memoryview) -> bool:
    """Return True if the start of a file is a protocol buffer: a few fields and no other bytes."""
    count = 0
    try:
        for _ in fields(data):
            count += 1
    except CutOffError:
        return count > 4
    except WireError:
        return False
    return count > 1


def _first(message: memoryview, number: int) -> list[memoryview]:
    """Return the first value of a field as a list; empty if absent."""
    return list(islice(messages(message, number), 1))
