"""Modules that hold hostile names wherever a dump can hold text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import cycle, islice

DEVICES = 8

_REDUCTION = """%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add = f32[] add(%x, %y)
}
"""


def quoted(name: str) -> str:
    """Return a string as XLA's printer writes it; bytes outside UTF-8 are escapes."""
    data = name.encode("utf-8", "surrogatepass")
    escapes = {0x22: '\\"', 0x5C: "\\\\", 0x27: "\\'", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    return '"' + "".join(escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data) + '"'


def in_one_line(name: str) -> str:
    """Return the name without line breaks."""
    return name.translate(dict.fromkeys(b"\n\r", " ")).encode("utf-8", "replace").decode()


def hostile_module(names: Sequence[str], first: int = 0, rows: int | None = None) -> str:
    """Return a scheduled module with each of the names in every place that holds a text.

    These are metadata, targets, configurations, attributes, paths of parameters, and the files and functions of stack frames.
    Lines around the module are a log that quotes names. The names begin at `first`, in each place with another one.
    """
    count = len(names) if rows is None else rows
    places = [islice(cycle(names), first + 37 * place, None) for place in range(24)]
    return "\n".join(_lines(places, count))


def _lines(places: Sequence[Iterator[str]], count: int) -> Iterator[str]:
    take = [iter(place) for place in places]
    axes = [json.dumps(in_one_line(next(take[0]))) for _ in range(2)]
    yield f"I0101 00:00:00.000000 7 log.cc:1] {in_one_line(next(take[1]))}"
    yield in_one_line(next(take[1]))
    yield (
        f"HloModule {_word(next(take[2]))}, is_scheduled=true, num_partitions={DEVICES}, frontend_attributes={{"
        f"xla.sdy.meshes={{mesh = #sdy.mesh<[{axes[0]}=4, {axes[1]}=2]>}},note={quoted(next(take[3]))}}}, "
        f"unheard_of={quoted(next(take[3]))}"
    )
    yield ""
    yield from _stack_tables(take, count)
    yield _REDUCTION
    yield f"ENTRY %main ({', '.join(f'p{number}: f32[64]' for number in range(count))}) -> f32[64] {{"
    for number in range(count):
        yield (
            f"  %p{number} = f32[64]{{0}} parameter({number}), sharding={{devices=[{DEVICES}]<=[{DEVICES}] "
            f"metadata={{op_name={quoted(next(take[4]))}}}}}, metadata={{op_name={quoted(next(take[5]))}}}"
        )
    for number in range(count):
        yield f"  {_instruction(take, number)}, {_labels(take, number)}"
        if number % 9 == 0:
            yield f"  // {in_one_line(next(take[6]))}"
            yield f"  /*{in_one_line(next(take[6])).replace('*/', '* /')}*/"
            yield f"  %{in_one_line(next(take[7]))} = f32[64]{{0}} negate(%p0)"
            yield f"  %odd{number} = {in_one_line(next(take[8]))}[64]{{0}} negate(%p0)"
            yield f"  %strange{number} = f32[64]{{0}} {in_one_line(next(take[9]))}(%p0)"
    yield f"  ROOT %out = f32[64]{{0}} add(%i0, %i{count - 1})"
    yield "}"
    yield ""
    yield f"E0101 00:00:00.000000 7 log.cc:2] Out of memory allocating 1 bytes: {in_one_line(next(take[10]))}"
    yield ""


def _word(name: str) -> str:
    """Return the name as one of a module, which a comma or a blank ends."""
    return "".join("_" if char in ", \t\n\r{" else char for char in in_one_line(name)) or "m"


def _stack_tables(take: Sequence[Iterator[str]], count: int) -> Iterator[str]:
    yield "FileNames"
    yield from (f"{number} {quoted(next(take[11]))}" for number in range(1, count + 1))
    yield "\nFunctionNames"
    yield from (f"{number} {quoted(next(take[12]))}" for number in range(1, count + 1))
    yield "\nFileLocations"
    for number in range(1, count + 1):
        yield f"{number} {{file_name_id={number} function_name_id={number} line=1 end_line=1 column=1 end_column=2}}"
    yield "\nStackFrames"
    yield from (f"{number} {{file_location_id={number} parent_frame_id={number}}}" for number in range(1, count + 1))
    yield ""


def _instruction(take: Sequence[Iterator[str]], number: int) -> str:
    """Return an instruction of one of five kinds that tables and pictures are about."""
    kind = number % 5
    if kind == 0:
        return (
            f"%i{number} = f32[64]{{0}} custom-call(%p{number}), custom_call_target={quoted(next(take[13]))}, "
            f"backend_config={quoted(next(take[14]))}"
        )
    if kind == 1:
        groups = "{{0,1},{2,3},{4,5},{6,7}}" if number % 2 else "{{0,2,4,6},{1,3,5,7}}"
        return (
            f"%i{number} = f32[64]{{0}} all-reduce(%p{number}), channel_id={number + 1}, replica_groups={groups}, "
            f"use_global_device_ids=true, to_apply=%sum, backend_config={{{_pair(take[15], take[16])}}}"
        )
    if kind == 2:
        return (
            f"%i{number} = f32[64,64]{{1,0}} dot(%p{number}, %p{number}), lhs_contracting_dims={{}}, rhs_contracting_dims={{}}"
        )
    if kind == 3:
        return (
            f"%i{number} = ((f32[64]{{0}}), token[]) infeed(%p{number}), infeed_config={quoted(next(take[17]))}, "
            f"invented={quoted(next(take[17]))}"
        )
    return f"%i{number} = f32[64]{{0}} exponential(%p{number}), execution_thread={quoted(next(take[18]))}"


def _pair(keys: Iterator[str], values: Iterator[str]) -> str:
    return f"{json.dumps(in_one_line(next(keys)))}:{json.dumps(in_one_line(next(values)))}"


def _labels(take: Sequence[Iterator[str]], number: int) -> str:
    place = f"stack_frame_id={number + 1}" if number % 2 else f"source_file={quoted(next(take[19]))} source_line={number + 1}"
    return (
        f"frontend_attributes={{note={quoted(next(take[20]))}}}, metadata={{op_type={quoted(next(take[21]))} "
        f"op_name={quoted(next(take[22]))} {place} scheduling_name={quoted(next(take[23]))}}}"
    )
