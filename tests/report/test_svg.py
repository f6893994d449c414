"""SVG, with the extra `[graph]` and without."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import pytest

from hlo_inspect.errors import MissingExtraError
from tests.report.drawn import HOSTILE, drawn, rendered, small_report

_NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_svg_without_its_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(MissingExtraError, match=r"the extra \[graph\]: pip install pygraphviz"):
        rendered("svg", small_report())


@pytest.mark.extras("pygraphviz")
def test_graphviz_draws_each_node_edge_and_cluster() -> None:
    root = ET.fromstring(rendered("svg", small_report()))  # noqa: S314 - the program's own output
    groups = [group.get("class") for group in root.iter(f"{_NAMESPACE}g")]
    assert (groups.count("node"), groups.count("edge"), groups.count("cluster")) == (3, 2, 2)
    assert "dot.4" in {text.text for text in root.iter(f"{_NAMESPACE}text")}


@pytest.mark.extras("pygraphviz")
def test_hostile_texts_are_text() -> None:
    root = ET.fromstring(rendered("svg", drawn([HOSTILE, "b"], [(0, 1)])))  # noqa: S314 - the program's own output
    assert [element.tag for element in root.iter() if "script" in element.tag] == []
    assert any("<script>" in (text.text or "") for text in root.iter(f"{_NAMESPACE}text"))
