"""The first line of a workload file: its policy and its keys.

SimAI looks for keys by their names, in any order. ASTRA-sim 1.0 reads the same places whatever the names are. A transformer has
the number of its model-parallel group, then checkpoints, then their initiators; a DLRM has one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.workloads.row import DLRM, FORWARD_IN_BACKWARD, POLICIES, TRANSFORMERS, FieldFault, placed_fields

Dialect = Literal["simai", "astra-sim"]

TENSOR_PARALLEL, CHECKPOINTS, INITIATES = "model_parallel_NPU_group", "checkpoints", "checkpoint_initiates"
PIPELINE_BYTES, BOTTOM_LAYER = "pp_comm", "DLRM_LAST_BOTTOM_LAYER"

SIMAI_KEYS: dict[str, str] = {
    TENSOR_PARALLEL: "tensor parallel devices (TP)",
    "ep": "expert parallel devices (EP)",
    "pp": "pipeline stages (PP)",
    "vpp": "layers or chunks of layers of one stage, run in turn",
    "ga": "micro-batches of a step: gradients are accumulated over them",
    "all_gpus": "devices of the job; SimAI uses its option -g instead",
    CHECKPOINTS: "number of rows whose activations are kept, then these rows",
    INITIATES: "number of rows that rerun the forward pass, then these rows",
    PIPELINE_BYTES: "bytes that one stage of the pipeline sends to the next, per micro-batch",
}
"""The meanings of the keys. SimAI reads these, ASTRA-sim 1.0 has the first and those of checkpoints."""

_ASTRA_SIM_KEYS = (TENSOR_PARALLEL, CHECKPOINTS, INITIATES)
_OF_AICB = {
    "expert_parallel_npu_group": "expert parallel devices, which SimAI reads from ep:",
    "mode": "1 for inference",
}
MEANINGS = {**SIMAI_KEYS, **_OF_AICB, BOTTOM_LAYER: "row of the last layer of the bottom network"}
_OF_SIMAI = frozenset({*SIMAI_KEYS, *_OF_AICB}) - frozenset(_ASTRA_SIM_KEYS)
_LISTS = (CHECKPOINTS, INITIATES)
REQUIRED = (TENSOR_PARALLEL, "ep", "pp", "vpp", "ga", "all_gpus")
"""The keys without which SimAI warns, and computes no time if it divides by them."""

MAX_INT = 2**31 - 1
"""The largest number of a header that the clients store."""
_MAX_DIGITS = 18
_MAX_FAULTS = 20
_SHOWN = 40
_INTEGER = lazy_pattern(r"[+-]?[0-9]+", re.ASCII)


class HeaderKey(NamedTuple):
    """A key with the integers that follow it; `written` is the text of its value."""

    name: str
    column: int
    written: str
    values: tuple[int, ...]

    @property
    def number(self) -> int | None:
        return self.values[0] if self.values else None


class WorkloadHeader(NamedTuple):
    """The first line: the policy, and the keys in their order."""

    line: int
    policy: str
    keys: dict[str, HeaderKey]
    faults: tuple[FieldFault, ...]

    def number(self, key: str) -> int | None:
        """Return the number of a key; None if the key or its number is missing."""
        entry = self.keys.get(key)
        return entry.number if entry is not None else None

    @property
    def dialect(self) -> Dialect:
        """SimAI's if the header has a key that ASTRA-sim 1.0 does not have."""
        return "simai" if _OF_SIMAI.intersection(self.keys) else "astra-sim"


def parse_header(line: int, text: str) -> WorkloadHeader:
    """Parse the first line of a file."""
    (policy, column), *rest = placed_fields(text)
    keys: dict[str, HeaderKey] = {}
    faults: list[FieldFault] = []
    if policy not in POLICIES:
        faults.append(FieldFault(f"{_shown(policy)} is not a policy that a client knows", column))
    if policy in DLRM and rest and _INTEGER.fullmatch(rest[0][0]):
        keys[BOTTOM_LAYER] = HeaderKey(BOTTOM_LAYER, rest[0][1], rest[0][0], _integers([rest[0][0]]))
        rest = rest[1:]
    for name, column, values in _key_tokens(rest):
        if not name:
            faults.append(FieldFault(f"{_shown(values[0])} belongs to no key{_glued(values[0])}", column))
        elif name in keys:
            faults.append(FieldFault(f"the key {_shown(name)} occurs twice", column))
        else:
            keys[name] = HeaderKey(name, column, " ".join(values), _integers(values))
            faults += _faults_of(keys[name], values)
    faults += _faults_of_order(policy, keys)
    return WorkloadHeader(line, policy, keys, tuple(islice(faults, _MAX_FAULTS)))


def _key_tokens(tokens: list[tuple[str, int]]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield keys with the tokens behind them, and each token that belongs to none under an empty name."""
    index = 0
    while index < len(tokens):
        token, column = tokens[index]
        index += 1
        name = token.removesuffix(":")
        if not name or (name == token and name != PIPELINE_BYTES):  # SimAI reads pp_comm without a colon too
            yield "", column, [token]
            continue
        end = index
        most = index + 1 + (_count_of(tokens, index) if name in _LISTS else 0)
        while end < min(most, len(tokens)) and not tokens[end][0].endswith(":") and tokens[end][0] != PIPELINE_BYTES:
            end += 1
        yield name, column, [text for text, _ in tokens[index:end]]
        index = end


def _count_of(tokens: list[tuple[str, int]], index: int) -> int:
    """Return the number of numbers that a list says it holds."""
    counts = _integers([tokens[index][0]]) if index < len(tokens) else ()
    return max(0, *counts) if counts else 0


def _integers(values: list[str]) -> tuple[int, ...]:
    """Return the values up to the first that is no integer. Of a float, clients read the part before its point."""
    numbers = []
    for text in values:
        match = _INTEGER.match(text)
        if match is None or len(match[0]) > _MAX_DIGITS or text[match.end() :].strip("0123456789.eE+-"):
            break
        numbers.append(int(match[0]))
    return tuple(numbers)


def _glued(token: str) -> str:
    before, colon, _ = token.partition(":")
    return f": a blank belongs after {_shown(before)}:" if before and colon else ""


def _shown(token: str) -> str:
    return token if len(token) <= _SHOWN else f"{token[:_SHOWN]}…"


def _faults_of(key: HeaderKey, values: list[str]) -> Iterator[FieldFault]:
    if key.name not in MEANINGS:
        yield FieldFault(f"{_shown(key.name)} is not a key that a client reads", key.column)
    elif key.name == "expert_parallel_npu_group":
        yield FieldFault("SimAI does not read expert_parallel_npu_group; it takes the number from ep:", key.column)
    if not values:
        yield FieldFault(f"{_shown(key.name)} has no value", key.column)
    elif len(key.values) < len(values):
        what = values[len(key.values)]
        beyond = _INTEGER.fullmatch(what) is not None
        yield FieldFault(f"{_shown(key.name)}: {_shown(what)} is {'too large' if beyond else 'no integer'}", key.column)
    elif max(key.values) > MAX_INT:
        yield FieldFault(
            f"{_shown(key.name)}: {max(key.values)} is too large for clients, whose limit is {MAX_INT}", key.column
        )
    elif key.name in _LISTS and len(key.values) != key.values[0] + 1:
        yield FieldFault(f"{key.name} says {key.values[0]} rows and names {len(key.values) - 1}", key.column)


def _faults_of_order(policy: str, keys: dict[str, HeaderKey]) -> Iterator[FieldFault]:
    """Yield keys of ASTRA-sim 1.0 out of the order in which it reads them; a file with a key of SimAI's is not for it."""
    if policy not in TRANSFORMERS or _OF_SIMAI.intersection(keys):
        return
    expected = _ASTRA_SIM_KEYS if policy == FORWARD_IN_BACKWARD else _ASTRA_SIM_KEYS[:1]
    for name in expected:
        if name not in keys:
            yield FieldFault(f"{name} is missing; ASTRA-sim 1.0 reads it with {policy}", 1)
    names = [name for name in keys if name in expected]
    if names != [name for name in expected if name in keys]:
        yield FieldFault(f"ASTRA-sim 1.0 reads {', '.join(expected)} in this order, whatever they are called", 1)
