"""The Python call: sources, choice of modules and passes, and errors."""

from __future__ import annotations

import gc
import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import hlo_inspect
from hlo_inspect import HloInspectError, InputError, Report, UsageError, inspect, inspect_all
from hlo_inspect.inspection import source_reports
from hlo_inspect.passes import MODULE_FACTS, PASSES, find_pass

DATA = Path(__file__).parent / "data"
DIRECTORY = DATA / "xla_dump_to"
COLLECTIVES = DATA / "cpu/collectives.after.txt"
IN_LOG = DATA / "handmade/in_log.txt"

TEXT = """HloModule small, num_partitions=2

ENTRY %main (p: f32[4]) -> f32[8] {
  %p = f32[4]{0} parameter(0)
  ROOT %g = f32[8]{0} all-gather(%p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
}
"""
SECOND = TEXT.replace("small", "other.2").replace("f32[4]", "f32[16]").replace("f32[8]", "f32[32]")


def names(reports: list[Report]) -> list[str]:
    return [str(report.facts["module.name"]) for report in reports]


def is_report_of_small(report: Report, path: str) -> bool:
    assert (report.facts["module.name"], report.facts["params.bytes"]) == ("small", 16)
    assert report.facts["collectives.operand_bytes"] == 16
    assert (report.input.path, report.input.first_line, report.input.lines) == (path, 1, 6)
    assert report.input.bytes == len(TEXT)
    return True


def test_a_source_may_be_text_bytes_or_a_buffer() -> None:
    assert is_report_of_small(inspect(TEXT), "<text>")
    assert is_report_of_small(inspect(TEXT.encode()), "<text>")
    assert is_report_of_small(inspect(StringIO(TEXT)), "<file>")
    assert is_report_of_small(inspect(BytesIO(TEXT.encode())), "<file>")


def test_a_source_may_be_a_path_or_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert is_report_of_small(inspect(path), str(path))
    assert is_report_of_small(inspect(str(path)), str(path))
    with path.open("rb") as binary:
        assert is_report_of_small(inspect(binary), str(path))
    with path.open(encoding="utf-8") as text:
        assert is_report_of_small(inspect(text), str(path))


def test_a_source_may_be_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert is_report_of_small(inspect(path), str(path))


def test_windows_line_ends_do_not_change_the_facts(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert inspect(path).facts == inspect(TEXT).facts


def test_inspect_all_reports_each_module_of_a_text() -> None:
    reports = list(inspect_all(TEXT + "\n" + SECOND, ("params",)))
    assert names(reports) == ["small", "other.2"]
    assert [report.facts["params.bytes"] for report in reports] == [16, 64]
    assert [(report.input.first_line, report.input.lines) for report in reports] == [(1, 6), (8, 6)]


def test_inspect_all_finds_the_modules_in_a_log() -> None:
    reports = list(inspect_all(IN_LOG))
    assert names(reports) == ["jit_step", "jit_loss"]
    assert [report.input.first_line for report in reports] == [4, 15]


@pytest.mark.parametrize(
    ("pattern", "expected"), [("jit_loss", ["jit_loss"]), ("^jit", ["jit_step", "jit_loss"]), ("ss$|none", ["jit_loss"])]
)
def test_module_selects_names_by_a_regular_expression(pattern: str, expected: list[str]) -> None:
    assert names(list(inspect_all(IN_LOG, module=pattern))) == expected


def test_module_matches_the_name_of_a_headerless_module() -> None:
    """A module without a header has the name of its entry."""
    assert inspect(DATA / "handmade/headerless.txt", module="^module_only$").facts["module.name"] == "module_only"


def test_inspect_needs_exactly_one_module() -> None:
    with pytest.raises(UsageError, match=r"the input has 2 modules \(jit_step, jit_loss\); choose one with module="):
        inspect(IN_LOG)
    assert inspect(IN_LOG, module="loss").facts["params.bytes"] == 32


def test_a_name_that_no_module_has_is_an_error() -> None:
    with pytest.raises(InputError, match="no module named like 'train'") as raised:
        inspect(IN_LOG, module="train")
    assert raised.value.path == str(IN_LOG)


def test_an_invalid_regular_expression_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"'\(' is not a regular expression"):
        inspect(TEXT, module="(")


def test_a_dump_directory_gives_a_report_per_module() -> None:
    """The first module has its optimized text; the second has another stage, with a note."""
    first, second = inspect_all(DIRECTORY)
    assert Path(first.input.path).name == "module_0000.jit_step.cpu_after_optimizations.txt"
    assert Path(second.input.path).name == "module_0002.jit_step.before_optimizations.txt"
    assert (first.facts["params.bytes"], second.facts["params.bytes"]) == (576, 48)
    assert not any("after optimizations" in note for note in first.notes)
    assert [note for note in second.notes if note.startswith("module_0002.jit_step.before_optimizations.txt is read: ")] != []


@pytest.mark.parametrize(
    ("stage", "size"),
    [("before_optimizations", [1792, 48]), ("after_spmd-partitioning", [576]), ("after_shardy-xla", [1792])],
)
def test_stage_selects_files_of_a_dump_directory(stage: str, size: list[int]) -> None:
    assert [report.facts["params.bytes"] for report in inspect_all(str(DIRECTORY), ("params",), stage=stage)] == size


def test_a_stage_that_no_file_has_is_an_error() -> None:
    with pytest.raises(UsageError, match="'after_sharding'"):
        list(inspect_all(DIRECTORY, stage="after_sharding"))


def test_a_directory_without_dumps_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without XLA dumps"):
        inspect(tmp_path)


def test_passes_are_selected_by_name() -> None:
    assert inspect(TEXT).command == "summary"
    report = inspect(TEXT, ("collectives", "params"))
    assert report.command == "collectives"
    assert [table.name for table in report.tables] == [
        "collectives",
        "collective_groups",
        "collectives_by_kind",
        "collectives_by_axis",
        "collectives_by_size",
        "collectives_by_phase",
        "params",
        "params_by_role",
        "params_not_donated",
        "outputs",
        "output_groups",
    ]
    assert {"collectives.count", "params.count", "module.name"} <= report.facts.keys()
    assert "fusions.count" not in report.facts


def test_parameters_is_an_alias_of_params() -> None:
    assert inspect(TEXT, ("parameters",)) == inspect(TEXT, ("params",))
    assert inspect(TEXT, ("parameters",)).command == "params"


def test_a_pass_named_twice_gives_its_tables_once() -> None:
    once = inspect(TEXT, ("params",))
    assert inspect(TEXT, ("params", "parameters")).tables == once.tables
    assert inspect(TEXT, ("summary", "params")).findings == inspect(TEXT).findings


@pytest.mark.parametrize("passes", [("nothing",), ("params", "Summary"), ()])
def test_an_unknown_or_missing_pass_is_an_error(passes: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="no pass"):
        inspect(TEXT, passes)


def test_facts_of_the_module_come_first() -> None:
    facts = list(inspect(TEXT, ("params",)).facts)
    of_module = [fact for fact in facts if fact.startswith("module.")]
    assert facts[: len(of_module)] == of_module


def test_a_table_is_found_by_its_name() -> None:
    report = inspect(TEXT, ("collectives",))
    assert report.table("collectives").rows[0][:2] == ("g", "all-gather")
    with pytest.raises(UsageError, match="no table 'params'"):
        report.table("params")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.txt", "cannot be read"),
        (b"", "empty"),
        ("no HLO\nat all\n", "holds no HLO module"),
        (b"\x00\x01\x02", "binary"),
    ],
)
def test_an_unreadable_source_is_an_input_error(source: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        inspect(source)
    assert raised.value.path == ("nowhere.txt" if source == "nowhere.txt" else "<text>")
    assert isinstance(raised.value, HloInspectError)


def test_a_report_names_its_profile() -> None:
    assert inspect(TEXT).profile is None
    assert inspect(TEXT, profile="h100-sxm").profile == "h100-sxm"
    with pytest.raises(UsageError):
        inspect(TEXT, profile="h99")


def test_an_invalid_mesh_is_refused_before_reading() -> None:
    with pytest.raises(UsageError, match="is not a mesh"):
        inspect("nowhere.txt", mesh="data")


def test_garbage_collection_stays_enabled() -> None:
    assert gc.isenabled()
    for _ in inspect_all(TEXT + "\n" + SECOND):
        assert gc.isenabled()
    with pytest.raises(InputError):
        inspect("nowhere.txt")
    assert gc.isenabled()


def test_objects_frozen_by_the_caller_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_reports, "_MANY_OBJECTS", 0)
    inspect(TEXT)  # an import can push frozen objects out of a cache of `typing`
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        inspect(TEXT)
        assert gc.get_freeze_count() == before > 0
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("many", [0, 50_000])
def test_no_object_is_frozen_after_an_inspection(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """The collector could not free a frozen report."""
    monkeypatch.setattr(source_reports, "_MANY_OBJECTS", many)
    inspect(TEXT)
    assert gc.get_freeze_count() == 0


def test_tables_are_built_only_for_the_requested_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary has the facts of `collectives`, but not its table."""

    def fail(_: object) -> None:
        raise AssertionError("the list of collectives is made")

    monkeypatch.setattr("hlo_inspect.passes.collectives.sites", fail)
    assert inspect(TEXT, "summary").facts["collectives.count"] == 1
    with pytest.raises(AssertionError, match="list of collectives"):
        inspect(TEXT, "collectives")


def test_module_facts_gives_only_the_facts_of_the_module() -> None:
    report = inspect(TEXT, "module_facts")
    assert list(report.facts) == [spec.name for spec in find_pass(MODULE_FACTS).specs]
    assert (report.tables, report.facts["module.num_partitions"]) == ((), 2)


def test_the_public_names_of_the_package() -> None:
    errors = {"HloInspectError", "InputError", "ParseError", "UsageError", "Location", "MissingExtraError", "UnknownFactError"}
    names = {"inspect", "inspect_all", "compile", "prove", "watch", "CompileError", "Report", "Table", "__version__"}
    assert set(hlo_inspect.__all__) == errors | names
    assert all(hasattr(hlo_inspect, name) for name in hlo_inspect.__all__)


def test_facts_of_a_jax_program_are_those_of_memory_analysis() -> None:
    jax = pytest.importorskip("jax")

    def step(weight: Any, x: Any) -> Any:
        return weight - 0.5 * (x.T @ (x @ weight)), (x @ weight).sum()

    shapes = (jax.ShapeDtypeStruct((16, 8), "float32"), jax.ShapeDtypeStruct((4, 16), "float32"))
    compiled = jax.jit(step, donate_argnums=0).lower(*shapes).compile()
    memory = compiled.memory_analysis()
    facts = inspect(compiled.as_text()).facts
    assert facts["module.name"] == "jit_step"
    assert facts["params.bytes"] == memory.argument_size_in_bytes == 16 * 8 * 4 + 4 * 16 * 4
    assert facts["params.aliased_bytes"] == memory.alias_size_in_bytes == 16 * 8 * 4
    assert (facts["outputs.bytes"], facts["params.unused_count"], facts["collectives.count"]) == (16 * 8 * 4 + 4, 0, 0)


class Lowered:
    """Like `jax.stages.Lowered`: StableHLO unless the dialect is HLO."""

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        assert not debug_info
        return COLLECTIVES.read_text() if dialect == "hlo" else "module @jit_step {}"


class Compiled:
    def as_text(self) -> str:
        return COLLECTIVES.read_text()


class WithoutText:
    def as_text(self) -> None:
        return None


@pytest.mark.parametrize("source", [Lowered(), Compiled()])
def test_an_object_with_as_text_is_a_source(source: Lowered | Compiled) -> None:
    assert hlo_inspect.inspect(source, "collectives").facts == hlo_inspect.inspect(COLLECTIVES, "collectives").facts


def test_what_was_lowered_is_an_object_with_as_text_too() -> None:
    """The text of this one is of an older jax, which prints shardings itself."""
    report = hlo_inspect.inspect(Compiled(), "params", lowered=Lowered())
    assert report.facts == hlo_inspect.inspect(COLLECTIVES, "params").facts
    with pytest.raises(hlo_inspect.InputError, match=r"as_text\(\) of WithoutText returned no text"):
        hlo_inspect.inspect(Compiled(), "params", lowered=WithoutText())


def test_an_object_whose_as_text_returns_none_is_no_source() -> None:
    with pytest.raises(hlo_inspect.InputError, match=r"as_text\(\) of WithoutText returned no text; pass HLO text or a file"):
        hlo_inspect.inspect(WithoutText())


def test_lowered_and_compiled_jax_programs_are_sources() -> None:
    jax = pytest.importorskip("jax")
    lowered = jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((8, 8), "float32"))
    for source in (lowered, lowered.compile()):
        assert hlo_inspect.inspect(source, "cost").facts["cost.matmul_flops"] == 2 * 8 * 8 * 8


def test_dir_lists_the_public_names() -> None:
    assert {name for name in dir(hlo_inspect) if not name.startswith("_")} == set(hlo_inspect.__all__) - {"__version__"}


def test_an_unknown_fact_is_an_error_with_a_suggestion() -> None:
    facts = hlo_inspect.inspect(COLLECTIVES, "collectives").facts
    with pytest.raises(hlo_inspect.UnknownFactError, match=r"no fact 'collectives\.cout'; did you mean 'collectives\.count'"):
        facts["collectives.cout"]
    with pytest.raises(KeyError):
        facts["params.count"]
    assert facts.get("params.count") is None
    assert "collectives.cout" not in facts
    assert facts["collectives.group_size.17.count"] == 0  # a member of a family that does not occur
    with pytest.raises(hlo_inspect.UsageError):
        facts["collectives.group_size.many.count"]


def test_a_table_gives_its_rows_as_records() -> None:
    report = hlo_inspect.inspect(COLLECTIVES, "collectives")
    table = report.table("collectives")
    (record,) = [record for record in table.records() if record["line"] == 173]
    assert (record["kind"], record["reduction"], record["axis"]) == ("all-reduce", "max", "d0")
    assert len(table.records()) == len(table.rows)


def test_a_table_converts_to_a_pandas_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hlo_inspect.inspect(COLLECTIVES, "collectives").table("collectives")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(hlo_inspect.MissingExtraError, match="pip install pandas"):
        table.to_pandas()
    monkeypatch.undo()
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert str(frame["operand_bytes"].dtype) == "Int64"
    assert frame[frame["line"] == 173]["kind"].tolist() == ["all-reduce"]


@pytest.mark.parametrize("name", ["summary", "collectives"])
def test_a_report_has_a_repr_and_html(name: str) -> None:
    report = hlo_inspect.inspect(COLLECTIVES, name)
    shown, html = repr(report), report._repr_html_()
    assert shown.startswith("jit_step  ")
    assert len(shown.splitlines()) < 150
    assert html is not None
    assert "<h4>jit_step</h4>" in html
    assert repr(report.tables[0]).splitlines()[0] == report.tables[0].title


def test_html_escapes_the_text_of_a_dump() -> None:
    text = 'HloModule m\n\nENTRY e {\n  ROOT a = f32[4]{0} parameter(0), metadata={op_name="<script>x</script>"}\n}\n'
    html = hlo_inspect.inspect(text, "params")._repr_html_()
    assert html is not None
    assert "<script>" not in html
    ElementTree.fromstring(f"<div>{html}</div>")  # noqa: S314 - it is not from outside


@pytest.fixture
def without_cycle_collection() -> Iterator[None]:
    """Turn the garbage collector off, and freeze the objects of other tests."""
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def live_objects(kinds: str) -> Counter[str]:
    """Count the live objects of the classes of a package."""
    return Counter(type(item).__name__ for item in gc.get_objects() if str(type(item).__module__).startswith(kinds))


@pytest.mark.parametrize("name", [name for name in PASSES.names if name not in {"show", "workload"}])
@pytest.mark.usefixtures("without_cycle_collection")
def test_a_module_is_freed_without_the_garbage_collector(name: str) -> None:
    """A module and its analyses have no reference cycles."""
    dumps = [DATA / "jax_0_5_0/scan_fsdp.after.txt", DATA / "optimizers/adam.after.hlo"]
    for dump in dumps:
        inspect(dump, name, profile="h100-sxm")  # imports, and computes what all modules share
    before = live_objects("hlo_inspect.analysis") + live_objects("hlo_inspect.hlo")
    for dump in dumps:
        report = inspect(dump, name, profile="h100-sxm")
        assert report.facts
        assert live_objects("hlo_inspect.analysis") + live_objects("hlo_inspect.hlo") - before == Counter()


@pytest.mark.usefixtures("without_cycle_collection")
def test_at_most_two_modules_of_an_input_are_alive() -> None:
    text = "".join(
        f"HloModule m{number}\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  ROOT n = f32[4]{{0}} negate(p)\n}}\n\n"
        for number in range(16)
    )
    most = 0
    for report in inspect_all(text, "summary"):
        most = max(most, live_objects("hlo_inspect.hlo.module")["Module"])
        assert report.facts["module.instructions"] == 2
    assert 0 < most <= 2


def test_an_inspection_runs_no_full_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full collection takes as long as reading a few megabytes."""
    made: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: made.append(1))
    for _ in range(3):
        inspect(COLLECTIVES, "collectives")
    assert made == []
