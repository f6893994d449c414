"""What a client makes of a workload that can be read, without a word: collectives that move nothing, times that overflow, keys
and groups that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.errors import Location
from hlo_inspect.hlo.problems import Problem
from hlo_inspect.workloads.header import PIPELINE_BYTES, REQUIRED
from hlo_inspect.workloads.reader import HEADER, EqualRows
from hlo_inspect.workloads.row import WorkloadCell, WorkloadRow
from hlo_inspect.workloads.totals import CollectiveLabel, WorkloadTotals
from hlo_inspect.workloads.vocabulary import CUSTOMIZED, DLRM, MICRO, NONE, POLICIES, group_of, kind_of, suffix_of

UNKNOWN_COLLECTIVE, TIME_OVERFLOW, GROUPS_MISMATCH, NOT_ISSUED = "HI603", "HI604", "HI606", "HI607"

MAX_TIME = 2**31 - 1
"""SimAI writes no times for a cell that comes near this."""
_NEAR = 2_147_482_000


def semantic_faults(totals: WorkloadTotals) -> Iterator[tuple[Problem, int]]:
    """Each fault once, with its first place, how often it occurs and the bytes that it is about."""
    yield from ((problem, 0) for problem in _of_header(totals))
    found: dict[tuple[str, str], tuple[Problem, int, int]] = {}
    for row, equal in totals.workload.distinct.items():
        for code, message, size in _of_row(totals, row, equal):
            first, times, at_stake = found.get((code, message), (None, 0, 0))
            problem = first or Problem(code, message, Location(totals.workload.path, equal.line), row.name)
            found[code, message] = (problem, times + equal.count, at_stake + size * equal.count)
    for problem, times, at_stake in found.values():
        yield Problem(problem.code, problem.message, problem.location, problem.subject, times), at_stake


def _of_header(totals: WorkloadTotals) -> Iterator[Problem]:
    header = totals.workload.header
    place = Location(totals.workload.path, header.line)
    if header.dialect == "simai":
        missing = [key for key in REQUIRED if key not in header.keys]
        stages, size = totals.parallelism.stages, header.number(PIPELINE_BYTES)
        if stages is not None and stages > 1 and not size:
            missing.append(PIPELINE_BYTES)
        if missing:
            yield Problem(HEADER, f"{_and(missing)} {_is(missing)} missing{_consequence(missing, totals)}", place)
        if stages == 1 and size:
            message = f"{PIPELINE_BYTES} is {size} with one pipeline stage: SimAI warns of a mismatch and counts no such bytes"
            yield Problem(HEADER, message, place)
        zero = [key for key in REQUIRED if header.number(key) is not None and (header.number(key) or 0) < 1]
        if zero:
            yield Problem(HEADER, f"{_and(zero)} {_is(zero)} not positive{_consequence(zero, totals)}", place)
        for message in totals.parallelism.faults:
            yield Problem(GROUPS_MISMATCH, f"{message}: SimAI rounds down", place)


def _consequence(keys: list[str], totals: WorkloadTotals) -> str:
    """What SimAI does without the keys."""
    if "pp" in keys or "model_parallel_NPU_group" in keys:
        return ": SimAI divides by it and is aborted"
    if "vpp" in keys or "ga" in keys:
        stages = totals.parallelism.stages
        where = f" where pp is {stages}" if stages is not None else ""
        return f": SimAI of today needs {'them' if len(keys) > 1 else 'it'}{where} and gives NaN or infinity as total time"
    if PIPELINE_BYTES in keys:
        return f": SimAI counts no transfers between the {totals.parallelism.stages} pipeline stages"
    return ": SimAI warns of a mismatch"


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is(words: list[str]) -> str:
    return "are" if len(words) > 1 else "is"


def _of_row(totals: WorkloadTotals, row: WorkloadRow, equal: EqualRows) -> Iterator[tuple[str, str, int]]:
    """Code, message and bytes of what is wrong with a row; messages of equal faults are equal."""
    for time in (*(cell.time for cell in row.cells), row.update_time):
        if time is not None and time >= _NEAR:
            yield TIME_OVERFLOW, f"{time} reaches {MAX_TIME}: SimAI ends without an error and without times", 0
    issued = _issued_passes(totals, row, equal)
    for cell in row.cells:
        if cell.word in (None, NONE):
            continue
        fault = _of_word(totals, cell)
        size = cell.size or 0
        if fault:
            yield UNKNOWN_COLLECTIVE, fault, size
        elif cell.pass_name not in issued:
            policy = row.policy or totals.workload.header.policy
            where = "but in the first row" if policy == MICRO else f"in the {cell.pass_name.replace('_', '-')} pass"
            yield NOT_ISSUED, f"{policy} runs no collective {where}: {cell.word} moves nothing", size


def _of_word(totals: WorkloadTotals, cell: WorkloadCell) -> str | None:
    word = cell.word or ""
    label: CollectiveLabel = totals.label(cell.pass_name, word)
    if kind_of(word) is None:
        return f"{word} is no collective that a client knows: it moves nothing"
    if totals.workload.header.dialect == "astra-sim":
        return f"{word}: ASTRA-sim 1.0 knows no suffix, and moves nothing" if suffix_of(word) else None
    if totals.has_groups and label.group is None:
        return f"{word}: SimAI finds no group for it, so that it takes no time"
    return f"{word}: its suffix names no group" if group_of(word, cell.pass_name) is None and suffix_of(word) else None


def _issued_passes(totals: WorkloadTotals, row: WorkloadRow, equal: EqualRows) -> frozenset[str]:
    """The passes of a row whose collectives use some dimension of the network."""
    policy = totals.workload.header.policy
    is_first = equal.line == totals.workload.lines_of_rows[0]
    if policy == CUSTOMIZED:
        policy = row.policy or policy
    if policy in DLRM and is_first:
        policy = CUSTOMIZED
    if policy == MICRO and not is_first:
        return frozenset()
    return POLICIES.get(policy, POLICIES[CUSTOMIZED])
