"""The words of a workload file, and a row of it: twelve fields between blanks, a thirteenth if rows have policies.

The clients read field after field, whatever line it is in. After a missing field, one too many, or a word that is no integer,
they read every field in the wrong place. Sources of the words: `Workload::decode_parallelsim`, `decode_involved_dimensions` and
`initialize_workload` in astra-sim/workload/Workload.cc of ASTRA-sim 1.0 and of SimAI, which reads the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo.collective_kinds import WORKLOAD_WORDS
from hlo_inspect.lazy_pattern import lazy_pattern

PASSES = ("forward", "input_gradient", "weight_gradient")
"""The passes of a row in its order: each has a compute time, a collective and its size."""

NONE = "NONE"
"""The word of a cell without a collective."""

FORWARD_IN_BACKWARD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
"""The policy that SimAI computes times of, and the one that aicb writes for training."""

TRANSFORMERS = frozenset({"HYBRID_TRANSFORMER", FORWARD_IN_BACKWARD})
DLRM = frozenset({"HYBRID_DLRM", "HYBRID_DLRM_ENHANCED"})
CUSTOMIZED = "HYBRID_CUSTOMIZED"
"""The policy whose rows end in a policy of their own."""
MICRO = "MICRO"
"""The policy of benchmarks; ASTRA-sim runs their first row alone."""

_GRADIENTS = frozenset({"weight_gradient"})
_ACTIVATIONS = frozenset({"forward", "input_gradient"})
_ALL = frozenset(PASSES)
POLICIES: dict[str, frozenset[str]] = {
    "DATA": _GRADIENTS,
    "MODEL": _ACTIVATIONS,
    "HYBRID_DATA_MODEL": _ALL,
    "HYBRID_MODEL_DATA": _ALL,
    "HYBRID_TRANSFORMER": _ALL,
    FORWARD_IN_BACKWARD: _ALL,
    "HYBRID_DLRM": _GRADIENTS,
    "HYBRID_DLRM_ENHANCED": _GRADIENTS,
    CUSTOMIZED: _ALL,
    MICRO: _GRADIENTS,
    "DISTRIBUTED_INFERENCE": _ACTIVATIONS,
}
"""Policies with the passes whose collectives use some dimension of the network; those of other passes move nothing."""

KINDS = {
    "ALLREDUCE": "allreduce",
    "ALLGATHER": "allgather",
    "REDUCESCATTER": "reducescatter",
    "ALLTOALL": "alltoall",
    "ALLREDUCEALLTOALL": "allreducealltoall",
}
"""The collectives that a client knows, each with its name in facts."""

HLO_KINDS = {KINDS[word]: kind for kind, word in WORKLOAD_WORDS.items()}
"""The kinds of collectives in HLO that mean the same."""

_SUFFIXES = {"EP": "ep", "DP_EP": "dp_ep"}
GROUPS = ("tp", "dp", "ep", "dp_ep")
"""The groups of devices that collectives run in: tensor, data and expert parallel, and the data parallel ones of an expert."""


def kind_of(word: str) -> str | None:
    """Return the collective that a word names, with or without a suffix for its group; None if no client knows it."""
    return KINDS.get(word.partition("_")[0])


def suffix_of(word: str) -> str:
    """Return the suffix after the collective: `EP` of `ALLTOALL_EP`."""
    return word.partition("_")[2]


def group_of(word: str, pass_name: str) -> str | None:
    """Return the group that SimAI runs a collective in; None if SimAI finds none, so that it takes no time.

    Without a suffix activations are exchanged by tensor parallel devices, and gradients of weights by data parallel ones.
    ALLREDUCEALLTOALL counts as an ALLREDUCE with a suffix that means nothing.
    """
    if word.startswith("ALLREDUCEALLTOALL"):
        return None
    suffix = suffix_of(word)
    if suffix:
        return _SUFFIXES.get(suffix)
    return "dp" if pass_name == "weight_gradient" else "tp"


FIELDS = 12

MAX_NUMBER = 2**64 - 1
"""The largest time or size that the clients store."""
_MAX_DIGITS = 20
_SHOWN = 24
_TOKEN = lazy_pattern(r"[^ \t\r\f\v]+")
_DEPENDENCY = lazy_pattern(r"-?[0-9]{1,18}", re.ASCII)
_WORD = lazy_pattern(r"[A-Za-z_]")


WorkloadCell = tuple[str, int | None, str | None, int | None]
"""A pass of a row: its name, compute time, collective and size, None if the text does not say."""


class WorkloadRow(NamedTuple):
    """A layer. Times are in the client's unit, sizes are bytes in its convention; None is a field that cannot be read."""

    name: str
    dependency: int | None
    forward_time: int | None
    forward_word: str | None
    forward_size: int | None
    input_time: int | None
    input_word: str | None
    input_size: int | None
    weight_time: int | None
    weight_word: str | None
    weight_size: int | None
    update_time: int | None
    policy: str | None = None

    @property
    def cells(self) -> tuple[WorkloadCell, WorkloadCell, WorkloadCell]:
        """The three passes."""
        return (
            (PASSES[0], self.forward_time, self.forward_word, self.forward_size),
            (PASSES[1], self.input_time, self.input_word, self.input_size),
            (PASSES[2], self.weight_time, self.weight_word, self.weight_size),
        )


class FieldFault(NamedTuple):
    """A fault of a line, or text that a client misreads, with the 1-based column of the field."""

    message: str
    column: int


def placed_fields(text: str) -> list[tuple[str, int]]:
    """Return the fields of a line, between ASCII blanks, each with its 1-based column."""
    return [(match[0], match.start() + 1) for match in _TOKEN.finditer(text)]


def field_column(text: str, field_index: int) -> int | None:
    """Return the 1-based column of a field of a line."""
    fields = placed_fields(text)
    return fields[field_index][1] if field_index < len(fields) else None


_WORDS = (1, 4, 7)
"""The indices of the collectives among the fields after the dependency."""


def read_row(text: str, *, with_policy: bool) -> tuple[WorkloadRow, list[FieldFault]] | None:
    """Read the row of a line with its faults; return None for a line that is no row.

    Blanks in a name are part of it if the fields after them are as they should be.
    """
    tokens = placed_fields(text)
    faults: list[FieldFault] = []
    names = _name_length(tokens, FIELDS + with_policy)
    if names is None:
        return None
    if names > 1:
        faults.append(FieldFault("a blank in the name: clients read the rest as the next field", tokens[1][1]))
    name = " ".join(token for token, _ in tokens[:names])
    fields = tokens[names:]
    expected = FIELDS - 1 + with_policy
    if len(fields) < expected:
        faults.append(FieldFault(f"{names + len(fields)} fields instead of {names + expected}", len(text.rstrip()) + 1))
    elif len(fields) > expected:
        extra, column = fields[expected]
        what = "a policy belongs to rows of HYBRID_CUSTOMIZED only" if extra in POLICIES else f"{shown_field(extra)}"
        faults.append(FieldFault(f"a field too many: {what}", column))
    values: list[int | str | None] = []
    faults += _read_fields(fields[1 : FIELDS - 1], values)
    policy = fields[FIELDS - 1][0] if with_policy and len(fields) >= FIELDS else None
    return WorkloadRow(name, int(fields[0][0]), *values, policy), faults  # type: ignore[call-arg, arg-type]  # as many as fields


def _name_length(tokens: list[tuple[str, int]], width: int) -> int | None:
    """Return the number of tokens in the name: those before the dependency."""
    if len(tokens) < 2:
        return None
    if _DEPENDENCY.fullmatch(tokens[1][0]):
        return 1
    if len(tokens) > width and _DEPENDENCY.fullmatch(tokens[len(tokens) - width + 1][0]):
        return len(tokens) - width + 1
    return None


def _read_fields(fields: list[tuple[str, int]], values: list[int | str | None]) -> Iterator[FieldFault]:
    """Append the ten values after the dependency to `values`, and yield faults.

    A word in the position of a number, or the other way round, shows that a field is missing. The rest is then unknown.
    """
    for field_index, (field, column) in enumerate(fields):
        is_word = _WORD.match(field) is not None
        if is_word != (field_index in _WORDS):
            yield FieldFault(f"{shown_field(field)} instead of {'a number' if is_word else 'a collective'}", column)
            break
        values.append(field if is_word else _number(field))
        if values[-1] is None:
            yield FieldFault(_no_number_reason(field), column)
    values += [None] * (FIELDS - 2 - len(values))


def _number(field: str) -> int | None:
    if len(field) > _MAX_DIGITS or not _is_digits(field):
        return None
    value = int(field)
    return value if value <= MAX_NUMBER else None


def _is_digits(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _no_number_reason(field: str) -> str:
    if _is_digits(field):
        return f"{shown_field(field)} is larger than 64 bits"
    if field.startswith("-"):
        return f"{shown_field(field)} is negative"
    return f"{shown_field(field)} is not an integer: clients stop reading there without an error"


def shown_field(field: str) -> str:
    """Return a field as messages show it."""
    return field if len(field) <= _SHOWN else f"{field[:_SHOWN]}… ({len(field)} characters)"
