"""Reading gives the same on every path: fast path or parser, pieces of any size, whole or selective."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.read import module_reader, parser
from hlo_inspect.hlo.read.fast_path import find_rows, read_row
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shape_text import parse_shape
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.hlo.generate import ORDINARY, Writer, WrittenComputation
from tests.hlo.reading import EVERYTHING, body, contents, module, texts

COLLECTIVES = ["all-reduce", "all-gather-start", "collective-permute"]
OPCODES = [
    *ORDINARY,
    *ORDINARY,
    "constant",
    "parameter",
    "fusion",
    "fusion",
    "call",
    "conditional",
    "while",
    "async-start",
    *COLLECTIVES,
]

seeds = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=80, phases=(Phase.explicit, Phase.reuse, Phase.generate))


def parse_row(line: str) -> Row:
    parsed = parser.parse_instruction(line, 0)
    assert (parsed.end, parsed.fault) == (len(line), None)
    return parsed.row


@MANY
@given(seeds, st.booleans())
def test_the_fast_path_reads_rows_like_the_parser_or_not_at_all(seed: int, plain: bool) -> None:
    writer = Writer(seed, plain=plain)
    lines = [indent + root + writer.line() for indent in ("  ", "", "\t") for root in ("", "ROOT ")]
    expected = [parse_row(line.strip()) for line in lines]
    text = "\n" + "\n".join(lines) + "\n}\n"
    rows = find_rows(text, 1, len(text), is_final=True)
    assert rows is not None or not plain
    assert rows is None or list(zip(rows.marks, rows.names, rows.heads, rows.tails, strict=True)) == expected
    start = 1
    for line, row in zip(lines, expected, strict=True):
        assert read_row(text, start) in ([row] if plain else [row, None])
        start += len(line) + 1


@contextmanager
def parser_only(piece_bytes: int) -> Iterator[None]:
    with without_library() as patch:
        patch.setattr(module_reader, "find_rows", lambda *_args, **_options: None)
        patch.setattr(source, "PIECE_BYTES", piece_bytes)
        yield


@contextmanager
def without_library() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "library", lambda: None)
        yield patch


@MANY
@given(seeds, st.sampled_from([1, 7, 100, 4096]))
def test_a_module_reads_the_same_with_the_parser_alone_and_in_pieces(seed: int, piece_bytes: int) -> None:
    text, written = Writer(seed).module(OPCODES)
    expected = module(text)
    assert {name: list(c.opcodes) for name, c in expected.computations.items()} == {
        computation.name: [opcode for _, opcode, _ in computation.rows] for computation in written
    }
    assert expected.unparsed_lines == 0
    with without_library():
        assert contents(module(text)) == contents(expected)
    with parser_only(piece_bytes):
        assert contents(module(text)) == contents(expected)


def instructions_of(text: str, wants: Wants) -> dict[str, tuple[object, ...]]:
    """Return every kept instruction by name, with its position and contents."""
    parsed = module(text, wants)
    kept = [i for c in parsed.computations.values() for i in (body(c) if wants.graph else c.instructions)]
    return {i.name: (i.computation.name, i.line, i.opcode, str(i.shape), i.is_root, i.operands, texts(i)) for i in kept}


def wanted_names(written: list[WrittenComputation], opcodes: frozenset[str]) -> list[str]:
    """Return the names to keep: wanted opcodes, and callers of computations in which something is kept."""
    names: list[str] = []
    holders: set[str] = set()
    for computation in written:
        here = [name for name, opcode, callee in computation.rows if opcode in opcodes or callee in holders]
        names += here
        if here and not computation.is_entry:
            holders.add(computation.name)
    return names


@MANY
@given(seeds, st.sets(st.sampled_from([*COLLECTIVES, "while", "custom-call"]), min_size=1), st.sampled_from([64, 1 << 20]))
def test_selective_reading_keeps_the_wanted_instructions(seed: int, opcodes: set[str], piece_bytes: int) -> None:
    text, written = Writer(seed).module(OPCODES)
    expected = instructions_of(text, Wants(graph=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PIECE_BYTES", piece_bytes)
        parsed = instructions_of(text, Wants(frozenset(opcodes)))
        assert module(text, Wants(frozenset(opcodes))).computation_count == len(written)
    assert parsed == {name: expected[name] for name in wanted_names(written, frozenset(opcodes))}


@MANY
@given(seeds)
def test_a_graph_has_all_instructions_in_order(seed: int) -> None:
    text, written = Writer(seed).module(OPCODES)
    parsed = module(text, Wants(graph=True))
    bodies = {name: [(i.name, i.opcode) for i in body(c)] for name, c in parsed.computations.items()}
    assert bodies == {computation.name: [entry[:2] for entry in computation.rows] for computation in written}
    assert contents(module(text, EVERYTHING | Wants(graph=True))) == contents(module(text))


@MANY
@given(seeds)
def test_a_printed_shape_reads_back_as_the_same_shape(seed: int) -> None:
    text = Writer(seed).shape(depth=4)
    shape = parse_shape(text)
    plain = str(shape)
    assert str(parse_shape(plain)) == plain
    assert parse_shape(f"/*a*/{text.replace(',', ' , ').replace('(', '( ')} ") == shape
