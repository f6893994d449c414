"""`watch` and `pytest --hlo-watch`, with a stand-in for JAX's registration; tests/watching/newest.py has JAX's own.

JAX calls each registered function with the bytes of an HloModuleProto, once for each compile, in the thread that compiles. An
exception of the function ends the compile.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.watching.watch import Watch
from tests.fleet.stores import raw_rows, text_of

pytest_plugins = ["pytester"]
jaxlib = pytest.importorskip("jaxlib._hlo")


class Stage(Enum):
    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


class FakeJax:
    """The registration of `jax.extend.xla`, and `compile`, which calls what is registered."""

    PipelineStage = Stage

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[bytes], bytes | None]] = {}

    def register_hlo_module_transformation(
        self, callback: Callable[[bytes], bytes | None], *, name: str, stage: Stage, platforms: object = None
    ) -> None:
        assert stage is Stage.POST_SCHEDULER
        assert platforms is None
        self.callbacks[name] = callback

    def clear_hlo_module_transformation(self, name: str, stage: Stage) -> bool:
        assert stage is Stage.POST_SCHEDULER
        return self.callbacks.pop(name, None) is not None

    def compile(self, proto: bytes) -> list[bytes | None]:
        """Call what is registered, and return what it returns: None leaves the module as it is."""
        return [callback(proto) for callback in self.callbacks.values()]


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJax]:
    fake = FakeJax()
    package = ModuleType("jax")
    package.__spec__ = ModuleSpec("jax", None)
    package.__version__ = "0.12.0"  # type: ignore[attr-defined]
    for name, module in (("jax", package), ("jax.extend", ModuleType("jax.extend")), ("jax.extend.xla", fake)):
        monkeypatch.setitem(sys.modules, name, module)
    yield fake
    assert fake.callbacks == {}


def proto(name: str, size: int = 4) -> bytes:
    return bytes(jaxlib.hlo_module_from_text(text_of(name, size)).as_serialized_hlo_module_proto())


def watched(jax: FakeJax, *protos: bytes, **settings: Any) -> tuple[Watch, list[str]]:
    """Compile these modules under a watch; return it with its lines."""
    stream = io.StringIO()
    with hlo_inspect.watch(*settings.pop("checks", ()), stream=stream, **settings) as watch:
        for module in protos:
            assert jax.compile(module) == [None]
    return watch, stream.getvalue().splitlines()


def test_a_line_for_each_module_and_a_table_of_compiles(jax: FakeJax) -> None:
    """Parameters of 4 and 2 floats and a result of 4 need 40 bytes; the second of them is not used (HI102)."""
    watch, lines = watched(jax, *(proto("jit_step", size) for size in (4, 8, 4)), proto("jit_loss"))
    line = "hlo-inspect: 1 jit_step: 0 collectives, 0 B sent, needs 40 B, 1 finding: HI102 unused-parameter"
    assert lines[0] == line
    assert [text.partition(":")[2].partition(":")[0] for text in lines[:4]] == [
        " 1 jit_step", " 2 jit_step", " 3 jit_step", " 4 jit_loss"
    ]  # fmt: skip
    assert any(text.startswith("4 compiles of 2 functions, 1 avoidable") for text in lines)
    (row,) = [text.split() for text in lines if text.startswith("jit_step ")]
    assert row[:5] == ["jit_step", "3", "0", "2", "1"]
    assert [report.facts["params.bytes"] for report in watch.reports if "params.bytes" in report.facts] == []
    assert [report.facts["memory.needed_bytes"] for report in watch.reports] == [40, 72, 40, 40]


def test_facts_are_those_of_the_text(jax: FakeJax) -> None:
    watch, _ = watched(jax, proto("jit_step", 6))
    expected = hlo_inspect.inspect(text_of("jit_step", 6), ("collectives", "memory")).facts
    assert {name: watch.reports[0].facts[name] for name in expected} == dict(expected)


def test_checks_and_policies(jax: FakeJax, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("checks:\n  params.unused_count: 0\nfail-on: error\n")
    checks = ("memory.needed_bytes <= 50 B",)
    watch, lines = watched(jax, proto("jit_step", 4), proto("jit_step", 8), checks=checks, policy=tmp_path / "policy.yaml")
    failed = [line for line in lines if "FAILED" in line]
    assert failed == [
        "hlo-inspect: 1 jit_step: FAILED params.unused_count is 1, expected == 0",
        "hlo-inspect: 2 jit_step: FAILED memory.needed_bytes is 72 B, expected <= 50 B",
        "hlo-inspect: 2 jit_step: FAILED params.unused_count is 1, expected == 0",
    ]
    assert watch.failed == 2


def test_a_module_that_cannot_be_read_is_one_warning(jax: FakeJax) -> None:
    broken = b"\n\x08jit_step" + b"\x1a\x03abc"  # field 3, a computation, is no message
    watch, lines = watched(jax, broken, b"", proto("jit_loss"))
    assert [line.partition(": ")[0] for line in watch.warnings] == ["1 jit_step", "2 (without a name)"]
    assert sum(line.startswith("hlo-inspect: warning: ") for line in lines) == 2
    assert len(watch.reports) == 1


def test_a_closed_stream_and_names_of_control_characters_end_nothing(jax: FakeJax) -> None:
    _, lines = watched(jax, b"\n\x05\x1b[31m" + b"\x1a\x03abc")
    assert lines[0].startswith("hlo-inspect: warning: 1 \\x1b[31m: ")
    stream = io.StringIO()
    with hlo_inspect.watch(stream=stream) as watch:
        stream.close()
        jax.compile(proto("jit_step"))
        jax.compile(proto("jit_loss"))
    assert len(watch.reports) == 2


def test_a_process_that_dies_costs_its_module(jax: FakeJax, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with hlo_inspect.watch(stream=stream) as watch:
        jax.compile(proto("jit_first"))
        while not watch.reports:
            time.sleep(0.01)
        assert watch._worker is not None
        watch._worker.kill()
        watch._worker._process.wait()
        jax.compile(proto("jit_second"))
        jax.compile(proto("jit_third"))
    assert [report.module_name for report in watch.reports] == ["jit_first", "jit_third"]
    assert [line.partition(":")[0] for line in watch.warnings] == ["2 jit_second"]


def test_own_code_gets_each_report_and_may_fail(jax: FakeJax) -> None:
    names: list[str] = []

    def on_module(report: hlo_inspect.Report) -> None:
        names.append(report.module_name)
        assert threading.current_thread().name == "hlo-inspect"
        raise ValueError("own code")

    watch, _ = watched(jax, proto("jit_step"), proto("jit_loss"), on_module=on_module)
    assert names == ["jit_step", "jit_loss"]
    assert watch.warnings == ["1 jit_step: own code", "2 jit_loss: own code"]


def test_reports_have_the_tables_of_more_passes(jax: FakeJax) -> None:
    watch, _ = watched(jax, proto("jit_step"), passes="params")
    assert [row["bytes"] for row in watch.reports[0].table("params").records()] == [16, 8]


def test_a_plugin_without_callbacks_is_a_sentence(jax: FakeJax, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("UNIMPLEMENTED")

    monkeypatch.setattr(jax, "register_hlo_module_transformation", refuse)
    with pytest.raises(hlo_inspect.UsageError, match=r"UNIMPLEMENTED; set XLA_FLAGS"):
        hlo_inspect.watch()


def test_functions_are_chosen_by_name(jax: FakeJax) -> None:
    watch, lines = watched(jax, proto("jit_step"), proto("jit_loss"), module="loss$")
    assert [report.module_name for report in watch.reports] == ["jit_loss"]
    assert any(line.startswith("1 compile of 1 function, 0 avoidable") for line in lines)
    assert watched(jax, proto("jit_step"), module="nothing")[1] == []


def test_facts_of_all_modules_are_in_the_store(jax: FakeJax, tmp_path: Path) -> None:
    watched(jax, proto("jit_step", 4), proto("jit_step", 8), store=str(tmp_path / "store"))
    assert sorted(row["params.bytes"] for row in raw_rows(tmp_path / "store")) == [24, 40]


def test_xla_waits_for_a_queue_only(jax: FakeJax) -> None:
    """A module of 64 MB is queued in a tenth of the 5 ms that a compile may take longer, though nobody reads it yet."""
    started = threading.Event()
    with hlo_inspect.watch(stream=io.StringIO(), on_module=lambda _: started.wait(10)):
        jax.compile(proto("jit_step"))
        large = bytes(1 << 26)
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            jax.compile(large)
            times.append(time.perf_counter() - begin)
        started.set()
    assert min(times) < 0.0005


def test_nothing_is_inspected_after_the_end(jax: FakeJax) -> None:
    watch, _ = watched(jax, proto("jit_step"))
    watch.take(proto("jit_step"))
    watch.close()
    assert len(watch.reports) == 1


@pytest.mark.parametrize(
    ("checks", "options", "message"),
    [
        (("params.cuont == 1",), {}, "params.count"),
        ((), {"module": "("}, "is not a regular expression"),
        ((), {"mehs": "data=2"}, "there is no option 'mehs'"),
        ((), {"depth": 3}, "takes no option 'depth'"),
        ((), {"policy": "no-such-file.yaml"}, "no-such-file.yaml"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_registered(
    jax: FakeJax, checks: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(hlo_inspect.UsageError, match=message.replace("(", "\\(")):
        hlo_inspect.watch(*checks, **options)


def test_an_older_jax_is_a_sentence_with_the_flag(jax: FakeJax, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax.extend.xla", None)
    sys.modules["jax"].__version__ = "0.10.2"  # type: ignore[attr-defined]
    with pytest.raises(hlo_inspect.UsageError, match=r"jax 0\.10\.2 does not .* 0\.11 does: set XLA_FLAGS=--xla_dump_to=DIR"):
        hlo_inspect.watch()


def test_without_jax_an_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlo_inspect.api_watch.find_spec", lambda name: None)
    with pytest.raises(hlo_inspect.MissingExtraError, match="watch needs jax"):
        hlo_inspect.watch()


PROGRAM = """
import sys
from tests.watching.test_watch import proto

def test_step():
    (callback,) = sys.modules["jax.extend.xla"].callbacks.values()
    assert callback(proto("jit_step")) is None
"""


def test_a_run_of_tests_shows_its_modules_and_fails_by_policy(jax: FakeJax, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PROGRAM)
    done = pytester.runpytest_inprocess("--hlo-watch", "-p", "no:cacheprovider")
    done.stdout.fnmatch_lines(
        ["*modules that JAX compiled*", "hlo-inspect: 1 jit_step: 0 collectives*", "1 compile of 1 function*"]
    )
    assert done.ret == pytest.ExitCode.OK
    pytester.makefile(".yaml", policy="checks:\n  params.unused_count: 0\n")
    pytester.makepyprojecttoml('[tool.hlo-inspect.check]\npolicies = ["policy.yaml"]\n')
    done = pytester.runpytest_inprocess("--hlo-watch", "-p", "no:cacheprovider")
    done.stdout.fnmatch_lines(["*FAILED params.unused_count is 1, expected == 0"])
    assert done.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_of_tests_with_an_older_jax_is_refused(
    jax: FakeJax, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax.extend.xla", None)
    done = pytester.runpytest_inprocess("--hlo-watch")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "--xla_dump_to=DIR" in "".join(done.errlines)
