"""Model Explorer's own package loads the extension, converts dumps by it, and runs its provider of node data."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect import inspect
from hlo_inspect.analysis.hardware import profile_names

DATA = Path(__file__).parents[1] / "data"
SCAN = DATA / "memory" / "gpu_scan.hlo"
DOT = """HloModule NAME, is_scheduled=true

ENTRY %main (a: f32[8,16], b: f32[16,4]) -> f32[8,4] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[16,4]{1,0} parameter(1)
  ROOT %c = f32[8,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/mlp/dot"}
}
"""
UNKNOWN_LOOP = """HloModule jit_f

%body (s: (s32[], s32[], f32[4])) -> (s32[], s32[], f32[4]) {
  %s = (s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=1
  %x = f32[4] get-tuple-element(%s), index=2
  %y = f32[4] negate(%x)
  ROOT %t = (s32[], s32[], f32[4]) tuple(%i, %n, %y)
}

%below (s: (s32[], s32[], f32[4])) -> pred[] {
  %s = (s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=1
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (s: (s32[], s32[], f32[4])) -> (s32[], s32[], f32[4]) {
  %s = (s32[], s32[], f32[4]) parameter(0)
  ROOT %loop = (s32[], s32[], f32[4]) while(%s), condition=%below, body=%body
}
"""
pytestmark = pytest.mark.extras("model_explorer")


@cache
def manager() -> Any:
    """Return Model Explorer's manager of extensions, as the option `--extensions=hlo_inspect_explorer` makes it."""
    from model_explorer.extension_manager import ExtensionManager

    manager = ExtensionManager(["hlo_inspect_explorer"])
    manager.load_extensions()
    return manager


def convert(path: Path) -> list[dict[str, Any]]:
    """Return the collections of graphs of a file, as the server sends them."""
    command = {"cmdId": "convert", "extensionId": "hlo_inspect", "modelPath": str(path), "settings": {}}
    answer = manager().run_cmd({**command, "deleteAfterConversion": False})
    collections: list[dict[str, Any]] = json.loads(json.dumps(answer))["graphCollections"]
    return collections


def run(path: Path, graph: str, profile: str = "") -> dict[str, Any]:
    """Return the answer of the provider for a graph."""
    command = {"cmdId": "run", "extensionId": "hlo_inspect_figures", "modelPath": str(path), "graphId": graph}
    answer: dict[str, Any] = json.loads(json.dumps(manager().run_cmd({**command, "configValues": {"profile": profile}})))
    return answer


def attributes_of(node: dict[str, Any]) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in node["attrs"]}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def file(text: str) -> Path:
        path = tmp_path / "dump.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return file


def test_the_extensions_are_registered() -> None:
    extensions = {extension["id"]: extension for extension in manager().get_extensions_metadata()}
    assert extensions["hlo_inspect"]["type"] == "adapter"
    assert {"txt", "hlo", "gz"} <= {*extensions["hlo_inspect"]["fileExts"]}
    assert extensions["hlo_inspect_figures"]["type"] == "node_data_provider"
    assert extensions["hlo_inspect_figures"]["filter"]["adapterIds"] == ["hlo_inspect"]


def test_a_node_has_what_is_known_of_its_instruction(write: Callable[[str], Path]) -> None:
    """2 × 8 × 16 × 4 FLOPs; 4 × (8 × 16 + 16 × 4 + 8 × 4) bytes."""
    ((graph,),) = [collection["graphs"] for collection in convert(write(DOT.replace("NAME", "jit_f")))]
    assert graph["id"] == "jit_f"
    assert graph["groupNodeAttributes"][""] == {"computation": "main", "runs": "1"}
    *_, node = graph["nodes"]
    assert (node["id"], node["label"], node["namespace"]) == ("main/c", "c", "mlp")
    assert [(edge["sourceNodeId"], edge["targetNodeInputId"]) for edge in node["incomingEdges"]] == [
        ("main/a", "0"),
        ("main/b", "1"),
    ]
    attributes = {entry["key"]: entry["value"] for entry in node["attrs"]}
    assert attributes["opcode"] == "dot"
    assert attributes["op_name"] == "jit(f)/mlp/dot"
    assert (attributes["FLOPs"], attributes["bytes"]) == ("1.02 kFLOP", "896 B")
    assert node["outputsMetadata"][0]["attrs"] == [{"key": "shape", "value": "f32[8,4]"}]


def test_each_graph_that_a_node_names_is_there() -> None:
    (collection,) = convert(DATA / "cpu" / "scan_fsdp.after.txt")
    ids = {graph["id"] for graph in collection["graphs"]}
    named = {name for graph in collection["graphs"] for node in graph["nodes"] for name in node["subgraphIds"]}
    assert collection["label"] == "jit_step"
    assert named == ids - {"jit_step"}
    loop = "jvp()/shard_map/while.22/body"
    assert collection["graphs"][0]["groupNodeAttributes"][loop]["runs"] == "3"  # three layers


def test_node_data_adds_up_to_the_step() -> None:
    """The times are those of the step by the command `time`, FLOPs and bytes those of `cost`."""
    answer = run(SCAN, "jit_step", "h100-sxm")
    assert answer["error"] == ""
    sums = {data["name"]: sum(result["value"] for result in data["results"].values()) for data in answer["result"][1:]}
    facts = inspect(SCAN, ["time", "cost"], profile="h100-sxm").facts
    step = facts["time.estimate_step_s"]
    assert isinstance(step, float)
    assert sums["time on h100-sxm, µs"] == pytest.approx(step * 1e6)
    assert sums["FLOPs"] == facts["cost.executed_flops"]
    phases = answer["result"][0]["results"]
    assert {result["value"]: result["bgColor"] for result in phases.values()}["forward"] == "#d6e8fa"
    assert all(data["gradient"] for data in answer["result"][1:])


def test_the_choice_of_a_profile_decides_the_times(write: Callable[[str], Path]) -> None:
    """No profile fits a text that shows no accelerator: there are no times then."""
    path = write(DOT.replace("NAME", "jit_f"))
    editors = manager().run_cmd({"cmdId": "get_config_editors", "extensionId": "hlo_inspect_figures"})["configEditors"]
    assert [option["value"] for option in editors[0]["options"]] == ["", *profile_names()]
    assert [data["name"] for data in run(path, "jit_f")["result"]] == ["phase", "FLOPs", "bytes"]
    assert run(path, "jit_f", "h100-sxm")["result"][-1]["name"] == "time on h100-sxm, µs"


def test_a_figure_with_bounds_says_so(write: Callable[[str], Path]) -> None:
    """The trip count of the loop is a parameter: 4 FLOPs or more in `negate`."""
    path = write(UNKNOWN_LOOP)
    (collection,) = convert(path)
    attributes = {
        node["label"]: {entry["key"]: entry["value"] for entry in node["attrs"]} for node in collection["graphs"][0]["nodes"]
    }
    assert attributes["y"]["FLOPs"] == ">= 4 FLOP"
    names = {data["name"]: data["results"] for data in run(path, "jit_f")["result"]}
    assert names["FLOPs, lower bounds"]["body/y"]["value"] == 4


def test_several_modules_have_numbers(write: Callable[[str], Path]) -> None:
    path = write(DOT.replace("NAME", "jit_f") * 2)
    assert [collection["label"] for collection in convert(path)] == ["jit_f #1", "jit_f #2"]
    assert run(path, "jit_f #2")["result"][0]["name"] == "phase"


def test_bad_input_is_one_message(write: Callable[[str], Path]) -> None:
    path = write("no HLO\n")
    with pytest.raises(Exception, match=r"dump\.txt: holds no HLO module") as caught:
        convert(path)
    assert "\n" not in str(caught.value)
    assert "holds no HLO module" in run(path, "jit_f")["error"]
    assert run(SCAN, "gone")["error"] == f"gone is no graph of {SCAN}; open the file again"
