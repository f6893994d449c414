"""The rows of a workload in another dialect, if that can express them.

ASTRA-sim 1.0 has no keys for pipelines and experts and no groups in its words. The size of an ALLGATHER is the input of one
device in ASTRA-sim (`Ring.cc`), the whole output in SimAI (`Layer::compute_time`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from hlo_inspect.errors import Location, UsageError
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, NONE, TRANSFORMERS, WorkloadRow, kind_of, suffix_of
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.workload_header import (
    CHECKPOINTS,
    INITIATES,
    PIPELINE_BYTES,
    SIMAI_KEYS,
    TENSOR_PARALLEL,
    Dialect,
    HeaderKey,
)
from hlo_inspect.workloads.workload_reader import Workload

WRITTEN: tuple[Literal["simai", "astra-sim", "aicb"], ...] = ("simai", "astra-sim", "aicb")
"""The dialects of `write`; aicb writes SimAI's dialect, with tabs and all keys in its order."""

_AICB_ORDER = (TENSOR_PARALLEL, "ep", "pp", "vpp", "ga", "all_gpus", CHECKPOINTS, INITIATES, PIPELINE_BYTES)
_NAMED_LOSSES = 8


class WorkloadLossError(UsageError):
    """A workload that the requested dialect cannot express; the message names the losses."""


def written(totals: WorkloadTotals, original: bytes, to: str) -> bytes:
    """Return the workload in the dialect `to`, as a file; its own dialect returns the bytes of the file.

    Raise WorkloadLossError for content that the dialect cannot express, or that it needs and the file lacks.
    """
    workload = totals.workload
    source = workload.header.dialect
    target: Dialect = "astra-sim" if to == "astra-sim" else "simai"
    if source == target and (to != "aicb" or _is_as_aicb_writes(workload, original)):
        return original
    losses = list(_losses(totals, target))
    if losses:
        shown = "; ".join(losses[:_NAMED_LOSSES]) + (
            f"; and {len(losses) - _NAMED_LOSSES} more" if losses[_NAMED_LOSSES:] else ""
        )
        raise WorkloadLossError(f"cannot be written as {to}: {shown}", Location(workload.path))
    header = _simai_header(workload) if target == "simai" else _astra_sim_header(workload)
    rows = workload.rows if source == target else [_converted(totals, row, target) for row in workload.rows]
    return workload_text(header, rows)


def workload_text(header: str, rows: Sequence[WorkloadRow]) -> bytes:
    """Return a file: the header, the number of rows, and the rows with tabs between fields."""
    fields = [row if row.policy is not None else row[:-1] for row in rows]
    lines = [header, str(len(rows)), *("\t".join(map(str, row)) for row in fields)]
    return ("\n".join(lines) + "\n").encode()


def _is_as_aicb_writes(workload: Workload, original: bytes) -> bool:
    """Return True if single tabs separate the fields of rows, and the keys are in aicb's order."""
    lines = original.decode(errors="replace").splitlines()
    names = [name for name in workload.header.keys if name in _AICB_ORDER]
    is_ordered = names == [name for name in _AICB_ORDER if name in names]
    return is_ordered and all(line.count("\t") == len(line.split()) - 1 for line in lines[2:])


def _losses(totals: WorkloadTotals, target: Dialect) -> Iterator[str]:
    """Yield the content that would be lost, or is missing."""
    workload = totals.workload
    damaged = {problem.message for problem in workload.problems if problem.code in ("HI601", "HI602", "HI605", "HI002")}
    if totals.first_unknown is not None or (damaged and totals.workload.stated_rows is None):
        yield f"line {totals.first_unknown or workload.header.line} cannot be read"
    if workload.header.dialect != target:
        yield from _losses_of_header(totals) if target == "astra-sim" else _missing_of_header(workload)
        for row, equal in workload.distinct.items():
            for name, _, word, size in row.cells:
                if word is not None and word != NONE:
                    reason = _loss_of_cell(totals, name, word, size, target)
                    if reason:
                        times = f" ({equal.count:,} rows)" if equal.count > 1 else ""
                        yield f"{row.name} on line {equal.line}{times}: {reason}"


def _losses_of_header(totals: WorkloadTotals) -> Iterator[str]:
    """Yield keys without a place in ASTRA-sim 1.0 that mean more than one stage, chunk or expert parallel device."""
    header = totals.workload.header
    for key in ("pp", "vpp", "ep", PIPELINE_BYTES):
        number = header.number(key)
        if number is not None and number > (0 if key == PIPELINE_BYTES else 1) and (key != "vpp" or header.number("pp") != 1):
            yield f"{key}: {number} ({SIMAI_KEYS[key]}) has no place in the header"
    if header.policy in TRANSFORMERS and TENSOR_PARALLEL not in header.keys:
        yield f"{TENSOR_PARALLEL} is missing"


def _missing_of_header(workload: Workload) -> Iterator[str]:
    policy = workload.header.policy
    if policy != FORWARD_IN_BACKWARD:
        yield f"SimAI computes times of {FORWARD_IN_BACKWARD} only, and this is {policy}"
    elif TENSOR_PARALLEL not in workload.header.keys:
        yield f"{TENSOR_PARALLEL} is missing"


def _loss_of_cell(totals: WorkloadTotals, pass_name: str, word: str, size: int | None, target: Dialect) -> str | None:
    """Return the reason why a collective cannot be expressed; one that no client knows is written as it is."""
    kind = kind_of(word)
    if target == "astra-sim" and kind is not None and suffix_of(word):
        return f"{word} names a group, but ASTRA-sim 1.0 has no word for it"
    if target == "simai" and kind is not None and (suffix_of(word) or kind == "allreducealltoall"):
        return f"{word} does not mean the same to SimAI"
    return _loss_of_gather(totals, pass_name, word, size, target) if kind == "allgather" and size else None


def _loss_of_gather(totals: WorkloadTotals, pass_name: str, word: str, size: int, target: Dialect) -> str | None:
    devices = _devices_of(totals, pass_name)
    if devices is None:
        key = "all_gpus" if pass_name == "weight_gradient" else TENSOR_PARALLEL
        return f"the size of {word} changes with the devices of its group, and {key} lacks their number"
    if target == "simai" or size % devices == 0:
        return None
    return f"{size} bytes of {word} are no whole number for each of {devices} devices"


def _devices_of(totals: WorkloadTotals, pass_name: str) -> int | None:
    return totals.parallelism.data if pass_name == "weight_gradient" else totals.parallelism.tensor


def _converted(totals: WorkloadTotals, row: WorkloadRow, target: Dialect) -> WorkloadRow:
    """Return the row with the sizes of its ALLGATHERs in the target's convention."""
    values = list(row)
    for pass_index, (pass_name, _, word, size) in enumerate(row.cells):
        if word is not None and size and kind_of(word) == "allgather":
            devices = _devices_of(totals, pass_name) or 1
            values[4 + 3 * pass_index] = size // devices if target == "astra-sim" else size * devices
    return WorkloadRow(*values)  # type: ignore[arg-type]  # sizes stay integers


def _astra_sim_header(workload: Workload) -> str:
    header = workload.header
    if header.policy not in TRANSFORMERS:
        return header.policy
    keys = [f"{TENSOR_PARALLEL}: {header.number(TENSOR_PARALLEL)}"]
    if header.policy == FORWARD_IN_BACKWARD:
        keys += [_key(name, header.keys.get(name)) for name in (CHECKPOINTS, INITIATES)]
    return " ".join((header.policy, *keys))


def _simai_header(workload: Workload) -> str:
    """Return the keys in aicb's order; a file of ASTRA-sim has one stage, one chunk and one expert parallel device."""
    header = workload.header
    given = header.keys
    if header.dialect == "astra-sim":
        alone = {name: HeaderKey(name, 1, "1", (1,)) for name in ("ep", "pp", "vpp", "ga")}
        given = given | alone | {PIPELINE_BYTES: HeaderKey(PIPELINE_BYTES, 1, "0", (0,))}
    ordered = [name for name in _AICB_ORDER if name in given or name in (CHECKPOINTS, INITIATES)]
    others = [name for name in given if name not in _AICB_ORDER]
    return " ".join((header.policy, *(_key(name, given.get(name)) for name in (*ordered, *others))))


def _key(name: str, key: HeaderKey | None) -> str:
    return f"{name}: {key.written if key is not None else 0}"
