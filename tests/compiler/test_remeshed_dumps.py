"""Programs compiled for other meshes equal those whose source was compiled for them, in all facts.

The dumps and their figures are in `../shared/dumps/remesh`: made by the jaxlib that each names, from the source.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.compiler.compiler import Compiler
from hlo_inspect.compiler.meshes import mesh_text
from hlo_inspect.compiler.program import read_program
from hlo_inspect.compiler.targets import HOST
from hlo_inspect.errors import InputError
from hlo_inspect.worker_process import UNLIMITED

jaxlib = pytest.importorskip("jaxlib")
pytest.importorskip("jaxlib.mlir.dialects.sdy")
FOLDER = Path(__file__).parents[3] / "shared/dumps/remesh"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the dumps beside the checkout")
PASSES = ("collectives", "memory", "params", "cost")
VERSIONS = {"cost.executed_bytes_accessed": 0.004}
"""Facts of which the figures are an older version's, and the share by which they can differ."""


def truths() -> list[Any]:
    """Return the programs of this jaxlib with their figures."""
    files = sorted(FOLDER.glob("*/truth.json"))
    read = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in files}
    return [pytest.param(name, truth, id=name) for name, truth in read.items() if truth["jax"] == jaxlib.__version__]


def refusals() -> list[Any]:
    path = FOLDER / "refusals.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


@pytest.mark.parametrize(("name", "truth"), truths())
def test_all_facts_are_those_of_the_source(name: str, truth: dict[str, Any], tmp_path: Path) -> None:
    program = read_program(str(FOLDER / name / "dump"))
    compared = 0
    with Compiler(HOST, UNLIMITED) as compiler:
        description = compiler.describe(program)
        for number, case in enumerate(truth["meshes"]):
            mesh = case["mesh"]
            assert bool(description.refusal(mesh)) == ("refused" in case["remesh"]), mesh
            if "refused" in case["remesh"]:
                continue
            compiled = compiler.compile(program, description, tmp_path / str(number), mesh)
            named = hlo_inspect.inspect(compiled.text, passes=PASSES, mesh=mesh_text(mesh)).facts
            facts = {**hlo_inspect.inspect(compiled.text, passes=PASSES).facts, **named}
            for fact, value in case["facts"].items():
                allowed = VERSIONS.get(fact)
                assert facts[fact] == (value if allowed is None else pytest.approx(value, rel=allowed)), (mesh, fact)
            for kind, size in case["memory_analysis"].items():
                assert compiled.memory[kind.removesuffix("_bytes")] == size
            compared += len(case["facts"])
    assert compared > 30 or all("refused" in case["remesh"] for case in truth["meshes"])


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['case']} {case['mesh']}") for case in refusals()])
def test_what_must_be_refused_is_refused_for_its_reason(case: dict[str, Any]) -> None:
    try:
        program = read_program(str(FOLDER / case["dump"]))
    except InputError as error:
        assert case["reason"] in str(error)
        return
    with Compiler(HOST, UNLIMITED) as compiler:
        assert case["reason"] in compiler.describe(program).refusal(case["mesh"])
