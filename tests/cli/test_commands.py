"""The command line from outside: exit statuses, streams, and what each command prints."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path

import pytest

from hlo_inspect.checks.needed_passes import passes_for
from hlo_inspect.passes import ALPA, PASSES, WORKLOAD
from hlo_inspect.report.rule_page import HEADINGS
from tests.calling import call_text
from tests.checks.sample import parse_policy

DATA = Path(__file__).parents[1] / "data"
COLLECTIVES = DATA / "cpu" / "collectives.after.txt"
ADAMW = DATA / "cpu" / "adamw_step.after.txt"
EXPECTED = json.loads((DATA / "expected.json").read_text())["dumps"]
COMMAND = [sys.executable, "-m", "hlo_inspect"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs the tool in an empty directory, off a terminal."""
    return partial(call_text, folder=tmp_path)


@pytest.mark.parametrize("command", ["summary", "params", "parameters", "fusions", "collectives", "cost"])
def test_each_command_answers(run: Run, command: str) -> None:
    result = run(command, COLLECTIVES)
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout


def test_json_has_the_facts_that_xla_gives(run: Run) -> None:
    report = json.loads(run("summary", COLLECTIVES, "--format", "json").stdout)
    expected = EXPECTED["cpu/collectives.after.txt"]["facts"]
    for name in ("module.name", "module.instructions", "module.computations", "params.bytes", "outputs.bytes"):
        assert report["facts"][name] == expected[name]
    assert report["command"] == "summary"
    assert report["input"]["first_line"] == 1


def test_a_profile_gives_times(run: Run) -> None:
    report = json.loads(run("cost", COLLECTIVES, "--profile", "h100-sxm", "--format", "json").stdout)
    assert report["profile"] == "h100-sxm"
    moved = 22076 - 6 * 8  # jaxlib 0.10 counts 8 bytes for each element of a tuple: pointers, which nothing moves
    assert report["facts"]["time.memory_s"] == moved / 3352e9


def test_several_inputs_are_several_reports(run: Run) -> None:
    report = json.loads(run("params", COLLECTIVES, DATA / "gpu" / "collectives.after.txt", "--format", "json").stdout)
    assert [Path(answer["input"]["path"]).parent.name for answer in report["reports"]] == ["cpu", "gpu"]


def test_standard_input(run: Run) -> None:
    from_pipe = json.loads(run("collectives", "-", "--format", "json", given=COLLECTIVES.read_text()).stdout)
    from_file = json.loads(run("collectives", COLLECTIVES, "--format", "json").stdout)
    assert from_pipe["facts"] == from_file["facts"]
    assert from_pipe["input"]["path"] == "<stdin>"


def test_csv_of_the_summary_is_facts(run: Run) -> None:
    lines = run("summary", COLLECTIVES, "--format", "csv").stdout.splitlines()
    assert lines[0] == "fact,value"
    assert f"module.instructions,{EXPECTED['cpu/collectives.after.txt']['facts']['module.instructions']}" in lines


def test_output_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    result = run("collectives", COLLECTIVES, "--format", "markdown", "-o", "report.md")
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == run(
        "collectives", COLLECTIVES, "--format", "markdown"
    ).stdout


def test_a_narrow_encoding_gets_escapes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = subprocess.run(
        [*COMMAND, "summary", str(COLLECTIVES)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert result.returncode == 0
    assert result.stdout.isascii()


@pytest.mark.parametrize("name", ["HI506", "replicated-optimizer-state"])
def test_the_page_of_a_rule(run: Run, name: str) -> None:
    lines = run("rule", name).stdout.splitlines()
    assert lines[0] == "HI506 replicated-optimizer-state (info)"
    what, *others = HEADINGS
    assert [line for line in lines[1:] if line and line[0] != " "][1:] == [what, "Threshold", *others]
    report = json.loads(run("rule", name, "--format", "json").stdout)
    assert report["facts"]["rule.code"] == "HI506"
    assert "ZeRO" in report["facts"]["rule.why_it_matters"]
    page = run("rule", name, "--format", "markdown").stdout
    assert "**Why it matters**\n" in page
    assert "```\nHloModule" in page


def test_the_rules_in_a_table(run: Run) -> None:
    rows = {row["code"]: row for row in csv.DictReader(StringIO(run("rules", "--format", "csv").stdout))}
    assert rows["HI007"] == {
        "code": "HI007",
        "name": "duplicate-name",
        "severity": "error",
        "summary": "A name that is defined twice.",
        "threshold": "",
    }
    assert list(rows) == sorted(rows)
    assert len(json.loads(run("rules", "--format", "json").stdout)["tables"][0]["rows"]) == len(rows)
    page = run("rules").stdout
    assert all(code in page for code in rows)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("checks: {module.num_partitions: 8}", ["module_facts"]),
        ("checks: {module.unparsed_lines: 0}", ["summary"]),
        ("checks: {params.count: 1}", ["params"]),
        ("checks: {opcode.add: 1, optimizer.name: known}", ["summary", "optimizer"]),
        (
            "checks: {params.count: 1}\nignore: [{rule: HI502, reason: x}, {rule: HI001, reason: x}]",
            [*PASSES.names, ALPA, WORKLOAD],
        ),
        ("checks: {params.count: 1}\nfail-on: error", [*PASSES.names, ALPA, WORKLOAD]),
        ("fail-on: error", [*PASSES.names, ALPA, WORKLOAD]),
    ],
)
def test_a_check_runs_the_passes_that_it_needs(text: str, passes: list[str]) -> None:
    assert passes_for(parse_policy(text, "p.yaml")) == passes


class TestACutModule:
    """A text that ends inside of a module is checked only if the user allows a part."""

    ALLOWED = ("--assert", "params.count == 1")

    @pytest.fixture
    def cut(self, tmp_path: Path) -> str:
        text = ADAMW.read_text()
        (tmp_path / "cut.txt").write_text(
            text[: text.index("ENTRY")] + "ENTRY %main (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n"
        )
        return "cut.txt"

    def test_is_not_checked(self, run: Run, cut: str) -> None:
        result = run("check", cut, *self.ALLOWED)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr.count("\n") == 1
        assert "jit_step is truncated inside main" in result.stderr
        assert "--allow-partial" in result.stderr

    def test_is_checked_where_a_part_is_allowed(self, run: Run, cut: str) -> None:
        result = run("check", cut, "--assert", "module.computations >= 1", "--allow-partial", "--fail-on", "error")
        assert (result.returncode, result.stderr) == (0, "")
        assert "HI002" in result.stdout

    def test_leaves_the_other_inputs_checked(self, run: Run, cut: str) -> None:
        result = run("check", cut, ADAMW, "--assert", "module.num_partitions == 8")
        assert result.returncode == 3
        assert result.stdout.splitlines()[-1] == "FAILED 1 of 2 modules (1 not checked), 0 of 1 check"
        failed = run("check", cut, ADAMW, "--assert", "module.num_partitions == 9")
        assert failed.returncode == 3  # the highest status
        assert failed.stdout.splitlines()[-1] == "FAILED 2 of 2 modules (1 not checked), 1 of 1 check"


def test_a_check_of_findings_has_no_notes_on_costs(run: Run) -> None:
    assert "no unit" not in run("check", COLLECTIVES, "--fail-on", "error").stdout


def test_the_last_line_of_a_check_is_its_verdict(run: Run) -> None:
    assertions = ("--assert", "module.num_partitions == 8", "--assert", "collectives.all-to-all.count == 0")
    result = run("check", ADAMW, COLLECTIVES, *assertions)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "FAILED 1 of 2 modules, 1 of 4 checks"
    page = run("check", ADAMW, *assertions, "--format", "markdown", "-q").stdout
    assert page.splitlines()[-1] == "**PASSED 1 module, 2 checks**"


class TestManyModules:
    """Directories, patterns and several inputs: `list`, and what `summary` begins with."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "texts"
        folder.mkdir()
        for name, source in (("a.txt", ADAMW), ("b.hlo", COLLECTIVES), ("c.log", ADAMW), ("d.txt", COLLECTIVES)):
            (folder / name).write_bytes(source.read_bytes())
        (folder / "e.txt.gz").write_bytes(gzip.compress(COLLECTIVES.read_bytes()))
        return folder

    def test_a_row_for_each(self, run: Run, folder: Path) -> None:
        result = run("list", folder, "--format", "json")
        assert (result.returncode, result.stderr) == (0, "")
        report = json.loads(result.stdout)
        assert (report["command"], report["input"]["path"]) == ("list", str(folder))
        (table,) = report["tables"]
        names = [column["name"] for column in table["columns"]]
        assert [names.index(name) for name in ("name", "stage", "lines", "devices", "flops", "collectives", "parameters")]
        assert {"findings", "path"} <= set(names)
        paths = [Path(row[names.index("path")]).name for row in table["rows"]]
        assert paths == ["a.txt", "c.log", "b.hlo", "d.txt", "e.txt.gz"]  # 332 lines, then 3 of the other
        page = run("list", folder).stdout.splitlines()
        assert page[0] == "5 modules"
        assert any(line.startswith("total") for line in page)

    def test_list_quick_leaves_out_flops(self, run: Run, folder: Path) -> None:
        rows = list(csv.DictReader(StringIO(run("list", folder / "a.txt", "--format", "csv").stdout)))
        quick = list(csv.DictReader(StringIO(run("list", folder / "a.txt", "--format", "csv", "--quick").stdout)))
        assert set(rows[0]) - set(quick[0]) == {"flops", "flops_lower_bound"}
        findings = json.loads(run("summary", folder / "a.txt", "--format", "json").stdout)["findings"]
        assert rows[0]["findings"] == str(len(findings))

    def test_a_pattern_in_quotes(self, run: Run, folder: Path) -> None:
        listed = run("list", f"{folder}/[ab].*", folder / "d.txt", "--format", "csv").stdout
        assert [Path(row["path"]).name for row in csv.DictReader(StringIO(listed))] == ["a.txt", "b.hlo", "d.txt"]
        result = run("list", f"{folder}/*.nothing", folder / "d.txt")
        assert result.returncode == 3
        assert result.stderr == f"hlo-inspect: {folder}/*.nothing: no file or directory matches this pattern\n"
        assert "1 module" in result.stdout

    def test_a_text_without_a_module_is_passed_over_and_named(self, run: Run, folder: Path) -> None:
        (folder / "notes.txt").write_text("learning rate 0.1\n")
        result = run("list", folder)
        assert result.returncode == 0
        assert result.stderr == f"hlo-inspect: {folder}/notes.txt: holds no HLO module\n"
        assert result.stdout.startswith("5 modules")
        (folder / "broken.txt.gz").write_bytes(b"\x1f\x8b\x08\x00")
        assert run("list", folder).returncode == 3

    def test_a_directory_of_which_no_file_holds_a_module(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("learning rate 0.1\n")
        result = run("summary", tmp_path)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr == f"hlo-inspect: {tmp_path}: is a directory without a file that holds an HLO module (1 read)\n"

    def test_the_summary_of_more_than_three_ends_with_the_list(self, run: Run, folder: Path) -> None:
        """It is known when all are read, and each page is printed before the next module is."""
        pages = run("summary", folder, "--quick").stdout
        assert pages.startswith("jit_step")
        assert "\nModules\n" in pages[pages.index("\n5 modules\n") :]
        few = run("summary", folder / "a.txt", folder / "b.hlo", folder / "c.log", "--quick").stdout
        assert few.startswith("jit_step")
        reports = json.loads(run("summary", folder, "--quick", "--format", "json").stdout)["reports"]
        assert [report["command"] for report in reports] == ["summary"] * 5

    def test_a_finding_that_reaches_fail_on(self, run: Run, folder: Path) -> None:
        text = "HloModule m\n\nENTRY e {\n  a = f32[262144]{0} parameter(0)\n  ROOT b = f32[262144]{0} negate(a)\n}\n"
        (folder / "f.txt").write_text(text)
        assert run("list", folder / "f.txt", "--fail-on", "warning").returncode == 1
        assert run("list", folder / "a.txt", "--fail-on", "warning").returncode == 0

    def test_a_module_that_is_misspelt(self, run: Run, folder: Path) -> None:
        result = run("summary", folder, "--module", "jit_stepp")
        assert result.returncode == 3
        assert result.stderr.endswith("there are: jit_step; did you mean 'jit_step'?\n")


def test_the_facts_that_can_be_checked(run: Run) -> None:
    names = [row["fact"] for row in csv.DictReader(StringIO(run("check", "--list-facts", "--format", "csv").stdout))]
    assert {"params.bytes", "opcode.<opcode>", "optimizer.name", "cost.flops"} <= set(names)
    listed = run("check", COLLECTIVES, "--list-facts", "--format", "csv").stdout
    rows = {row["fact"]: row for row in csv.DictReader(StringIO(listed))}
    expected = EXPECTED["cpu/collectives.after.txt"]["facts"]
    for name in ("params.bytes", "outputs.bytes", "module.instructions"):
        assert rows[name]["value"] == str(expected[name])
    assert rows["params.bytes"]["meaning"] == next(
        s.meaning for pass_ in PASSES for s in pass_.specs if s.name == "params.bytes"
    )
    assert run("check", "--assert", "params.count == 1").returncode == 2  # no INPUT


def test_a_check_has_the_phases_of_the_other_commands(run: Run) -> None:
    """Whatever passes run: the names leave the phase of this one all-reduce open, the graph of values does not."""
    dump, expected = DATA / "gpu/sgd_unused.after.txt", "collectives.phase.backward.count == 1"
    assert run("check", dump, "--assert", expected).returncode == 0
    assert run("check", dump, "--assert", expected, "--fail-on", "error").returncode == 0
    assert run("check", dump, "--assert", expected, "--assert", "module.instructions > 0").returncode == 0
    listed = run("check", dump, "--list-facts", "--format", "csv").stdout
    rows = {row["fact"]: row["value"] for row in csv.DictReader(StringIO(listed))}
    assert rows["collectives.phase.backward.count"] == "1"


class TestExitStatuses:
    def test_0_and_1_of_a_check(self, run: Run) -> None:
        assert run("check", COLLECTIVES, "--assert", "collectives.all-to-all.count >= 1").returncode == 0
        failed = run("check", COLLECTIVES, "--assert", "collectives.all-to-all.count == 0")
        assert failed.returncode == 1
        assert "all-to-all" in failed.stdout

    def test_1_of_a_finding_that_reaches_fail_on(self, run: Run, tmp_path: Path) -> None:
        undonated = "HloModule m\n\nENTRY e {\n  a = f32[262144]{0} parameter(0)\n  ROOT b = f32[262144]{0} negate(a)\n}\n"
        (tmp_path / "m.txt").write_text(undonated)
        assert run("params", "m.txt").returncode == 0
        assert run("params", "m.txt", "--fail-on", "warning").returncode == 1
        assert run("params", "m.txt", "--fail-on", "error").returncode == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("summary",), "Missing argument"),
            (("summary", "--bogus", "x"), "No such option"),
            (("bogus", "x"), "No such command"),
            (("sumary", "x"), "No such command 'sumary'; did you mean 'summary'?"),
            (("summary", COLLECTIVES, "--top", "many"), "not a valid integer"),
            (("summary", COLLECTIVES, "--module", "["), "not a regular expression"),
            (("collectives", COLLECTIVES, "--table", "fusions"), "no table 'fusions'"),
            (("collectives", COLLECTIVES, "-o", "/nowhere/at/all"), "cannot be written"),
            (("summary", COLLECTIVES, "--profile", "h100"), "h100-sxm"),
            (
                ("collectives", COLLECTIVES, "--mesh", "data=3"),
                "the mesh data=3 has 3 devices, and the module jit_step has 8",
            ),
            (("params", COLLECTIVES, "--mesh", "data=3"), "the mesh data=3 has 3 devices, and the module jit_step has 8"),
            (("collectives", COLLECTIVES, "--mesh", "data=x"), "write it like data=4,model=2"),
            (("collectives", COLLECTIVES, "--mesh", "a=2,a=2"), "'a=2,a=2' is not a mesh"),
            (("profiles", "h100"), "h100-sxm"),
            (("check", COLLECTIVES), "nothing to check"),
            (("check", COLLECTIVES, "--assert", "collectives.all-to-al.count == 0"), "collectives.all-to-all.count"),
            (("check", COLLECTIVES, "--assert", "opcode.aad == 0"), "opcode.add"),
            (("check", COLLECTIVES, "--assert", "params.bytes < 3 ms"), "unit"),
            (("check", COLLECTIVES, "--policy", "missing.yaml"), "missing.yaml"),
            (("check", COLLECTIVES, "--assert", "optimizer.name != adammw"), "did you mean 'adamw'"),
            (("check", COLLECTIVES, "--assert", "module.shapes == perdevice"), "did you mean 'per_device'"),
            (("check", COLLECTIVES, "--assert", "optimizer.name one of {lion, adammw}"), "never 'adammw'"),
            (("check", COLLECTIVES, "--list-facts", "--policy", "missing.yaml"), "--list-facts checks nothing"),
            (("check", "--list-facts", "--fail-if", "zz"), "--list-facts checks nothing"),
            (("workload", "w.txt", "--to", "simai", "--format", "json"), "have no effect"),
            (("workload", "w.txt", "--to", "simai", "--top", "3"), "have no effect"),
            (("params", COLLECTIVES, "--what-if", "nosuch=2x"), "name it with --profile"),
            (("collectives", COLLECTIVES, "--what-if", "peak.bf16=2x"), "name it with --profile"),
            (("rule", "HI999"), "there is no rule 'HI999'"),
            (("rule", "unused-params"), "did you mean 'unused-parameter'"),
        ],
    )
    def test_2_for_wrong_usage(self, run: Run, arguments: tuple[str | Path, ...], message: str) -> None:
        result = run(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
        assert "Traceback" not in result.stderr

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("empty.txt", b"", "it is empty"),
            ("prose.txt", b"no module here\n", "holds no HLO module"),
            ("binary", bytes(range(256)) * 20, "binary file"),
            ("utf16.txt", "HloModule m\n".encode("utf-16"), "UTF-16"),
            ("cut.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01", "cannot be read"),
        ],
    )
    def test_3_for_an_input_without_hlo(self, run: Run, tmp_path: Path, name: str, content: bytes, message: str) -> None:
        (tmp_path / name).write_bytes(content)
        result = run("summary", name)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr.startswith(f"hlo-inspect: {name}: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_3_for_a_missing_file_and_an_empty_directory(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "dumps").mkdir()
        assert run("summary", "missing.txt").returncode == 3
        assert run("summary", "dumps").returncode == 3

    def test_3_with_what_the_other_inputs_say(self, run: Run) -> None:
        result = run("params", "missing.txt", COLLECTIVES)
        assert result.returncode == 3
        assert "Parameters" in result.stdout

    def test_0_for_a_pipe_that_its_reader_closed(self) -> None:
        command = f"'{sys.executable}' -m hlo_inspect collectives '{COLLECTIVES}' -n 0 --format csv; echo $? >&2"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        result = subprocess.run(
            ["bash", "-c", f"({command}) | true"], capture_output=True, text=True, env=environment, check=False
        )
        assert result.stderr == "0\n"

    def test_130_when_interrupted(self, tmp_path: Path) -> None:
        """A named pipe can be opened for writing once the command has opened it for reading, and then waits for its input.

        A shell starts what runs in the background with interrupts ignored, and every child inherits that.
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pipe = tmp_path / "pipe.txt"
        os.mkfifo(pipe)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        with (
            subprocess.Popen([*COMMAND, "summary", str(pipe)], stderr=subprocess.PIPE, env=environment) as process,
            pipe.open("wb"),
        ):
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
        assert (process.returncode, stderr.strip()) == (130, b"hlo-inspect: interrupted")


def test_text_of_a_dump_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    text = 'HloModule m\n\nENTRY e {\n  ROOT a = f32[4]{0} parameter(0), metadata={op_name="[bold]x\x1b[31m[/bold]"}\n}\n'
    (tmp_path / "m.txt").write_text(text)
    output = run("params", "m.txt", "-v").stdout
    assert r"[bold]x\x1b[31m[/bold]" in output
    assert "\x1b" not in output


def test_a_file_is_summarized_without_a_command(run: Run) -> None:
    assert run(COLLECTIVES, "-n", "4").stdout == run("summary", COLLECTIVES, "-n", "4").stdout
    assert run(COLLECTIVES.parent).stdout == run("summary", COLLECTIVES.parent).stdout


def test_a_command_wins_over_a_file_of_its_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(COLLECTIVES.read_text())
    assert run("rules").stdout.startswith("rules\n")
    (tmp_path / "sumary").mkdir()
    assert "is a directory without XLA dumps" in run("sumary").stderr


def imported_by(*arguments: str) -> set[str]:
    """Return the modules that a command has imported at its end."""
    code = (
        "import sys; from hlo_inspect.cli.main import run; "
        f"run({list(arguments)}); sys.stdout.flush(); print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return set(result.stderr.split())


def test_help_imports_nothing_heavy() -> None:
    imported = imported_by("--help")
    assert imported & {"rich", "yaml", "json", "pathlib", "dataclasses"} == set()
    own = {name for name in imported if name.startswith("hlo_inspect.")}
    assert own == {
        "hlo_inspect.cli",
        "hlo_inspect.cli.command_line",
        "hlo_inspect.cli.commands",
        "hlo_inspect.cli.main",
        "hlo_inspect.cli.streams",
        "hlo_inspect.passes",
        "hlo_inspect.registry",
        "hlo_inspect.version",
    }


NOT_FOR_COLLECTIVES = {
    "libraries": "rich yaml gzip bz2 lzma fractions decimal multiprocessing statistics numpy",
    "analyses that other commands ask for": (
        "analysis.fusions analysis.hardware analysis.memory analysis.pass_history analysis.phases.graph_phases "
        "analysis.program analysis.time graph.canonical graph.neighbourhood optimizer"
    ),
    "what only some options or inputs need": (
        "checks compare configs inspection.jobs inspection.saved_reports report.formats.csv report.formats.html "
        "report.formats.json report.formats.markdown worker_process workloads xla_worker"
    ),
}
"""Modules and packages, those of the project without its name."""
MOST_MODULES = 150
"""Each module of the project adds some 0.3 ms to the start of a command, so that these take 45 ms."""


def test_a_small_command_imports_what_it_uses() -> None:
    imported = imported_by("collectives", str(Path(__file__).parents[1] / "data/cpu/scan_fsdp.after.txt"))
    own = {name.removeprefix("hlo_inspect.") for name in imported if name.startswith("hlo_inspect.")}
    for what, names in NOT_FOR_COLLECTIVES.items():
        wrong = {name for name in imported | own for absent in names.split() if f"{name}.".startswith(f"{absent}.")}
        assert wrong == set(), what
    packages = {"analysis.cost": {"wants"}}
    for package, parts in packages.items():
        assert {name.removeprefix(f"{package}.") for name in own if name.startswith(f"{package}.")} <= parts
    assert len(own) < MOST_MODULES


def test_the_summary_has_costs_and_optimizer_unless_it_is_quick(run: Run) -> None:
    whole = json.loads(run("summary", ADAMW, "--format", "json").stdout)
    quick = json.loads(run("summary", ADAMW, "--format", "json", "--quick").stdout)
    assert (whole["facts"]["optimizer.name"], whole["facts"]["optimizer.update_count"]) == ("adamw", 2)
    assert {"optimizer.name", "cost.flops"} <= whole["facts"].keys() - quick["facts"].keys()
    names = [[table["name"] for table in report["tables"]] for report in (whole, quick)]
    assert [name for name in names[0] if name not in names[1]] == ["cost_by_phase", "optimizer_update"]
    assert run("fusions", ADAMW, "--quick").returncode == 2


def test_the_parameters_have_their_roles_unless_it_is_quick(run: Run) -> None:
    def roles(*options: str) -> set[str | None]:
        table = json.loads(run("params", ADAMW, "--format", "json", *options).stdout)["tables"][0]
        column = [entry["name"] for entry in table["columns"]].index("role")
        return {row[column] for row in table["rows"]}

    assert roles() == {"weight", "first_moment", "second_moment", "counter", None}
    assert roles("--quick") == {None}


def test_rows_and_columns_as_asked(run: Run) -> None:
    """The all-reduces of the dump: a sum over rows, and a maximum over columns."""
    result = run("collectives", COLLECTIVES, "--filter", "kind = all-reduce", "--columns", "line,reduction", "--sort", "-line")
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines if line.strip().startswith(("172", "173"))] == [["172", "add"], ["173", "max"]]
    rows = run("collectives", COLLECTIVES, "--filter", "kind = all-reduce", "--columns", "line,kind", "--format", "csv")
    assert sorted(rows.stdout.splitlines()) == ["172,all-reduce", "173,all-reduce", "184,all-reduce", "line,kind"]
    assert "rows filtered out" in rows.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--filter", "knd = 1"), "no column 'knd' in the table 'collectives'; did you mean 'kind'?"),
        (("--filter", "kind"), "'kind' is not a comparison"),
        (("--sort", "operandbytes"), "did you mean 'operand_bytes'"),
        (("--columns", "kind,grp_size"), "did you mean 'group_size'"),
        (("--table", "loop", "--sort", "line"), "no table 'loop' in this report"),
    ],
)
def test_a_column_that_does_not_exist_is_wrong_usage(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("collectives", COLLECTIVES, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_the_name_of_an_instruction_follows_the_inputs(tmp_path: Path) -> None:
    """It is the last argument, if it is no file and looks like a name."""
    from hlo_inspect.cli.report_stream import split_instruction_name

    (tmp_path / "exists").write_text("", encoding="utf-8")
    assert split_instruction_name(["a.txt", "fusion.3"]) == (("a.txt",), "fusion.3")
    assert split_instruction_name(["a.txt", "%fusion.3{0,1}"]) == (("a.txt",), "%fusion.3{0,1}")
    assert split_instruction_name(["a.txt", str(tmp_path / "exists")])[1] is None
    assert split_instruction_name(["fusion.3"]) == (("fusion.3",), None)
    assert split_instruction_name(["a", "-"]) == (("a", "-"), None)
