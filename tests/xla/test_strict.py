"""`--strict`: it takes what XLA's parser (jaxlib) takes of a module, and refuses the rest at the place that XLA names."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.request import Request
from hlo_inspect.worker_process import XlaError
from hlo_inspect.xla_worker import Worker

pytest.importorskip("jaxlib")

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
DUMPS = HERE.parents[2] / "shared/dumps"
MAX_BYTES = 1 << 21
NO_MODULES = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")
FRAME = """HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}

f {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] negate(x)
}

g {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] negate(x)
}

ENTRY e {
  p = f32[2,3] parameter(0)
  s = f32[] constant(0)
  i = s32[] constant(0)
  b = pred[] constant(true)
  k = token[] after-all()
  t = (f32[2,3], s32[]) tuple(p, i)
"""
GOOD = "HloModule good\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT q = f32[2] negate(p)\n}\n"
BAD = "HloModule bad\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT q = f32[2] negate(r)\n}\n"
NO_R = "XLA's parser: cannot parse as an instruction name or as a nested instruction: instruction does not exist: r"


@pytest.fixture(scope="module")
def strict() -> Iterator[Inspection]:
    with Inspection(Request("params", strict=True)) as inspection:
        yield inspection


@pytest.fixture(scope="module")
def strict_cost() -> Iterator[Inspection]:
    with Inspection(Request("summary", strict=True)) as inspection:
        yield inspection


@pytest.fixture
def worker() -> Iterator[Worker]:
    running = Worker()
    yield running
    running.close()


def refusal(strict: Inspection, text: str | bytes) -> hlo_inspect.ParseError | None:
    try:
        list(strict.reports(text.encode() if isinstance(text, str) else text))
    except hlo_inspect.ParseError as error:
        return error
    return None


def parses(texts: list[str]) -> list[bool]:
    """Return True for each text that XLA takes; an abort counts as a refusal."""
    program = [sys.executable, str(HERE / "parses.py")]
    done = subprocess.run(program, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=600)
    answers: list[bool] = json.loads(done.stdout)
    return answers


def instructions() -> list[str]:
    return (HERE / "instructions.txt").read_text(encoding="utf-8").splitlines()


def whole_modules() -> list[str]:
    return (HERE / "modules.txt").read_text(encoding="utf-8").split("// ----\n")


def test_each_text_is_taken_or_refused_as_jaxlib_does(strict: Inspection) -> None:
    """Instructions in a module that has a few computations, and whole modules: each with something valid or wrong in it."""
    texts = [*(f"{FRAME}  {line}\n}}\n" for line in instructions()), *whole_modules()]
    theirs = parses(texts)
    assert [text for text, taken in zip(texts, theirs, strict=True) if taken != (refusal(strict, text) is None)] == []
    assert min(theirs.count(True), theirs.count(False)) > 200


# Parts of these files that --strict accepts and jaxlib does not take whole.
TAKEN = {
    "handmade/two_modules.txt": "two modules",
    "handmade/in_log.txt": "text round the modules",
}
TAKEN_OF_DUMPS = {
    "seeds/002_496ac125c3946675.txt": "text round the module",
    "seeds/004_b1cf5d3eba6d7049.txt": "text round the module",
}


@pytest.mark.parametrize(("root", "taken"), [(DATA, TAKEN), (DUMPS, TAKEN_OF_DUMPS)], ids=["data", "dumps"])
def test_dumps(root: Path, taken: dict[str, str]) -> None:
    """Missing dumps are skipped."""
    files = sorted(path for path in root.rglob("*.txt") if not path.name.endswith(NO_MODULES))
    small = [path for path in files if path.stat().st_size <= MAX_BYTES]
    texts = {path.relative_to(root).as_posix(): path.read_bytes().decode(errors="replace") for path in small}
    theirs = dict(zip(texts, parses(list(texts.values())), strict=True))
    ours = {}
    with Inspection(Request("params", strict=True)) as strict:
        for name, text in texts.items():
            try:
                ours[name] = bool(list(strict.reports(text.encode())))
            except hlo_inspect.InputError:
                ours[name] = False
    assert {name for name in texts if theirs[name] and not ours[name]} == set()
    assert {name for name in texts if ours[name] and not theirs[name]} == (set(taken) if texts else set())


def in_entry(line: str) -> str:
    return f"{FRAME}  {line}\n}}\n"


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (BAD.replace("(r", "(»r"), NO_R),
        (in_entry("q = f32[2,3] copy(p), »foo=1"), 'XLA\'s parser: unexpected attribute "foo". Allowed attributes: '),
        (in_entry('q = f32[2,3] copy(p), metadata={op_name="ä中"}, »foo=1'), "XLA's parser: unexpected attribute"),
        (in_entry("q = f32[2,3] reduce-window(p, s), window={size=»a}"), "XLA's parser: expects token type kInt or kDxD"),
        (
            in_entry("q = f32[3,2] transpose(p)").replace("}\n", "»}\n"),
            "XLA's parser: attribute dimensions is expected but not seen",
        ),
        (in_entry("q = f32[2,3] »frobnicate(p)"), "XLA's parser: expects opcode but sees: frobnicate"),
        (BAD.replace("bad", "bad, is_scheduled»=1"), "XLA's parser: expects true or false"),  # the token before
        # XLA's place is after the end of the text: it is shown at the end of the last line
        (GOOD.replace("good", "m, input_output_alias={ {2}: (0, {}) }")[:-1] + "»\n", "XLA's parser: RET_CHECK failure"),
    ],
)
def test_the_place_is_that_of_the_first_message(strict: Inspection, marked: str, message: str) -> None:
    """`»` marks the place in the text that is refused."""
    before = marked.rpartition("»")[0]
    error = refusal(strict, marked.replace("»", ""))
    assert error is not None
    assert (error.path, error.line, error.column) == ("<text>", before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert error.message.startswith(message)
    shown, caret = str(error).splitlines()[-2:]
    assert shown[: len(caret) - 1].endswith(before.rpartition("\n")[2][-10:])


LOG = "I0000 starting\n{\n  step: 1\n}\n[info] done\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        (LOG, LOG),
        (LOG + GOOD, ""),
        (GOOD + LOG + GOOD + "\n\n", GOOD),
        ("caf\u00e9 \u4e2d\n", "rest"),
        ("\r\n\r\n", ""),
    ],
)
def test_places_in_a_log_and_after_other_modules(strict: Inspection, before: str, after: str) -> None:
    for ends in ("\n", "\r\n"):
        error = refusal(strict, (before + BAD + after).replace("\r\n", "\n").replace("\n", ends))
        assert error is not None
        assert (error.line, error.column) == (before.count("\n") + 5, 26)
        assert error.message == NO_R
        assert str(error).endswith("  ROOT q = f32[2] negate(r)\n" + " " * 27 + "^")


def test_bytes_that_are_not_utf_8_are_counted_as_they_are_shown(strict: Inspection) -> None:
    before = '  ROOT q = f32[2] negate(p), metadata={op_name="\\xff"}, '
    raw = GOOD.encode().replace(b"negate(p)", b'negate(p), metadata={op_name="\xff"}, foo=1')
    error = refusal(strict, raw)
    assert error is not None
    assert (error.line, error.column) == (5, len(before) + 1)


def test_a_damaged_module_inside_a_log_is_refused_where_xla_refuses_it_alone(strict: Inspection, worker: Worker) -> None:
    checked = sum(damaged_place_agrees(strict, worker, random.Random(seed)) for seed in range(60))  # noqa: S311 - no secret
    assert checked > 40


def damaged_place_agrees(strict: Inspection, worker: Worker, chance: random.Random) -> bool:
    """Return True if XLA refuses a dump with a character too many; assert that the place is XLA's own."""
    names = ("cpu/adamw_step.after.txt", "gpu/collectives.after.txt", "tpu/scan_forward.after.txt", "cpu/constants.before.txt")
    text = (DATA / chance.choice(names)).read_text(encoding="utf-8")
    spots = [match.start() for match in re.finditer(r"(?<=[\w\]}),])[,(={]", text) if text.count("\n", 0, match.start()) > 3]
    spot = chance.choice(spots)
    damaged = text[:spot] + chance.choice("@#?") + text[spot:]
    try:
        worker.ask("check", damaged.encode())
    except XlaError as error:
        place = re.search(r"was parsing (\d+):(\d+)", error.message)
    else:
        return False  # it is inside of a string
    assert place is not None
    before = "".join(chance.choice((LOG, GOOD, "\n", "x = 1\n")) for _ in range(chance.randrange(5)))
    ours = refusal(strict, before + damaged + LOG)
    assert ours is not None
    line, start = int(place[1]), damaged.splitlines()[int(place[1]) - 1].encode()[: int(place[2]) - 1].decode(errors="ignore")
    assert (ours.line, ours.column) == (before.count("\n") + line, len(start) + 1)
    return True


def test_compressed_files_and_their_names(strict: Inspection, tmp_path: Path) -> None:
    path = tmp_path / "dump.txt.gz"
    path.write_bytes(gzip.compress((GOOD + BAD).encode()))
    with pytest.raises(hlo_inspect.ParseError) as caught:
        list(strict.reports(path))
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 11, 26)


def test_the_modules_before_the_fault_are_reported() -> None:
    reports = hlo_inspect.inspect_all(io.StringIO(GOOD + GOOD.replace("good", "next") + BAD), "params", strict=True)
    assert [next(reports).facts["module.name"], next(reports).facts["module.name"]] == ["good", "next"]
    with pytest.raises(hlo_inspect.ParseError, match="instruction does not exist: r"):
        next(reports)


def test_a_wrong_result_shape_is_accepted(strict: Inspection) -> None:
    """XLA's parser does not verify."""
    assert refusal(strict, in_entry("q = f32[7,7] negate(p)")) is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{GOOD}  ROOT %x = f32[2]{{0}} add(%a, %b)\n", (7, 3)),
        (f"{LOG}  x = (f32[2], f32[3]) tuple(a, b)\n{GOOD}", (6, 3)),
        (f"{GOOD}\nbody {{\n  x = u\n}}\n\n  y = f32[] negate(x)\n}}\n", (12, 3)),
    ],
)
def test_an_instruction_outside_of_any_computation(strict: Inspection, text: str, place: tuple[int, int]) -> None:
    error = refusal(strict, text)
    assert error is not None
    assert (error.line, error.column) == place
    assert error.message == "this instruction is outside any computation; --strict checks whole modules only"


@pytest.mark.parametrize("text", ["", "no HLO\n", "a = f32[2] add(f32[2] x, f32[2] y)\n"])
def test_an_input_without_a_module(strict: Inspection, text: str) -> None:
    """XLA's parser takes a single instruction for a module; here it is none."""
    with pytest.raises(hlo_inspect.InputError, match="holds no HLO module"):
        list(strict.reports(text.encode()))


class TestShapesThatAreLeftOut:
    TEXT = "step 7\n" + GOOD.replace("q = f32[2] negate", "q = negate")

    def test_xla_infers_them(self) -> None:
        report = hlo_inspect.inspect(self.TEXT, ("summary", "cost"), strict=True)
        assert report.facts["outputs.bytes"] == 8
        assert report.facts["cost.flops"] == 2
        assert report.facts["module.unparsed_lines"] == 0
        assert (report.input.first_line, report.input.lines) == (2, 6)
        assert [note for note in report.notes if "line numbers refer to that print" in note] != []

    def test_without_strict_they_are_unknown(self) -> None:
        report = hlo_inspect.inspect(self.TEXT, ("summary", "cost"))
        assert report.facts["outputs.bytes"] is None

    def test_a_text_that_has_them_is_read_itself(self) -> None:
        report = hlo_inspect.inspect(GOOD, "params", strict=True)
        assert not any("print" in note for note in report.notes)

    @pytest.mark.parametrize("path", sorted((DATA / "cpu").iterdir()), ids=lambda path: path.name)
    def test_the_facts_are_those_of_the_text_with_all_shapes(self, strict_cost: Inspection, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        shape = re.compile(r"( = )[a-z0-9]+\[[^\]]*\](?:\{[^}]*\})? (?=(?:add|and|multiply|tanh)\()")
        without, count = shape.subn(r"\1", text, count=1)
        (report,) = strict_cost.reports(without.encode())
        assert report.facts == hlo_inspect.inspect(text, "summary").facts
        assert count == sum("line numbers refer to that print" in note for note in report.notes)

    def test_nothing_is_lost(self, worker: Worker) -> None:
        values = ", ".join(map(str, range(40)))
        text = (
            'HloModule m, frontend_attributes={a="b"}\n\nENTRY e {\n'
            f'  c = f32[40] constant({{{values}}}), metadata={{op_name="x/y" source_file="a.py" source_line=7}}\n'
            '  ROOT q = negate(c), backend_config={"k":"v"}, control-predecessors={c}\n}\n'
        )
        printed = worker.ask("check", text.encode())
        for part in ('a="b"', "38, 39", 'op_name="x/y"', "a.py", "7", '{"k":"v"}', "control-predecessors={%c}"):
            assert part in printed


ABORTING = [
    ("q = f32[4,3] all-gather(p), dimensions={0}, replica_groups=mesh['a'=2,'b'=2] {'c'}", "axis 'c' is not a valid axis"),
    ("q = f32[2,3] tuple(p)", "SIG"),
    ("q = f32[2,3] triangular-solve(p, p), transpose_a=A", "SIG"),
]


class TestAborts:
    """Texts that crash the process of jaxlib."""

    @pytest.mark.parametrize(("line", "reason"), ABORTING)
    def test_one_message_names_the_module(self, strict: Inspection, line: str, reason: str) -> None:
        error = refusal(strict, GOOD + in_entry(line))
        assert error is not None
        assert (error.line, error.column) == (7, 1)
        assert error.message.startswith("XLA's parser crashed on this module (SIG")
        assert reason in error.message
        assert "Check failure stack trace" not in error.message
        assert refusal(strict, GOOD) is None

    def test_the_other_inputs_are_read_and_nothing_else_is_printed(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "bad.txt").write_text(in_entry(ABORTING[0][0]), encoding="utf-8")
        (tmp_path / "good.txt").write_text(GOOD, encoding="utf-8")
        assert run(["params", str(tmp_path / "bad.txt"), str(tmp_path / "good.txt"), "--strict"]) == 3
        out, err = capfd.readouterr()
        assert "good" in out
        assert len(err.splitlines()) == 3
        assert err.startswith(f"hlo-inspect: {tmp_path / 'bad.txt'}:1:1: XLA's parser crashed on this module (SIGABRT")


def test_one_process_serves_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []
    start = Worker.__init__

    def counted(self: Worker) -> None:
        started.append(self)
        start(self)

    monkeypatch.setattr(Worker, "__init__", counted)
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(GOOD * 3, encoding="utf-8")
    assert run(["params", *map(str, sorted(tmp_path.iterdir())), "--strict", "-q"]) == 0
    assert len(started) == 1


def test_the_help_says_that_nothing_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "options"]) == 0
    assert "That parser accepts wrong result shapes" in " ".join(capsys.readouterr().out.split())
