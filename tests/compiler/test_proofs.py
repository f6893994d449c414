"""`lint --prove`: the remedy of a finding is what its author's own edit gives, and nothing else of the module changes."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.compiler.compiler import Compiler
from hlo_inspect.errors import CompileError
from tests.calling import answer
from tests.compiler import programs
from tests.tables import rows

jaxlib = pytest.importorskip("jaxlib")
sdy = pytest.importorskip("jaxlib.mlir.dialects.sdy")

STEP = Path(__file__).parents[1] / "data/stablehlo/step.mlir"
FOLDER = Path(__file__).parents[3] / "shared/dumps/prove"
LOW = [part for rule in ("HI101", "HI104", "HI505", "HI506") for part in ("--threshold", f"{rule}=64KiB")]


def proofs(*arguments: object) -> list[dict[str, Any]]:
    return rows(answer("lint", *arguments, "--prove"), "proofs")


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path]:
    """Return the proofs of STEP, and the folder of the compiled programs."""
    folder = tmp_path_factory.mktemp("proved") / "kept"
    return proofs(STEP, "--keep", folder), folder


def test_a_donation_saves_the_buffers_of_all_new_values(proved: tuple[list[dict[str, Any]], Path]) -> None:
    """Two weights and two momenta of 8 MiB on a device: without donation 32 MiB of results lie beside 33 MiB of arguments."""
    first, second = proved[0]
    assert [first["rule"], second["rule"]] == ["HI101", "HI505"]
    assert first["verdict"] == second["verdict"] == "confirmed"
    assert first["remedy"] == "donate weights['down'], weights['up'], momentum['down'], momentum['up']"
    assert first["line"] == "jax.jit(…, donate_argnums=(0, 1))"
    assert first["needed_bytes_after"] < first["needed_bytes_before"]
    assert first["sent_bytes_before"] == first["sent_bytes_after"]
    assert first["keeps_outputs"] is True
    assert first["estimate_s_before"] is None


def test_a_rule_without_a_remedy_is_told(tmp_path: Path) -> None:
    """An argument that nothing reads is HI102, which has no remedy."""
    path = tmp_path / "unused.mlir"
    path.write_text(programs.STEP.replace("%v: tensor", "%unused: tensor<512x512xf32>,\n      %v: tensor"), encoding="utf-8")
    reported = proofs(path, "--select", "HI102")
    assert [(row["rule"], row["verdict"], row["said"]) for row in reported] == [
        ("HI102", "cannot be tried", "no remedy that can be tried")
    ]


def test_the_compiled_programs_are_kept(proved: tuple[list[dict[str, Any]], Path]) -> None:
    (row, _), kept = proved
    for folder, name in (("before", "needed_bytes_before"), ("HI101", "needed_bytes_after")):
        facts = answer("memory", kept / folder)["facts"]
        assert facts["memory.needed_bytes"] == row[name]


@pytest.mark.parametrize(
    ("edit", "added", "count"),
    [
        ({"kind": "donate", "arguments": [0, 4]}, "jax.buffer_donor = true", 2),
        ({"kind": "shard", "side": "arguments", "shardings": {"4": [["data"], ["model"]]}}, '[{"data"}, {"model"}]', 1),
        ({"kind": "shard", "side": "results", "shardings": {"0": [[], ["data"], []]}}, '[{}, {"data"}, {}]', 1),
        ({"kind": "constrain", "dimensions": [1024, 512], "axes": [["data"], []]}, "sdy.sharding_constraint", 2),
    ],
)
def test_an_edit_leaves_everything_else_as_it_was(edit: dict[str, Any], added: str, count: int) -> None:
    """The only differences of the texts are the attributes of @main, or the constraints and their use at the ends of loops."""
    from hlo_inspect.compiler.edits import apply_edit
    from hlo_inspect.compiler.mlir import parse

    before, module = str(parse(STEP.read_bytes())), parse(STEP.read_bytes())
    apply_edit(module, edit)
    after = str(module)
    assert module.operation.verify()
    assert after.count(added) - before.count(added) == count
    changed = [
        line[2:].strip()
        for line in difflib.ndiff(before.split("\n"), after.split("\n"))
        if line[:1] in "+-" and added.partition(" ")[0] not in line
    ]
    assert all(line.startswith(("func.func public @main", "stablehlo.return")) for line in changed)


def test_prove_takes_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", str(STEP), str(STEP), "--prove"]) == 2
    assert "--prove compiles one program, not 2" in capsys.readouterr().err
    assert run(["lint", str(STEP), "--keep", "x"]) == 2


def truths() -> list[Any]:
    """Return the programs of this jaxlib whose fault an edit of arguments mends, and the clean ones."""
    listed = []
    for path in sorted(FOLDER.glob("*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        if truth["jax"] == jaxlib.__version__:
            listed.append(pytest.param(path.parent / "dump", truth, id=path.parent.name))
    return listed


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the dumps beside the checkout")
@pytest.mark.parametrize(("dump", "truth"), truths())
def test_the_bytes_after_are_those_of_the_authors_edit(dump: Path, truth: dict[str, Any]) -> None:
    tried = [row for row in proofs(dump, *LOW) if row["verdict"] != "cannot be tried"]
    if "after" not in truth:
        assert tried == []
        assert [row for row in proofs(dump) if row["verdict"] != "cannot be tried"] == []
        return
    assert tried
    allowed = 0.05 if "constrain" in truth["remedy"] else 0
    for row in tried:
        assert row["verdict"] == "confirmed"
        for side in ("before", "after"):
            facts = truth[side]["facts"]
            assert row[f"needed_bytes_{side}"] == pytest.approx(facts["memory.needed_bytes"], rel=allowed)
            assert row[f"sent_bytes_{side}"] == pytest.approx(facts["collectives.executed_wire_bytes"], rel=allowed)


def test_python_has_the_same_table() -> None:
    records = hlo_inspect.prove(STEP, thresholds=["HI505=1GiB"]).table("proofs").records()
    assert [(row["rule"], row["verdict"]) for row in records] == [("HI101", "confirmed")]


def test_a_program_that_does_not_compile_is_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `compile`, what a compiler refuses is an answer."""

    def refuse(*_: object, **__: object) -> None:
        raise CompileError("does not fit")

    monkeypatch.setattr(Compiler, "compile", refuse)
    assert run(["lint", str(STEP), "--prove"]) == 1
    assert capsys.readouterr() == ("", "hlo-inspect: does not fit\n")
