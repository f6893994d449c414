"""Against XLA's own parser (jaxlib): the same computations, instructions, opcodes, shapes, layouts and operands.

XLA runs in a process of its own, which some texts abort.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import OPCODES
from hlo_inspect.hlo.values.shapes import BITS, NOT_ARRAYS, ArrayShape, Layout
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import body, module

pytest.importorskip("jaxlib")

DATA = Path(__file__).parents[1] / "data"
PROGRAM = Path(__file__).with_name("xla_reads.py")
NO_MODULES = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")
TEXTS = sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*.txt") if not path.name.endswith(NO_MODULES))

# Texts that jaxlib 0.10.2 refuses, and why. Remove an entry if it reads the text after all.
REFUSED = {
    "workloads/astra_sim.txt": "a workload of a simulator",
    "workloads/simai.txt": "a workload of a simulator",
    "prints/canonical.txt": "no parser reads its own canonical text: a comma ends the header, names repeat",
    "prints/fingerprint.txt": "computations without a name",
    "prints/no_ids.txt": "names repeat within a computation",
    "prints/no_operand_names.txt": "operands without names",
    "prints/compact_operands.txt": "operands left out",
    "handmade/compact_gte.txt": "newer: tuple indices behind names",
    "handmade/async_late.txt": "newer: operands bound by async-update",
    "jax_0_12/control_flow.before.txt": "newer: the order of a comparison",
    "handmade/debug_attributes.txt": "newer: a header attribute",
    "handmade/old_attributes.txt": "older: attributes that are gone",
    "handmade/old_literals.txt": "older: shapes in front of literals",
    "handmade/two_modules.txt": "two modules",
    "handmade/in_log.txt": "text round the modules",
    "handmade/cut_off.txt": "broken on purpose",
    "handmade/unreadable_lines.txt": "broken on purpose",
    "handmade/unknown_header.txt": "attributes that XLA does not have",
    "handmade/no_module.txt": "no module",
    "handmade/empty.txt": "no module",
}
# XLA makes instructions of nested operands, and names computations that have no name.
WRITTEN_IN_PLACE = {"handmade/nested_operands.txt", "handmade/inline_bodies.txt"}
# Opcodes that this jaxlib does not have: each is older or newer than it.
OTHER_OPCODES = {"all-reduce-scatter", "bitcast-move", "collective-reduce", "cross-replica-sum", "trace", "tuple-select"}


def ask_xla(*words: str, kind: tuple[str, ...] = ()) -> list[Any]:
    """Return XLA's reading of each word; `"aborts"` if the process ends on it."""
    answers: list[Any] = []
    while len(answers) < len(words):
        command = [sys.executable, str(PROGRAM), *kind, *words[len(answers) :]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        answers += [json.loads(line) for line in lines[1:]]
        if len(answers) < len(words):
            assert done.returncode < 0, done.stderr  # killed by a check failure in XLA, not by another error
            answers.append("aborts")
    return answers


@cache
def xla_readings() -> dict[str, Any]:
    return dict(zip(TEXTS, ask_xla(*(str(DATA / name) for name in TEXTS)), strict=True))


@cache
def our_module(name: str) -> Module:
    return module(DATA / name, Wants(graph=True))


def is_refused(answer: Any) -> bool:
    return answer == "aborts" or "error" in answer


def test_xla_refuses_the_listed_texts() -> None:
    assert {name for name, answer in xla_readings().items() if is_refused(answer)} == set(REFUSED)


COMPARED = sorted(set(TEXTS) - set(REFUSED) - WRITTEN_IN_PLACE)


def wrapper_computations(theirs: dict[str, Any], ours: Module) -> set[str]:
    """Return the wrapper computations that XLA makes for instructions printed as sugar (`reduce-scatter-start`)."""
    return (
        set(theirs["computations"]) - set(ours.computations) if any(SUGAR.fullmatch(op) for op in ours.opcode_counts) else set()
    )


SUGAR = re.compile(r"(?!async|all-gather|all-reduce|collective-permute|copy|send|recv).*-(start|update|done)")


def base_form(opcode: str) -> str:
    """Return the general form of sugar (`async-start`), as XLA keeps it."""
    sugar = SUGAR.fullmatch(opcode)
    return f"async-{sugar[1]}" if sugar else opcode


def layout_of(instruction: Instruction) -> Layout | None:
    return instruction.shape.layout if isinstance(instruction.shape, ArrayShape) else None


def rows_of(computation: Computation) -> dict[str, tuple[str, str, list[str | None]]]:
    return {i.name: (base_form(i.opcode), str(i.shape), [o.name for o in i.operands]) for i in body(computation)}


def names_are_unique(ours: Module) -> bool:
    names = Counter(i.name for c in ours.computations.values() for i in body(c))
    return max(names.values()) == 1 and not any(name in ours.computations for name in names)


def test_names_opcodes_shapes_and_operands_are_those_of_xla() -> None:
    """XLA renames instructions that share a name across computations; such modules are left out."""
    compared = 0
    for name in COMPARED:
        ours, theirs = our_module(name), xla_readings()[name]
        if names_are_unique(ours):
            compared += 1
            assert (name, ours.name, ours.entry and ours.entry.name) == (name, theirs["name"], theirs["entry"])
            assert (name, set(theirs["computations"]) - wrapper_computations(theirs, ours)) == (name, set(ours.computations))
            for computation in ours.computations.values():
                expected = theirs["computations"][computation.name]
                rows = {
                    key: (opcode, shape, operands) for key, (opcode, shape, operands, _) in expected["instructions"].items()
                }
                assert (name, rows_of(computation)) == (name, rows)
                assert (name, [i.name for i in body(computation) if i.is_root]) == (name, [expected["root"]])
    assert compared > 50


@pytest.mark.parametrize("name", COMPARED)
def test_counts_of_opcodes_and_shapes_are_those_of_xla(name: str) -> None:
    """XLA renames instructions that share a name, so only counts are compared: of opcodes, shapes and operands' opcodes."""
    ours, theirs = our_module(name), xla_readings()[name]
    hidden = wrapper_computations(theirs, ours)
    expected: Counter[tuple[Any, ...]] = Counter()
    for key, computation in theirs["computations"].items():
        rows = computation["instructions"]
        if key not in hidden:
            expected.update(
                (op, shape, *(rows[operand][0] for operand in operands)) for op, shape, operands, _ in rows.values()
            )
    kinds: Counter[tuple[Any, ...]] = Counter()
    for our_computation in ours.computations.values():
        opcodes = {i.name: base_form(i.opcode) for i in body(our_computation)}
        instructions = body(our_computation)
        kinds.update((base_form(i.opcode), str(i.shape), *(opcodes[o.name or ""] for o in i.operands)) for i in instructions)
    assert kinds == expected


def test_printed_layouts_are_those_of_xla() -> None:
    """Compare printed layouts only; XLA fills in the others."""
    compared = 0
    for name in filter(lambda name: names_are_unique(our_module(name)), COMPARED):
        for computation in our_module(name).computations.values():
            rows = xla_readings()[name]["computations"][computation.name]["instructions"]
            for instruction in body(computation):
                layout = layout_of(instruction)
                if layout is not None:
                    compared += 1
                    assert (name, instruction.name, rows[instruction.name][3]) == (
                        name,
                        instruction.name,
                        layout_fields(layout),
                    )
    assert compared > 1000


def layout_fields(layout: Layout) -> dict[str, Any]:
    return {
        "minor_to_major": list(layout.minor_to_major),
        "tiles": [list(tile) for tile in layout.tiles],
        "element_bits": layout.element_bits,
        "memory_space": layout.memory_space,
    }


def test_xla_knows_all_opcodes_but_the_listed_ones() -> None:
    words = sorted(OPCODES)
    answers = dict(zip(words, ask_xla(*words, kind=("--opcodes",)), strict=True))
    assert {word for word, answer in answers.items() if answer is False} == OTHER_OPCODES


def test_xla_knows_each_element_type() -> None:
    words = [*BITS, *NOT_ARRAYS, "f99", "s3", "F32"]
    answers = dict(zip(words, ask_xla(*words, kind=("--types",)), strict=True))
    assert {word for word, answer in answers.items() if answer is False} == {"f99", "s3", "F32"}
