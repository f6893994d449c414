"""`--strict` against XLA's own parser (jaxlib): it takes what XLA takes, and refuses what XLA refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import hlo_inspect
from tests.hlo.strict import cases, damage
from tests.hlo.strict import cases_attributes as attributes
from tests.hlo.strict.cases_devices import FOUND_LATER, GROUPS, SHARDINGS
from tests.hlo.strict.cases_literals import LAYOUTS, NESTING, VALUES
from tests.hlo.strict.cases_modules import COMPUTATIONS, HEADERS, STACK_FRAMES
from tests.hlo.strict.cases_operations import ASYNC, CONDITIONALS, ELEMENTS, NAMES, OPCODES, OPERANDS, SHAPES
from tests.hlo.strict.cases_texts import LAYOUT_FIELDS, MADE_SHAPES, QUOTED, SINGLE, STRAY, STRINGS

pytest.importorskip("jaxlib")

HERE = Path(__file__).parent
DUMPS = HERE.parents[1] / "shared/dumps"
MAX_BYTES = 1 << 21
NO_MODULES = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")
CASES = [
    *(*attributes.SIGNATURES, *attributes.VALUES, *attributes.KINDS, *attributes.DIMENSIONS),
    *(*GROUPS, *SHARDINGS, *LAYOUTS, *NESTING, *VALUES, *HEADERS, *STACK_FRAMES),
    *(*LAYOUT_FIELDS, *MADE_SHAPES, *QUOTED, *SINGLE, *STRAY, *STRINGS),
    *(*COMPUTATIONS, *NAMES, *OPERANDS, *SHAPES, *ASYNC, *CONDITIONALS, *OPCODES),
]

# What --strict takes and jaxlib 0.10.2 does not, and why. An entry on which both agree has to go.
TAKEN = {
    "handmade/compact_gte.txt": "newer: tuple indices behind names",
    "handmade/async_late.txt": "newer: operands bound by async-update",
    "handmade/debug_attributes.txt": "newer: a header attribute",
    "handmade/two_modules.txt": "two modules of one text",
    "handmade/in_log.txt": "text round the modules",
}
TAKEN_OF_DUMPS = {
    "seeds/002_496ac125c3946675.txt": "text round the module",
    "seeds/004_b1cf5d3eba6d7049.txt": "text round the module",
}


def parses(texts: list[str]) -> list[bool]:
    """Whether XLA takes each text, aborts counted as refusals."""
    program = [sys.executable, str(HERE / "hlo" / "xla_parses.py")]
    done = subprocess.run(program, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=300)
    answers: list[bool] = json.loads(done.stdout)
    return answers


@cache
def dumps(root: Path) -> dict[str, str]:
    """The texts below a folder that are not huge, by name."""
    found = sorted(path for path in root.rglob("*.txt") if not path.name.endswith(NO_MODULES))
    small = [path for path in found if path.stat().st_size <= MAX_BYTES]
    return {path.relative_to(root).as_posix(): path.read_bytes().decode(errors="replace") for path in small}


def is_taken(text: str) -> bool:
    try:
        list(hlo_inspect.inspect_all(text.encode(), strict=True))
    except hlo_inspect.HloInspectError:
        return False
    return True


def test_each_case() -> None:
    taken = dict(zip(CASES, parses([case.good for case in CASES]), strict=True))
    assert [cases.name(case) for case, good in taken.items() if not good] == []
    taken = dict(zip(CASES, parses([case.bad for case in CASES]), strict=True))
    assert [cases.name(case) for case, bad in taken.items() if bad] == []


def test_what_xla_finds_later() -> None:
    """It keeps these as they stand until the devices are spelled out. A jaxlib that refuses them moves them to the others."""
    assert all(parses([text for case in FOUND_LATER for text in (case.good, case.bad)]))


def test_what_is_newer() -> None:
    """A jaxlib that takes these moves them to the others."""
    plain = [case.good for case in ELEMENTS if "#" not in case.good.partition("ENTRY")[2]]
    assert plain == []
    assert not any(parses([case.good for case in ELEMENTS]))


@pytest.mark.parametrize(("root", "taken"), [(HERE / "data", TAKEN), (DUMPS, TAKEN_OF_DUMPS)], ids=["data", "dumps"])
def test_dumps(root: Path, taken: dict[str, str]) -> None:
    """Each dump is taken by both or by neither, but for those on the list. Nothing is asked of dumps that are not there."""
    texts = dumps(root)
    theirs = dict(zip(texts, parses(list(texts.values())), strict=True))
    ours = {name: is_taken(text) for name, text in texts.items()}
    assert {name for name in texts if theirs[name] and not ours[name]} == set()
    assert {name for name in texts if ours[name] and not theirs[name]} == (set(taken) if texts else set())


def test_damaged_modules() -> None:
    """Both parsers on dumps with one thing wrong: an attribute or operand gone or twice, another opcode, lines exchanged."""
    texts = [
        text
        for name, text in dumps(HERE / "data").items()
        if name.startswith(("cpu/", "handmade/operator")) and len(text) < 9000
    ]
    damaged = [text for number in range(400) if (text := damage.damaged(texts, number)) is not None]
    theirs = parses(damaged)
    differing = [text for text, taken in zip(damaged, theirs, strict=True) if taken != is_taken(text)]
    assert differing == []
    assert min(theirs.count(True), theirs.count(False)) > 25
