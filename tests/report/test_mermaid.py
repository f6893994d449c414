"""Mermaid: a flowchart in which no text of a dump is markup."""

from __future__ import annotations

import re

from tests.report.drawn import HOSTILE, drawn, large_report, rendered, small_report

_LINE = re.compile(
    r'flowchart TD|  +n\d+\["[^"<>&`;{}|]*(?:(?:<br/>|#\d+;)[^"<>&`;{}|]*)*"\]|  n\d+ --> n\d+|  subgraph g\d+\["[^"<>]*"\]'
    r"|  end|  classDef \w+ fill:#\w{6},stroke:#\w{6},color:#000"
    r"|  class n\d+(?:,n\d+)* \w+|  style n\d+ stroke-width:3px|  %% [^\n]*"
)


def test_nodes_and_edges() -> None:
    lines = rendered("mermaid", small_report()).splitlines()
    assert [line for line in lines if not _LINE.fullmatch(line)] == []
    assert '    n1["fusion.1<br/>x #42; 2<br/>f32[8]"]' in lines
    assert "  n1 --> n0" in lines
    assert "  class n1,n2 unknown" in lines
    assert lines.count("  end") == 2


def test_hostile_texts_are_no_markup() -> None:
    lines = rendered("mermaid", drawn([HOSTILE, "end"], [(0, 1)])).splitlines()
    assert [line for line in lines if not _LINE.fullmatch(line)] == []


def test_of_a_large_graph_the_nearest_are_drawn() -> None:
    assert rendered("mermaid", large_report(400)).splitlines()[1].startswith("  %% 300 of 400 instructions")
