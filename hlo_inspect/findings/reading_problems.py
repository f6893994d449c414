"""HI001 to HI015: faults of a text. The reader notes these problems; here they get their words.

A problem that occurs again at other places is one finding, with its first place and the number of places. HI090 and HI091 are
about checks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from hlo_inspect.analysis.collectives.logical_collectives import groups_attribute
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.participants import NOT_PRINTED
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.malformed_rows import malformed_rows
from hlo_inspect.hlo.module import PART, TRUNCATED, UNREADABLE, Module, Problem
from hlo_inspect.report.model import Finding, Report
from hlo_inspect.report.rule_page import RulePage

_DAMAGED = "Dump the module again. Copy the file, not the terminal's output: a terminal wraps and truncates long lines."

READING_PROBLEMS: tuple[RulePage, ...] = (
    RulePage(
        UNREADABLE,
        "unreadable-line",
        "warning",
        "A line inside a module that cannot be read.",
        "Lines in a computation that are not instructions. Instructions whose needed attribute is missing or invalid. "
        "XLA's option `print_extra_attributes=false` leaves such attributes out.",
        "No figure includes a line that is not an instruction. If an attribute is missing, the rest of the instruction "
        "counts. Costs are lower bounds then, and so are counts of what the line may be, such as collectives. "
        "`module.unparsed_lines` is the number of unreadable lines; if it is 0, every line was read.",
        f"{_DAMAGED} If XLA prints such a line, please report it.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  this is no instruction\n  ROOT n = f32[4]{0} negate(p)\n}",
    ),
    RulePage(
        TRUNCATED,
        "truncated-module",
        "error",
        "The text of the module is incomplete.",
        "Modules with an unclosed last computation, with a header only, or with other text before their end.",
        "The figures cover a part of the module, so counts and sums are lower bounds. `hlo-inspect check` refuses such an "
        "input with exit status 3; --allow-partial accepts it.",
        f"{_DAMAGED} A process that is killed while it writes the dump leaves such a file too.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)",
    ),
    RulePage(
        "HI003",
        "invalid-header-attribute",
        "warning",
        "A header attribute has an invalid value.",
        "Header attributes with a value that XLA never prints, for example `num_partitions=many`.",
        "The module is read as if the attribute were absent: with one partition, for instance, or without donated parameters.",
        _DAMAGED,
        "HloModule m, num_partitions=many\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}",
    ),
    RulePage(
        "HI004",
        "unknown-opcode",
        "warning",
        "An opcode that XLA does not have.",
        "Instructions with an opcode that neither current nor earlier versions of XLA have.",
        "The instruction is counted, but its FLOPs are unknown, and the data flow through it is lost. It is a "
        "collective if it has `replica_groups` or `channel_id`, or if its name begins with `all-` or `collective-`. Its bytes "
        "are unknown, so counts and bytes of collectives are lower bounds.",
        "Look for a misspelling in an edited text. If the opcode is new in XLA, please report it.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negative(p)\n}",
    ),
    RulePage(
        "HI005",
        "invalid-utf8",
        "warning",
        "Bytes that are not UTF-8.",
        "Modules with bytes that are not UTF-8 text. The finding names the first line that holds them.",
        "The bytes are read as U+FFFD. In metadata they change no figure; in a name they can.",
        f"{_DAMAGED} Check the tool that last wrote the file.",
        'HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0), metadata={op_name="\\xff"}\n}',
    ),
    RulePage(
        "HI006",
        "unknown-element-type",
        "warning",
        "An element type that XLA does not have.",
        "Shapes with an unknown element type, such as `f99[4]`.",
        "The size of the array is unknown, and every total with it is null.",
        "Look for a misspelling in an edited text. If the type is new in XLA, please report it.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f99[4]{0} convert(p)\n}",
    ),
    RulePage(
        "HI007",
        "duplicate-name",
        "error",
        "A name that is defined twice.",
        "Two instructions of one computation, or two computations of one module, with the same name.",
        "XLA refuses such a module. An operand of that name can mean either; hlo-inspect takes the later one.",
        "Look for two dumps in one file, or for an edit of the text. Give each module its own file.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT p = f32[4]{0} negate(p)\n}",
    ),
    RulePage(
        "HI008",
        "undefined-operand",
        "error",
        "An operand that its computation does not define.",
        "Operands with a name that no instruction of the computation has.",
        "XLA refuses such a module. The data flow through the instruction is lost.",
        "Look for a missing or unreadable line before the instruction. In an edited text, look for a misspelling.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(q)\n}",
    ),
    RulePage(
        "HI009",
        "undefined-computation",
        "error",
        "A computation is called but not defined.",
        "Names in `calls=`, `to_apply=`, `body=`, `condition=` and similar attributes that no computation has.",
        "XLA refuses such a module. No figure includes the FLOPs and collectives of the missing computation.",
        f"The text lacks this computation. {_DAMAGED}",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} fusion(p), kind=kLoop, calls=gone\n}",
    ),
    RulePage(
        "HI010",
        "second-entry-or-root",
        "error",
        "A second ENTRY, or a second ROOT in a computation.",
        "Modules with two computations marked `ENTRY`, and computations with two instructions marked `ROOT`.",
        "XLA refuses such a module. hlo-inspect takes the first ENTRY and the last ROOT.",
        "Look for two dumps in one file, or for an edit of the text. Give each module its header, or its own file.",
        "HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n\nENTRY f {\n  ROOT p = f32[4]{0} parameter(0)\n}",
    ),
    RulePage(
        PART,
        "quoted-lines",
        "info",
        "Instruction lines outside any computation.",
        "Quoted lines before, between or after modules. Prose or `...` may stand between them.",
        "hlo-inspect reads them as a partial module. Counts cover these lines, and facts about the whole module are null. "
        "`hlo-inspect check` refuses such an input with exit status 3; --allow-partial accepts it.",
        "If the question is about the whole module, give the whole dump.",
        "%all-reduce.1 = f32[4]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add\n",
    ),
    RulePage(
        "HI014",
        "root-mismatch",
        "error",
        "A computation whose root disagrees with its signature.",
        "Computations without a `ROOT` whose last instruction has another shape than the result in the signature. "
        "Without a signature, `entry_computation_layout` or the caller states the shape of the result.",
        "The line of the root, or the last line, is missing. The data flow and the figures that depend on the result are those "
        "of another program. XLA refuses a signature that disagrees with the root.",
        _DAMAGED,
        "HloModule m\n\nENTRY e (p: f32[4]) -> (f32[4]) {\n  p = f32[4]{0} parameter(0)\n  n = f32[4]{0} negate(p)\n}",
    ),
    RulePage(
        "HI015",
        "missing-root",
        "warning",
        "A computation without a root among others that have one.",
        "Computations without a `ROOT`, if the module has XLA's header and most of its computations have a `ROOT`. Their last "
        "instruction has the shape of the result. Empty computations, which XLA refuses, are reported too.",
        "hlo-inspect takes the last instruction as the root. XLA marks every root, so the line of the real root may be "
        "missing. Then a reducer or fusion computes something else.",
        f"{_DAMAGED} In a text written by hand, mark the root.",
        "HloModule m, entry_computation_layout={(f32[4]{0})->f32[]}\n\nadd {\n  x = f32[] parameter(0)\n"
        "  y = f32[] parameter(1)\n}\n\nf {\n  q = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(q)\n}\n\n"
        "ENTRY e {\n  p = f32[4]{0} parameter(0)\n  z = f32[] constant(0)\n  a = f32[4]{0} fusion(p), kind=kLoop, calls=f\n"
        "  ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add\n}",
    ),
    RulePage(
        "HI013",
        "layout-mismatch",
        "warning",
        "A layout that does not fit its shape.",
        "Shapes such as `f32[4]{1,0}`: the layout has another number of dimensions, or repeats a dimension.",
        "XLA refuses such a shape. Its bytes are counted without padding.",
        "Look for an edit that changed the shape and not its layout. Correct the layout.",
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{1,0} negate(p)\n}",
    ),
)


_PAGES = {page.code: page for page in READING_PROBLEMS}
_SEEN_BY_ALL = frozenset({UNREADABLE, TRUNCATED, "HI003", PART})
"""Problems that are the same whichever lines are read. The others are counted if every line is read."""


def reading_findings(context: Context, passes: Container[str]) -> Iterator[Finding]:
    """Yield the problems of a module's text, as far as the answers of these passes depend on it."""
    module = context.module
    reads_all = module.wants.reads_every_line
    problems = [problem for problem in module.problems if reads_all or problem.code in _SEEN_BY_ALL]
    malformed = [
        Problem(UNREADABLE, f"{row.name}: {row.reason}", module.location(row.line), row.name) for row in malformed_rows(module)
    ]
    unreadable = {problem.location.line for problem in (*problems, *malformed)}
    for problem in (*problems, *malformed, *_missing(context, passes, unreadable)):
        yield _PAGES[problem.code].finding(problem_text(problem), problem.location, problem.subject)
    for code, count in module.problems.left_out.items() if reads_all else ():
        yield _PAGES[code].finding(f"{count:,} more of this kind", module.location(None))


def problem_text(problem: Problem) -> str:
    """Return the message of a problem, with the number of its places."""
    return problem.message + (f" ({problem.times:,} times, first here)" if problem.times > 1 else "")


def _missing(context: Context, passes: Container[str], unreadable: Container[int | None]) -> Iterator[Problem]:
    """Yield the problems that only these passes see: unknown collectives, and attributes that a printer left out."""
    if "collectives" in passes:
        if context.module.heads.unknown_opcodes and not context.module.wants.reads_every_line:
            yield from _unknown_opcodes(context)
        unprinted = [collective.inner for collective in context.collectives if collective.participants.fault == NOT_PRINTED]
        if unprinted:
            groups = [(collective.line, collective.name, groups_attribute(collective)) for collective in unprinted]
            yield from _first_of(context.module, groups, unreadable, "its devices depend on")
    if "cost" in passes:
        yield from _first_of(context.module, context.cost.missing_attributes, unreadable, "its cost depends on")


def _unknown_opcodes(context: Context) -> Iterator[Problem]:
    """Yield one problem for each unknown opcode of collectives, with the number of its instructions."""
    by_opcode: dict[str, list[Instruction]] = {}
    for collective in context.collectives:
        if not collective.properties.is_known:
            by_opcode.setdefault(collective.inner.opcode, []).append(collective.inner)
    for opcode, (first, *more) in by_opcode.items():
        location = context.module.location(first.line)
        yield Problem("HI004", f"unknown opcode {opcode!r}", location, first.name, 1 + len(more))


def _first_of(
    module: Module, missing: Iterable[tuple[int, str, str]], unreadable: Container[int | None], why: str
) -> Iterator[Problem]:
    """Yield the first of some missing attributes, with their number. Each has its line, instruction and name."""
    readable = sorted(attribute for attribute in missing if attribute[0] not in unreadable)
    if readable:
        line, name, attribute = readable[0]
        message = f"{name} is printed without {attribute}, which {why}"
        yield Problem(UNREADABLE, message, module.location(line), name, len(readable))


def truncation(report: Report) -> Finding | None:
    """Return the finding that the text lacks a part of the module: it is truncated, or quoted line by line. Else None."""
    return next((finding for finding in report.findings if finding.rule in {TRUNCATED, PART}), None)


def is_partial_module(finding: Finding) -> bool:
    """Return True if the finding says that lines of a partial module are quoted, not that the text is truncated."""
    return finding.rule == PART


def is_truncated(report: Report) -> bool:
    """Return True if a finding says that the text is truncated. Lines of a partial module are not."""
    return any(finding.rule == TRUNCATED for finding in report.findings)


UNKNOWN_VALUE = RulePage(
    "HI090",
    "unknown-value",
    "error",
    "The value of an asserted fact is unknown.",
    "Assertions on a fact that is null in this module. Assertions that expect null are no findings.",
    "The assertion fails, because an unknown value meets no expectation. The message gives the reason.",
    "Correct the cause that the message names, often a missing trip count or an unreadable line. Or assert another fact. "
    "`null` asserts that a value is unknown, `known` that it is known.",
    "hlo-inspect check dump.txt --assert 'collectives.executed_count <= 12'      # a trip count depends on a parameter",
)
STALE_IGNORE = RulePage(
    "HI091",
    "stale-ignore",
    "info",
    "An entry under `ignore` in a policy covers no finding.",
    "Entries whose rule and subject match no finding of any report.",
    "The ignored finding no longer occurs, or the entry never matched a finding. The entry would hide a later finding.",
    "Delete the entry, or correct its subject.",
    "ignore:\n  - rule: HI101\n    subject: no_parameter_of_this_name\n    reason: donated by the caller",
)
FAILED_CHECK = RulePage(
    "HI092",
    "failed-check",
    "error",
    "An assertion that does not hold.",
    "Assertions of `check` on a known value. Pages show them as rows of the table of checks, formats for CI as findings.",
    "The program does not keep a promise that somebody wrote down. The message has the value and the expectation.",
    "Look at the rows that break the assertion: the table beside the check has the largest. Mend the program. If it is right, "
    "change the assertion.",
    "hlo-inspect check dump.txt --assert 'collectives.all-to-all.count == 0'",
)
CHECK_PROBLEMS = (UNKNOWN_VALUE, STALE_IGNORE, FAILED_CHECK)
