"""DOT that Graphviz reads, whatever the names of a dump."""

from __future__ import annotations

import re
import subprocess

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.report.model import Report
from tests.report.drawn import HOSTILE, drawn, large_report, rendered, small_report

_TOKEN = re.compile(r'\s+|"(?:[^"\\\n]|\\[\\"n])*"|->|[A-Za-z_]\w*|[{}\[\];,=]')


def tokens(text: str) -> list[str]:
    """Return the tokens of a graph in the subset of the language that is written; raise on anything else."""
    words, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None, text[position : position + 60]
        words.append(match[0])
        position = match.end()
    return [token for token in words if not token.isspace()]


def test_nodes_and_edges() -> None:
    text = rendered("dot", small_report())
    words = tokens(text)
    assert words[0] == "digraph"
    assert words.count("{") == words.count("}") == 3  # the graph, and a cluster for each of two computations
    assert words.count("->") == 2
    assert 'n0 [label="dot.4\\nf32[16]", tooltip="forward"' in text
    assert 'n1 [label="fusion.1\\nx * 2\\nf32[8]"' in text
    assert "n1 -> n0;" in text
    assert text.count('penwidth="3"') == 1  # the requested instruction


def test_hostile_texts_stay_in_their_strings() -> None:
    text = rendered("dot", drawn([HOSTILE, "b"], [(0, 1)]))
    words = tokens(text)
    assert words.count("->") == 1
    assert words.count("n1") == 2
    assert "<script>" not in "".join(token for token in words if not token.startswith('"'))


def test_of_a_large_graph_the_nearest_are_drawn() -> None:
    text = rendered("dot", large_report(400))
    assert "300 of 400 instructions, the nearest first; --depth 1 or --path A B draws fewer" in text
    assert "  n299 [" in text
    assert "  n300 [" not in text


def test_a_report_without_a_picture() -> None:
    report = small_report()
    with pytest.raises(UsageError, match="there is nothing to draw: 3 instructions match"):
        rendered("dot", Report(report.command, report.input, report.facts, (small_report(rows=3).tables[0],)))


@pytest.mark.extras("dot")
@pytest.mark.parametrize("report", [small_report(), drawn([HOSTILE, "b"], [(0, 1)])])
def test_graphviz_reads_the_picture(report: Report) -> None:
    done = subprocess.run(["dot", "-Tplain"], input=rendered("dot", report), capture_output=True, text=True, check=True)
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()].count("edge") == len(report.table("graph_edges").rows)
