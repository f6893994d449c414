"""`query` on dumps: the tables of modules, the queries of docs/sql.md, and inputs of several, partial and unreadable ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.fleet.module_database import TABLES
from tests.calling import call_text

pytestmark = pytest.mark.extras("duckdb")
ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

STEP = """\
HloModule jit_step, is_scheduled=true, num_partitions=2

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a, %b)
}

%fused (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  %negate.1 = f32[8,4]{1,0} negate(%p), metadata={op_name="jit(f)/mlp/neg"}
  ROOT %exp.1 = f32[8,4]{1,0} exponential(%negate.1), metadata={op_name="jit(f)/mlp/exp" source_file="/m.py" source_line=4}
}

ENTRY %main (x: f32[8,4], w: f32[4,4], u: f32[2]) -> (f32[8,4], f32[], f32[2]) {
  %x = f32[8,4]{1,0} parameter(0)
  %w = f32[4,4]{1,0} parameter(1)
  %u = f32[2]{0} parameter(2)
  %dot.1 = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/mlp/dot"}
  %fusion.1 = f32[8,4]{1,0} fusion(%dot.1), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/mlp/exp"}
  %all-reduce-start = f32[8,4]{1,0} all-reduce-start(%fusion.1), channel_id=1, replica_groups={{0,1}}, to_apply=%sum
  %dot.2 = f32[8,4]{1,0} dot(%dot.1, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/mul"}
  %all-reduce-done = f32[8,4]{1,0} all-reduce-done(%all-reduce-start)
  %copy.1 = f32[8,4]{1,0} copy(%all-reduce-done)
  %add.2 = f32[8,4]{1,0} add(%copy.1, %dot.2), metadata={op_name="jit(f)/head/add"}
  %zero = f32[] constant(0)
  %reduce.1 = f32[] reduce(%add.2, %zero), dimensions={0,1}, to_apply=%sum
  %negate.2 = f32[2]{0} negate(%u)
  %negate.3 = f32[2]{0} negate(%u)
  %multiply.1 = f32[2]{0} multiply(%negate.2, %negate.3)
  ROOT %tuple.1 = (f32[8,4]{1,0}, f32[], f32[2]{0}) tuple(%add.2, %reduce.1, %multiply.1)
}
"""
"""Two matrix products, of 2 * 8 * 4 * 4 FLOPs, around an all-reduce of the first; sums, and the square of a negated vector."""


def ask(source: Path | str, sql: str, *options: str, status: int = 0, given: str = "") -> list[list[str]]:
    """Return the rows of a query without the header."""
    done = call_text("query", source, sql, *options, "--format", "csv", given=given)
    assert done.returncode == status, done.stderr
    return list(csv.reader(done.stdout.splitlines()))[1:]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("queries") / "step.txt"
    file.write_text(STEP)
    return file


ANSWERS: dict[str, list[str]] = {
    "Opcodes by scope": ["head,add,1", "mlp,dot,1", "mlp,exponential,1", "mlp,fusion,1", "mlp,negate,1"],
    # w and dot.1 have two readers, add.2 the reduction and the tuple, u both negations; f32[8,4] has 128 bytes
    "Arrays in memory that one instruction reads": [
        "x,128,dot.1",
        "fusion.1,128,all-reduce-start",
        "all-reduce-start,128,all-reduce-done",
        "dot.2,128,add.2",
        "copy.1,128,add.2",
        "negate.2,8,multiply.1",
        "negate.3,8,multiply.1",
        "multiply.1,8,tuple.1",
        "zero,4,reduce.1",
        "reduce.1,4,tuple.1",
    ],
    # behind the start: dot.2, copy.1, add.2, reduce.1, negate.2, negate.3 and multiply.1; before it dot.1 and fusion.1
    "The longest chain of kernels": ["main,dot.2,multiply.1,7", "main,dot.1,fusion.1,2"],
    "Work that is scheduled between": ["all-reduce-start,1,256"],
    "Instructions that make the operands of collectives": ["all-reduce-start,fusion,copy"],
    # w is parameter 1: both products, the fusion, start, done, copy, sum, reduction and tuple
    "All that depends on a parameter": [
        "dot,2",
        *(f"{opcode},1" for opcode in ("add", "all-reduce-done", "all-reduce-start", "copy", "fusion", "parameter")),
        *(f"{opcode},1" for opcode in ("reduce", "tuple")),
    ],
    "Instructions that repeat another one": ['negate,f32[2],2,"[""negate.2"", ""negate.3""]"'],
    # positions are lines of main, from 0: fusion.1 at 4 is reduced in place and read at 8, dot.2 at 6 is read at 9, negate.3
    # by the next line; the other arrays fit into the memory of outputs that come later
    "Temporaries by bytes": ["fusion.1,128,4", "dot.2,128,3", "negate.3,8,1"],
    "Computations by depth": ["main,0", "fused,1", "sum,1"],
    "Parameters by the number of kernels": ["1,w,64,2", "2,u,8,2", "0,x,128,1"],
}
"""Beginning of the sentence before a query of the page -> its rows on `STEP`."""


def queries_of_page() -> dict[str, str]:
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8").partition("## Queries")[2]
    return dict(re.findall(r"([A-Z][^\n]*):\n\n```sql\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize("beginning", ANSWERS)
def test_queries_of_the_page(step: Path, beginning: str) -> None:
    (sql,) = [sql for sentence, sql in queries_of_page().items() if sentence.startswith(beginning)]
    assert ask(step, sql) == list(csv.reader(ANSWERS[beginning]))


def test_each_query_of_the_page_has_an_answer() -> None:
    assert len(queries_of_page()) == len(ANSWERS) == 10


# -- tables -----------------------------------------------------------------------------------------------------------------


def test_without_sql_the_tables_are_listed(step: Path) -> None:
    done = call_text("query", step, "--format", "json")
    (table,) = json.loads(done.stdout)["tables"]
    rows = {name: rows for name, rows, _ in table["rows"]}
    # 22 lines with an instruction, of which 3 apply 2 operands of 3 computations; 14 arrays and tuples of main have a buffer
    assert list(rows) == list(TABLES)
    assert [rows[name] for name in ("modules", "instructions", "computations", "calls", "collectives", "parameters")] == [
        *(1, 22, 3, 3, 1, 3)
    ]
    assert all("lower_bound" not in columns for _, _, columns in table["rows"])


def test_columns_of_an_instruction(step: Path) -> None:
    (row,) = json.loads(call_text("query", step, "FROM instructions WHERE name = 'dot.1'", "--format", "json").stdout)[
        "tables"
    ][0]["rows"]
    # main begins at line 15 of the text; x and w are 32 + 16 floats, the result 32
    figures = [1, 1, 1, *[256] * 3, *[4 * (32 + 16 + 32)] * 3]
    assert row[:7] == [0, 9, "dot.1", "dot", "main", "f32[8,4]", 128]
    assert row[7:16] == figures
    assert row[16:] == ["unknown", "mlp", "jit(f)/mlp/dot", None, 19, 3, 6]


def test_instructions_of_fusions_and_reductions_have_no_figures_of_their_own(step: Path) -> None:
    sql = "SELECT runs, flops, bytes_accessed FROM instructions WHERE name = $name"
    assert ask(step, sql, "--set", "name=exp.1") == [["1", "", ""]]
    assert ask(step, sql, "--set", "name=add.1") == [["", "", ""]]


LOOPS = """\
HloModule jit_loops, is_scheduled=true

%inner (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = f32[4]{0} get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %double = f32[4]{0} add(%v, %v)
  ROOT %state = (s32[], f32[4]{0}) tuple(%next, %double)
}

%below (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[], f32[4]{0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(5)
  ROOT %lt = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (v0: f32[4]) -> f32[4] {
  %v0 = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]{0}) tuple(%zero, %v0)
  %while.1 = (s32[], f32[4]{0}) while(%init), condition=%below, body=%inner
  ROOT %out = f32[4]{0} get-tuple-element(%while.1), index=1
}
"""
"""A loop of 5 iterations, each of which adds 4 floats."""


def test_runs_and_flops_of_loops(tmp_path: Path) -> None:
    file = tmp_path / "loops.txt"
    file.write_text(LOOPS)
    assert ask(file, "SELECT role, callee, runs FROM calls ORDER BY role") == [
        ["body", "inner", "5"],
        ["condition", "below", "6"],
    ]
    assert ask(file, "SELECT name, role, runs FROM computations ORDER BY line") == [
        *(["inner", "body", "5"], ["below", "condition", "6"], ["main", "entry", "1"])
    ]
    assert ask(file, "SELECT runs, flops FROM instructions WHERE name = 'double'") == [["5", "20"]]
    file.write_text(LOOPS.replace("%zero = s32[] constant(0)", "%zero = s32[] parameter(1)"))
    sql = "SELECT runs, runs_lower_bound, runs_upper_bound, flops, flops_lower_bound FROM instructions WHERE name = 'double'"
    assert ask(file, sql) == [["", "1", "", "", "4"]]


@pytest.mark.parametrize("dump", ["cpu/scan_fsdp.after.txt", "gpu/bf16_master.after.txt", "tpu/gathered_matmul.after.txt"])
def test_rows_add_up_to_the_facts(dump: str) -> None:
    """The rows of instructions have each FLOP and byte of the step once; every line with an instruction is a row."""
    facts = hlo_inspect.inspect(DATA / dump, ("cost", "summary", "params", "collectives")).facts
    sql = "SELECT count(*), sum(flops_lower_bound), sum(bytes_accessed_lower_bound) FROM instructions"
    flops, size = (
        facts.get(f"cost.executed_{name}.lower_bound", facts[f"cost.executed_{name}"]) for name in ("flops", "bytes_accessed")
    )
    assert ask(DATA / dump, sql) == [[str(facts["module.instructions"]), str(flops), str(size)]]
    sums = "SELECT (SELECT sum(bytes) FROM parameters), (SELECT count(*) FROM collectives WHERE kind NOT IN ('send', 'recv'))"
    assert ask(DATA / dump, sums) == [[str(facts["params.bytes"]), str(facts["collectives.count"])]]
    undefined = ask(DATA / dump, "SELECT count(*) FROM operands ANTI JOIN instructions ON id = operand_id")
    assert undefined == [["0"]]


@pytest.mark.parametrize(("table", "command"), [("kernels", "top"), ("collectives", "collectives"), ("parameters", "params")])
def test_tables_of_passes_are_those_of_their_commands(table: str, command: str) -> None:
    dump = DATA / "cpu" / "scan_fsdp.after.txt"
    options = ("--profile", "h100-sxm", "--format", "csv")
    theirs = list(csv.DictReader(call_text(command, dump, *options, "--sites").stdout.splitlines()))
    ours = list(csv.DictReader(call_text("query", dump, f"FROM {table}", *options).stdout.splitlines()))
    shared = [name for name in theirs[0] if name in ours[0]]
    assert len(shared) >= 15
    assert [[row[name] for name in shared] for row in ours] == [[row[name] for name in shared] for row in theirs]


def test_findings_are_those_of_lint(tmp_path: Path) -> None:
    file = tmp_path / "unused.txt"
    file.write_text(
        "HloModule m\n\nENTRY main {\n  p = f32[4] parameter(0)\n  q = f32[2] parameter(1)\n  ROOT s = f32[4] add(p, p)\n}\n"
    )
    assert ask(file, "SELECT rule, subject, stake, stake_unit FROM findings") == [["HI102", "q", "8.0", "bytes"]]


# -- inputs -----------------------------------------------------------------------------------------------------------------


def test_several_modules_are_one_set_of_tables(tmp_path: Path, step: Path) -> None:
    (tmp_path / "both.txt").write_text(f"{STEP}\n{LOOPS}")
    sql = "SELECT modules.name, modules.line, count(*) FROM instructions JOIN modules USING (module) GROUP BY ALL ORDER BY 2"
    assert ask(tmp_path / "both.txt", sql) == [["jit_step", "1", "22"], ["jit_loops", "34", "16"]]
    assert ask(tmp_path / "both.txt", sql, "--module", "loops") == [["jit_loops", "34", "16"]]
    assert ask(tmp_path, "SELECT count(DISTINCT module) FROM operands") == [["2"]]
    assert ask("-", "SELECT name FROM modules", given=STEP) == [["jit_step"]]


def test_a_truncated_module_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cut.txt"
    file.write_text(STEP.partition("  %copy.1")[0])
    done = call_text(
        "query", file, "SELECT count(*) AS rows, status FROM instructions JOIN modules USING (module) GROUP BY ALL"
    )
    assert done.returncode == 0
    assert done.stdout.startswith("TRUNCATED after line 23")
    assert "14  partial" in done.stdout
    assert "live_from, live_to of module 0 (jit_step): the text does not hold the whole module" in done.stdout


def test_quoted_lines_are_rows(tmp_path: Path) -> None:
    (tmp_path / "quoted.txt").write_text(STEP[STEP.index("  %dot.1") : STEP.index("  %zero")])
    assert ask(tmp_path / "quoted.txt", "SELECT count(*), any_value(status) FROM instructions, modules") == [["7", "partial"]]


def test_a_module_without_schedule_has_no_live_ranges(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(STEP.replace(", is_scheduled=true", ""))
    done = call_text(
        "query", tmp_path / "m.txt", "SELECT count(live_from) AS live, (SELECT count(*) FROM buffers) FROM instructions"
    )
    assert "the module is not scheduled" in done.stdout


def test_an_unreadable_input_is_named_and_the_others_answer(tmp_path: Path, step: Path) -> None:
    done = call_text("query", tmp_path / "absent.txt", "SELECT 1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    done = call_text("query", tmp_path, "SELECT 1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    (tmp_path / "a.txt").write_text(STEP)
    (tmp_path / "b.txt.gz").write_bytes(b"\x1f\x8b\x08 no gzip")
    done = call_text("query", f"{tmp_path}/*", "SELECT name FROM modules", "--format", "csv")
    assert (done.returncode, done.stdout.splitlines(), done.stderr.count("\n")) == (3, ["name", "jit_step"], 1)


def test_names_that_are_no_text_are_rows(tmp_path: Path) -> None:
    """A byte of a path that is no UTF-8, and characters that SQL could take for its own."""
    file = Path(f"{tmp_path}/\udcff.txt")
    file.write_text(STEP.replace("mlp/neg", "m'; DROP TABLE modules; --"))
    assert ask(file, "SELECT right(input, 10) FROM modules") == [["\\udcff.txt"]]
    assert ask(file, "SELECT op_name FROM instructions WHERE name = 'negate.1'") == [["jit(f)/m'; DROP TABLE modules; --"]]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1; SELECT 2", "a query is one SELECT statement"),
        ("DROP TABLE instructions", "a query is one SELECT statement"),
        ("COPY instructions TO 'rows.csv'", "a query is one SELECT statement"),
        ("SELECT * FROM read_text('step.txt')", "file system operations are disabled"),
        ("SELECT * FROM 'step.csv'", "file system operations are disabled"),
        ("SELECT * FROM read_csv('step.txt')", "file system operations are disabled"),
        ("SELECT * FROM glob('*')", "file system operations are disabled"),
        ("SELECT * FROM arrays", "does not exist"),
        ("SELECT nothing FROM instructions", '"nothing" not found'),
        ("SELECT name FROM instructions WHERE opcode = $opcode", "the query needs a value of $opcode"),
        ("largest-recompute", "named queries are for stores"),
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(step: Path, monkeypatch: pytest.MonkeyPatch, sql: str, message: str) -> None:
    monkeypatch.chdir(step.parent)
    done = call_text("query", "step.txt", sql)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr
    assert [path.name for path in step.parent.iterdir()] == ["step.txt"]


def test_a_wrong_query_is_refused_before_the_input_is_read() -> None:
    assert "nothing" in call_text("query", "no-such-dump.txt", "SELECT nothing FROM instructions").stderr


def test_a_table_that_a_query_does_not_spell_out_is_not_empty(step: Path) -> None:
    """Tables are made if the statement names them: another way to a table fails, and never sees one without rows."""
    assert ask(step, "SELECT count(*) FROM query_table('instr' || 'uctions')") == [["22"]]
    done = call_text("query", step, "SELECT count(*) FROM query_table('instr' || 'uctions'), modules")
    assert (done.returncode, "does not exist" in done.stderr) == (2, True)
