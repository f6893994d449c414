"""Content of a readable workload that a client misreads without a message.

That is collectives that move nothing, times that overflow, and keys and groups that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.errors import Location
from hlo_inspect.hlo.module import Problem
from hlo_inspect.workloads.row import CUSTOMIZED, DLRM, MICRO, NONE, POLICIES, WorkloadRow, group_of, shown_field, suffix_of
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.workload_header import CHECKPOINTS, INITIATES, PIPELINE_BYTES, REQUIRED
from hlo_inspect.workloads.workload_reader import HEADER, EqualRows

UNKNOWN_COLLECTIVE, TIME_OVERFLOW, GROUPS_MISMATCH, NOT_ISSUED = "HI603", "HI604", "HI606", "HI607"
NO_CHECKPOINTS = "HI608"

MAX_TIME = 2**31 - 1
"""The time near which SimAI writes no times for a cell."""
_NEAR = 2_147_482_000
_PLACED = 100
"""The largest number of faults of rows with a column, which takes a search of the text."""


def semantic_faults(totals: WorkloadTotals) -> Iterator[tuple[Problem, int]]:
    """Yield each fault once, with its first place and count, and the bytes that it affects."""
    yield from ((problem, 0) for problem in _faults_of_header(totals))
    faults: dict[tuple[str, str], tuple[Problem, int, int]] = {}
    word_faults = _WordFaults(totals)
    workload = totals.workload
    for row, equal in workload.distinct.items():
        for code, message, field_index, size in (*word_faults.faults(row, equal), *_faults_of_times(row)):
            first, times, at_stake = faults.get((code, message), (None, 0, 0))
            if first is None:
                column = workload.column_of(row, field_index) if len(faults) < _PLACED else None
                first = Problem(code, message, Location(workload.path, equal.line, column), row.name)
            faults[code, message] = (first, times + equal.count, at_stake + size * equal.count)
    for problem, times, at_stake in faults.values():
        yield Problem(problem.code, problem.message, problem.location, problem.subject, times), at_stake


def _faults_of_header(totals: WorkloadTotals) -> Iterator[Problem]:
    header = totals.workload.header
    place = Location(totals.workload.path, header.line, 1)
    if header.dialect == "simai":
        missing = [key for key in REQUIRED if key not in header.keys]
        stages, size = totals.parallelism.stages, header.number(PIPELINE_BYTES)
        if stages is not None and stages > 1 and not size:
            missing.append(PIPELINE_BYTES)
        if missing:
            yield Problem(HEADER, f"{_and(missing)} {_is(missing)} missing{_consequence(missing, totals)}", place)
        if stages == 1 and size:
            message = f"{PIPELINE_BYTES} is {size} with one pipeline stage: SimAI warns of a mismatch and ignores these bytes"
            yield Problem(HEADER, message, place)
        zero = [key for key in REQUIRED if header.number(key) is not None and (header.number(key) or 0) < 1]
        if zero:
            yield Problem(HEADER, f"{_and(zero)} {_is(zero)} not positive{_consequence(zero, totals)}", place)
        for key in (header.keys.get(name) for name in (CHECKPOINTS, INITIATES)):
            if key is not None and key.number:
                column = Location(totals.workload.path, header.line, key.column)
                yield Problem(NO_CHECKPOINTS, f"{key.name}: {key.written} does not affect SimAI's analytical client", column)
        for message in totals.parallelism.faults:
            yield Problem(GROUPS_MISMATCH, f"{message}: SimAI rounds down", place)


def _consequence(keys: list[str], totals: WorkloadTotals) -> str:
    """Return what SimAI does without the keys."""
    if "pp" in keys or "model_parallel_NPU_group" in keys:
        return ": SimAI divides by it and aborts"
    if "vpp" in keys or "ga" in keys:
        stages = totals.parallelism.stages
        condition = f" if pp is {stages}" if stages is not None else ""
        it = "them" if len(keys) > 1 else "it"
        return f": current SimAI needs {it}{condition}; without {it} its total time is NaN or infinity"
    if PIPELINE_BYTES in keys:
        return f": SimAI counts no transfers between the {totals.parallelism.stages} pipeline stages"
    return ": SimAI warns of a mismatch"


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is(words: list[str]) -> str:
    return "are" if len(words) > 1 else "is"


def _faults_of_times(row: WorkloadRow) -> Iterator[tuple[str, str, int, int]]:
    for field_index, time in ((2, row.forward_time), (5, row.input_time), (8, row.weight_time), (11, row.update_time)):
        if time is not None and time >= _NEAR:
            yield (
                TIME_OVERFLOW,
                f"{_about(time)} reaches {MAX_TIME}: SimAI ends without an error and without times",
                field_index,
                0,
            )


def _about(time: int) -> str:
    """Return the time in two digits, so that times of many rows are one finding."""
    return f"about {float(f'{time:.1e}'):,.0f}" if time > MAX_TIME else str(time)


class _WordFaults:
    """The faults of rows' collectives, computed once for equal words."""

    def __init__(self, totals: WorkloadTotals) -> None:
        self._totals = totals
        self._first_line = totals.workload.lines_of_rows[0] if totals.workload.rows else 0
        self._known: dict[tuple[object, ...], list[tuple[str, str, int]]] = {}

    def faults(self, row: WorkloadRow, equal: EqualRows) -> Iterator[tuple[str, str, int, int]]:
        """Yield code, message, field and bytes of each fault; messages of equal faults are equal."""
        is_first = equal.line == self._first_line
        key = (is_first, row.forward_word, row.input_word, row.weight_word, row.policy)
        faults = self._known.get(key)
        if faults is None:
            faults = self._known[key] = list(self._find(row, is_first=is_first))
        for code, message, field_index in faults:
            size = row[field_index + 1]
            yield code, message, field_index, size if isinstance(size, int) else 0

    def _find(self, row: WorkloadRow, *, is_first: bool) -> Iterator[tuple[str, str, int]]:
        """Yield the faults, each with the place of the collective in the row."""
        issued = _issued_passes(self._totals, row, is_first=is_first)
        for (name, _, word, _), field_index in zip(row.cells, (3, 6, 9), strict=True):
            if word is None or word == NONE:
                continue
            fault = _fault_of_word(self._totals, name, word)
            if fault:
                yield UNKNOWN_COLLECTIVE, fault, field_index
            elif name not in issued:
                policy = row.policy or self._totals.workload.header.policy
                where = "but in the first row" if policy == MICRO else f"in the {name.replace('_', '-')} pass"
                yield NOT_ISSUED, f"{policy} runs no collective {where}: {shown_field(word)} moves nothing", field_index


def _fault_of_word(totals: WorkloadTotals, pass_name: str, word: str) -> str | None:
    """Return the reason why a collective moves nothing."""
    label = totals.collective(pass_name, word).label
    shown = shown_field(word)
    if label.kind is None:
        return f"{shown} is not a collective that a client knows: it sends nothing"
    if totals.workload.header.dialect == "astra-sim":
        return f"{shown}: ASTRA-sim 1.0 knows no suffix and sends nothing" if suffix_of(word) else None
    if totals.has_groups and label.group is None:
        return f"{shown}: SimAI finds no group for it, so it takes no time"
    return f"{shown}: its suffix names no group" if group_of(word, pass_name) is None and suffix_of(word) else None


def _issued_passes(totals: WorkloadTotals, row: WorkloadRow, *, is_first: bool) -> frozenset[str]:
    """Return the passes of a row whose collectives use some dimension of the network."""
    policy = totals.workload.header.policy
    if policy == CUSTOMIZED:
        policy = row.policy or policy
    if policy in DLRM and is_first:
        policy = CUSTOMIZED
    if policy == MICRO and not is_first:
        return frozenset()
    return POLICIES.get(policy, POLICIES[CUSTOMIZED])
