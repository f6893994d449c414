"""The first lines of `show`: one instruction as a block of labelled lines, several that fit, or the ways between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.neighbourhood.expressions import FusionExpressions
from hlo_inspect.analysis.neighbourhood.neighbourhood import Neighbourhood, Ways
from hlo_inspect.analysis.neighbourhood.selection import RowPlace
from hlo_inspect.passes import instruction_words as words
from hlo_inspect.passes.instruction_tables import InstructionFigures, named_operands, operand_names, way_text
from hlo_inspect.passes.instruction_words import Words
from hlo_inspect.passes.parameter_tables import index_text
from hlo_inspect.report.model import Amount, HeadlineRow

_MOST_WAYS, _MOST_OUTPUTS = 3, 8


def instruction_block(context: Context, around: Neighbourhood) -> Iterator[HeadlineRow]:
    """What the text and the analyses say of one instruction; what there is nothing to say about is left out."""
    view, row = around.view, around.row
    yield HeadlineRow("", (f"{around.name}: {_title(around)}",))
    yield HeadlineRow("result", tuple(words.shape_words(view.shapes[row])))
    if view.operand_rows(row):
        yield HeadlineRow("operands", (words.operands_text(view, row, list(named_operands(view, around.place, around.graph))),))
    for label, parts in (*_of_text(context, around), *_of_step(context, around), *_around(context, around)):
        said = tuple(parts)
        if any(said):
            yield HeadlineRow(label, said)


def _title(around: Neighbourhood) -> str:
    """What it is, its line, and the computation that holds it."""
    computation = around.place.computation
    opcode = around.view.opcodes[around.row]
    kind = around.instruction.attr("kind") if around.instruction is not None and opcode == "fusion" else None
    if around.is_in_entry:
        place = f"the entry {computation}"
    else:
        callers = [f"{caller.name} (line {caller.line})" for caller in around.callers]
        place = computation + (f", which {words.listed(callers, 3)} call{'s' if len(callers) == 1 else ''}" if callers else "")
    return f"{opcode}{f' {kind}' if kind else ''} on line {around.line}, in {place}"


def _of_text(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Words]]:
    """What its own line says."""
    instruction = around.instruction
    if instruction is None:
        return
    if instruction.opcode == "constant":
        yield "value", _said(words.short(instruction.literal))
    if instruction.opcode == "parameter" and not around.is_in_entry:
        yield "number", _said(instruction.literal)
    for attribute, callees in groupby(instruction.called, lambda called: called.attribute):
        called = list(callees)
        if called[0].role == "fused":
            names = operand_names(around.view, around.place, around.graph)
            yield "computes", _said(FusionExpressions(context.views).of(called[0].name, names))
        else:
            yield attribute.replace("_", " ").removesuffix(" computations"), _said(words.listed([one.name for one in called]))
    yield "attributes", _said(words.attributes_text(instruction))
    predecessors = instruction.attr("control-predecessors")
    yield "waits for", _said(words.listed(predecessors or ()))


def _of_step(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Words]]:
    """What it does in one run of the program."""
    instruction = around.instruction
    if instruction is None:
        return
    for collective, axis in zip(context.collectives, context.axes, strict=True):
        if instruction.line in {collective.start.line, collective.inner.line}:
            yield "groups", words.collective_words(collective, axis)
            break
    if around.place.computation in context.call_graph.calls:
        yield "runs", words.runs_words(context, around.place.computation)
    yield from InstructionFigures(context).words(around.place)
    yield "phase", _said(words.phase_text(context, instruction))
    for leaf in context.interface.parameters:
        if leaf.instruction is not None and leaf.line == instruction.line:
            yield "parameter", _said(words.parameter_text(context, leaf))
    outputs = [index_text(index) for index in around.outputs]
    yield "output", _said(f"of the program at {words.listed(outputs, _MOST_OUTPUTS)}" if outputs else "")
    device = context.memory.device if not context.query.quick else None
    if device is not None:
        yield "memory", words.buffer_words(device, around.name, around.line)
    yield "op_name", _said(words.scope_text(instruction))
    yield "source", _said(words.source_text(context, instruction))


def _around(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Words]]:
    """Who uses it, and the ways that lead to it."""
    view = around.view
    yield "used by", _said(words.listed([view.names[user] for user in view.users[around.row]]))
    for number, way in enumerate(around.from_parameters[:_MOST_WAYS]):
        yield "and from" if number else "from", _said(f"{way_text(context, around.graph, way)} → {around.name}")


def _said(text: str) -> Words:
    if text:
        yield text


# -- several ----------------------------------------------------------------------------------------------------------------


def several_block(context: Context, found: Sequence[RowPlace]) -> Iterator[HeadlineRow]:
    """That several instructions fit."""
    names = {context.views.of(place.computation).names[place.row] for place in found}
    what = f"are called {next(iter(names))}" if len(names) == 1 else f"fit {context.query.name!r}"
    yield HeadlineRow("", (Amount(len(found), "count", "instruction"), f" {what}: the name or the line of one shows more"))


def ways_block(context: Context, ways: Ways) -> Iterator[HeadlineRow]:
    """Whether there is a way at all."""
    asked, to = context.query.name, context.query.to
    if not ways.found:
        yield HeadlineRow("", (f"No array goes from {asked} to {to}, nor from {to} to {asked}",))
        return
    if ways.is_backwards:
        yield HeadlineRow("", (f"No array goes from {asked} to {to}; from {to} to {asked}:",))
    steps = len(ways.found[0]) - 1
    yield HeadlineRow("shortest", (Amount(steps, "count", "step"), f": {way_text(context, ways.graph, ways.found[0])}"))
    yield HeadlineRow("all ways", (Amount(len(ways.joined), "count", "instruction"), " are on some way"))
