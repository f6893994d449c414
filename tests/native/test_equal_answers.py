"""The native reader and those in Python read the same, on dumps and on damaged ones."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS, WANTS
from hlo_inspect.graph.view import View, Views
from hlo_inspect.graph.visit_order import xla_order
from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read import native_runs
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.fuzz.mutate import Mutator
from tests.hlo.reading import modules
from tests.native.states import read

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(path for path in DATA.rglob("*") if path.suffix in {".txt", ".hlo"} and 300 < path.stat().st_size < 200_000)
WANTED = (
    KERNEL_WANTS | Wants(entry=True),
    Wants(graph=True, entry=True, unused=True, checked=True),
    WANTS | Wants(entry=True, unused=True, checked=True),
    Wants(every_line=True),
)
MUTANTS = 40
"""Damaged texts of each worker; `tests.fuzz.native` reads more."""


@pytest.fixture(autouse=True)
def _needs_library() -> None:
    if library.library() is None:
        pytest.skip("no library")


def test_dumps() -> None:
    for number, path in enumerate(DUMPS):
        text, wants = path.read_bytes(), WANTED[number % len(WANTED)]
        assert read(text, wants, native=True) == read(text, wants, native=False), path


def test_classes_and_orders() -> None:
    """Texts that the native reader reads whole have the same classes and orders of rows without it."""
    compared = 0
    for path in DUMPS:
        for module, other in zip(*[modules_of(path.read_bytes(), native) for native in (True, False)], strict=True):
            if all(computation.rows.extent is not None for computation in module.computations.values()):
                assert classes_of(module) == classes_of(other), path
                assert orders_of(module) == orders_of(other), path
                compared += 1
    assert compared > 50


def modules_of(text: bytes, native: bool) -> list[Module]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.VARIABLE, str(int(native)))
        library.load.cache_clear()
        read_modules = modules(text, WANTED[1])
    library.load.cache_clear()
    return read_modules


def orders_of(module: Module) -> list[list[int]]:
    return [list(xla_order(View(computation))) for computation in module.computations.values()]


def classes_of(module: Module) -> list[list[int]]:
    """Return the classes of rows by computation, and those of computations, numbered as they come."""
    views = Views(module.computations)
    classes = views.classes
    numbers: defaultdict[int, int] = defaultdict(count().__next__)
    of_rows = [classes.of_rows(View(computation)) for computation in module.computations.values()]
    return [list(map(numbers.__getitem__, some)) for some in (*of_rows, map(classes.of_computation, module.computations))]


@pytest.mark.parametrize("first", range(0, 160, MUTANTS))
def test_mutants(first: int) -> None:
    for seed in range(first, first + MUTANTS):
        mutator = Mutator(seed)
        chance = mutator.chance
        text, wants = mutator(chance.choice(DUMPS[::3]).read_bytes()), chance.choice(WANTED)
        assert read(text, wants, native=True) == read(text, wants, native=False), seed


@pytest.mark.parametrize("wants", WANTED)
def test_texts_that_arrive_in_pieces(monkeypatch: pytest.MonkeyPatch, wants: Wants) -> None:
    text = (DATA / "cpu" / "scan_fsdp.after.txt").read_bytes()
    expected = read(text, wants, native=False)
    for name, size in (("_FIRST_CHARS", 100), ("_ENOUGH_CHARS", 2000)):
        monkeypatch.setattr(native_runs, name, size)
    monkeypatch.setattr(source, "PIECE_BYTES", 700)
    assert read(text, wants, native=True) == expected
    assert read(text + b"\nother text\n" + text, wants, native=True) == read(
        text + b"\nother text\n" + text, wants, native=False
    )


@pytest.mark.parametrize(
    "row", ["  %odd = f32[8x] iota(), iota_dimension=0", "  %odd = f32[8] negate(%nobody)", "  %odd = f32[] é()"]
)
def test_texts_of_which_little_can_be_read_take_linear_time(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    """Every second computation has a fault. All calls together examine less than thirty times the text."""
    form = "%f.NUMBER (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\nROW  ROOT %n = f32[8]{0} negate(%p)\n}\n\n"
    parts = [form.replace("NUMBER", str(number)).replace("ROW", f"{row}\n" if number % 2 else "") for number in range(1500)]
    text = f"HloModule m\n\n{''.join(parts)}ENTRY {form[1:].replace('NUMBER', 'e').replace('ROW', '')}"
    tried = 0
    native_read = library.NativeReader.read

    def counted(self: library.NativeReader, text: str, start: int, end: int, *, is_final: bool) -> library.Reading:
        nonlocal tried
        tried += end - start
        return native_read(self, text, start, end, is_final=is_final)

    monkeypatch.setattr(library.NativeReader, "read", counted)
    assert read(text, WANTED[1], native=True) == read(text, WANTED[1], native=False)
    assert 0 < tried < 30 * len(text)


@pytest.mark.parametrize(
    "added",
    [
        "  %odd = f32[8]{0} unknown-opcode(), metadata={}\n",
        "  %odd = f32[8]{1,0} iota(), iota_dimension=0\n",
        "  %odd = f99[8] iota(), iota_dimension=0\n",
        "  %odd = f32[8 iota(), iota_dimension=0\n",
        "  %odd = f32[8] iota(), iota_dimension=0, replica_groups={{0,1\n",
        "  %odd = f32[8] iota(), to_apply=%nobody\n",
        "  %odd = f32[8] negate(%nobody)\n",
        "  %odd = f32[8] iota() // of a person\n",
        "  ROOT %odd = f32[8] iota()\n",
        "  odd text\n",
        '  %odd = f32[8] iota(), metadata={op_name="ü"}\n',
    ],
)
def test_a_row_that_has_a_fault(added: str) -> None:
    """Each is added to the first, a middle and the last computation."""
    text = (DATA / "cpu" / "scan_fsdp.after.txt").read_text(encoding="utf-8")
    starts = [place + 3 for place in range(len(text)) if text.startswith(" {\n", place)]
    for place in (starts[0], starts[len(starts) // 2], starts[-1]):
        changed = text[:place] + added + text[place:]
        for wants in WANTED:
            assert read(changed, wants, native=True) == read(changed, wants, native=False)
