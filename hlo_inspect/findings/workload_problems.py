"""HI601 to HI608: mistakes of a client that reads a workload file without an error. The readers note these problems."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.errors import Location
from hlo_inspect.findings.reading_problems import READING_PROBLEMS, problem_text
from hlo_inspect.report.model import Finding
from hlo_inspect.report.rule_page import RulePage
from hlo_inspect.workloads.totals import WorkloadTotals
from hlo_inspect.workloads.workload_faults import (
    GROUPS_MISMATCH,
    NO_CHECKPOINTS,
    NOT_ISSUED,
    TIME_OVERFLOW,
    UNKNOWN_COLLECTIVE,
    semantic_faults,
)
from hlo_inspect.workloads.workload_reader import HEADER, MALFORMED_ROW, ROW_COUNT

_SIMAI = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {} ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 8 pp_comm: 0\n"

WORKLOAD_PROBLEMS: tuple[RulePage, ...] = (
    RulePage(
        ROW_COUNT,
        "workload-row-count",
        "error",
        "A workload with fewer or more rows than it states.",
        "Workload files whose second line states another number of rows than the file has.",
        "Clients read the number of rows that the second line states. If rows are missing, they repeat the numbers of the "
        "last row, and times are too large. They ignore additional rows. They report no error in both cases.",
        "Write the number of rows into the second line, or add the missing rows.",
        "DATA\n3\nconv1 -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 64 1\nfc -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 64 1\n",
    ),
    RulePage(
        MALFORMED_ROW,
        "malformed-workload-row",
        "error",
        "A workload row with missing, extra or invalid fields.",
        "Rows with a missing or additional field, or a blank in the name. Rows with a number that is a float, negative or "
        "larger than 64 bits.",
        "Clients read one field after the other. After such a field they read nothing, or every field in the wrong column. "
        "They end without an error; SimAI writes an empty table. In hlo-inspect the totals of missing fields are null.",
        "Write times and sizes as integers, and names without blanks. Write a field for each of the twelve columns.",
        "DATA\n1\nconv1 -1 10.5 NONE 0 10 NONE 0 10 ALLREDUCE 64 1\n",
    ),
    RulePage(
        UNKNOWN_COLLECTIVE,
        "unknown-workload-collective",
        "warning",
        "A collective of a workload that moves nothing.",
        "Collectives such as BROADCAST that no client knows. Collectives with a suffix that the file's client does not know.",
        "The client reads the cell as no communication, so its bytes cost no time. They count in `workload.unknown_bytes`. If "
        "no client knows the word, they count in no total.",
        "Write ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. For experts in SimAI, append _EP or _DP_EP.",
        "DATA\n1\nconv1 -1 10 NONE 0 10 NONE 0 10 BROADCAST 64 1\n",
    ),
    RulePage(
        TIME_OVERFLOW,
        "workload-time-overflow",
        "error",
        "A compute time of a workload that is too large.",
        "Cells with a compute time of about 2^31 or more.",
        "SimAI ends without an error and writes no times.",
        "Divide the row into several rows, each with a part of the time.",
        "DATA\n1\nconv1 -1 3000000000 NONE 0 10 NONE 0 10 ALLREDUCE 64 1\n",
    ),
    RulePage(
        HEADER,
        "workload-header",
        "error",
        "A header of a workload that a client does not read.",
        "First lines with an unknown policy or key, or a missing key. Orders of keys that ASTRA-sim 1.0 does not read. "
        "Numbers that are invalid or too large.",
        "SimAI warns of a mismatch and goes on. Without vpp or ga its total time is NaN or infinity. Without pp or "
        "model_parallel_NPU_group it divides by 0. ASTRA-sim 1.0 reads numbers by position and ignores the keys.",
        "Write the file again with a current aicb, or add the keys. vpp is the number of layers of a stage. pp_comm is "
        "the number of bytes of one micro-batch's activations.",
        _SIMAI.format(2).replace("vpp: 2 ", "") + "1\nmlp -1 10 ALLREDUCE 64 10 NONE 0 10 NONE 0 1\n",
    ),
    RulePage(
        GROUPS_MISMATCH,
        "workload-groups",
        "warning",
        "Groups of a workload that do not divide its devices.",
        "Headers with tensor-parallel devices times pipeline stages that do not divide all_gpus. Headers with experts that do "
        "not divide the data-parallel devices.",
        "SimAI divides integers and rounds down, so its groups leave devices out.",
        "Look for a number that belongs to another run: all_gpus is TP x PP x DP.",
        _SIMAI.format(3) + "1\nmlp -1 10 ALLREDUCE 64 10 NONE 0 10 NONE 0 1\n",
    ),
    RulePage(
        NOT_ISSUED,
        "unissued-workload-collective",
        "info",
        "A collective of a workload that its policy never runs.",
        "Collectives in a pass that has no network dimension under this policy, for example the forward pass under DATA. Under "
        "MICRO only the first row runs.",
        "The bytes count in the totals of the file, but cost the client no time.",
        "Choose a policy that uses these passes. For a benchmark, write a file for each row.",
        "DATA\n1\nconv1 -1 10 ALLGATHER 64 10 NONE 0 10 ALLREDUCE 64 1\n",
    ),
    RulePage(
        NO_CHECKPOINTS,
        "workload-checkpoints",
        "info",
        "Checkpoints of a workload that SimAI does not use.",
        "Headers for SimAI with rows after `checkpoints:` or `checkpoint_initiates:`.",
        "SimAI's analytical client reads the lists, but adds no time for a repeated forward pass. Of several rows it reads "
        "only the first.",
        "Add the time of the recomputation to the rows, as aicb does with the forward time of attention.",
        _SIMAI.format(2).replace("pp_comm", "checkpoints: 1 0 checkpoint_initiates: 0 pp_comm")
        + "1\nmlp -1 10 ALLREDUCE 64 10 NONE 0 10 NONE 0 1\n",
    ),
)

_PAGES = {page.code: page for page in (*READING_PROBLEMS, *WORKLOAD_PROBLEMS)}


def workload_findings(totals: WorkloadTotals) -> Iterator[Finding]:
    """Yield the faults of a workload's text, and the errors that its client makes without a message."""
    workload = totals.workload
    for problem in workload.problems:
        yield _PAGES[problem.code].finding(problem_text(problem), problem.location, problem.subject)
    for code, count in workload.problems.left_out.items():
        yield _PAGES[code].finding(f"{count:,} more of this kind", Location(workload.path))
    for problem, at_stake in semantic_faults(totals):
        yield _PAGES[problem.code].finding(problem_text(problem), problem.location, problem.subject, at_stake)
