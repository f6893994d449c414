"""The dumps in tests/data have figures from other sources, and have them in every way of reading."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import hlo_inspect
from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.values.device_groups import DeviceGroups
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module

DATA = Path(__file__).parents[2] / "data"
MACHINE: dict[str, Any] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"]
HAND: dict[str, Any] = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))
EXPECTED: dict[str, list[dict[str, Any]]] = {name: [entry["facts"]] for name, entry in MACHINE.items()} | {
    f"handmade/{name}": entry["modules"] for name, entry in HAND.items()
}
DUMPS = sorted(name for name, facts in EXPECTED.items() if facts)

# Text that is broken on purpose: rule, line and column of its finding. Other texts have no such finding.
# In text without ids names repeat, and callees have none.
NAMELESS = {"prints/no_ids.txt", "prints/fingerprint.txt"}
FAULTS: dict[str, list[tuple[str, int, int | None]]] = {
    "handmade/cut_off.txt": [("HI001", 13, 56), ("HI002", 13, None)],
    "handmade/unreadable_lines.txt": [("HI001", 5, 3), ("HI001", 7, 3)],
}
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def reports(given: hlo_inspect.hlo.input.source.Openable) -> list[hlo_inspect.Report]:
    return list(hlo_inspect.inspect_all(given))


def facts(results: list[hlo_inspect.Report], expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of the reports under the expected names; an absent member of a family is 0.

    Names that start with `cost` are another command's.
    """
    return [
        {name: report.facts.get(name, 0) for name in figures if not name.startswith("cost.")}
        for report, figures in zip(results, expected, strict=True)
    ]


def expected_facts(name: str) -> list[dict[str, Any]]:
    return [{fact: value for fact, value in figures.items() if not fact.startswith("cost.")} for figures in EXPECTED[name]]


@pytest.fixture(scope="module")
def whole() -> dict[str, list[hlo_inspect.Report]]:
    """Return the reports of each unchanged dump."""
    return {name: reports(DATA / name) for name in DUMPS}


@pytest.fixture(scope="module")
def by_names() -> dict[str, list[hlo_inspect.Report]]:
    """Return the reports with phases by names alone, for which no graph is read."""
    return {name: list(hlo_inspect.inspect_all(DATA / name, phases="names")) for name in DUMPS}


Whole = dict[str, list[hlo_inspect.Report]]


@pytest.mark.parametrize("name", DUMPS)
def test_facts_of_each_dump_are_the_expected_facts(name: str, whole: Whole) -> None:
    assert facts(whole[name], EXPECTED[name]) == expected_facts(name)


@pytest.mark.parametrize("name", DUMPS)
def test_faults_of_each_dump_have_their_line_and_column(name: str, whole: Whole) -> None:
    problems = [
        (finding.rule, finding.location.line, finding.location.column)
        for report in whole[name]
        for finding in report.findings
        if finding.rule.startswith("HI0") and finding.location is not None
    ]
    unexpected = [fault for fault in problems if name not in NAMELESS or fault[0] not in {"HI007", "HI009"}]
    assert sorted(unexpected, key=str) == sorted(FAULTS.get(name, []), key=str)


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(DUMPS)))
def test_an_input_without_a_module_is_an_error(name: str) -> None:
    with pytest.raises(hlo_inspect.InputError, match="holds no HLO module"):
        reports(DATA / name)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_dumps_have_the_same_facts(suffix: str, whole: Whole, tmp_path: Path) -> None:
    """Each dump uses one of the four formats."""
    path = tmp_path / f"dump.txt.{suffix}"
    for name in DUMPS[list(COMPRESSORS).index(suffix) :: len(COMPRESSORS)]:
        path.write_bytes(COMPRESSORS[suffix]((DATA / name).read_bytes()))
        assert [(name, report.facts) for report in reports(path)] == [(name, report.facts) for report in whole[name]]


@pytest.mark.parametrize(("part", "ends", "size"), [(0, b"\r\n", 1 << 20), (1, b"\r\n", 7), (2, b"\r", 100)])
def test_dumps_with_other_line_ends_have_the_same_facts(
    part: int, ends: bytes, size: int, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dump has one of the three."""
    monkeypatch.setattr(source, "PIECE_BYTES", size)
    for name in DUMPS[part::3]:
        raw = (DATA / name).read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", ends)
        results = reports(io.BytesIO(raw))
        assert [(name, report.facts) for report in results] == [(name, report.facts) for report in whole[name]]


@pytest.mark.parametrize(("part", "size"), [(0, 1), (1, 4096)])
def test_dumps_read_in_pieces_have_the_same_facts(part: int, size: int, whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dump is read in one of two sizes."""
    monkeypatch.setattr(source, "PIECE_BYTES", size)
    for name in DUMPS[part::2]:
        for piecewise, at_once in zip(reports(DATA / name), whole[name], strict=True):
            assert (name, piecewise.facts) == (name, at_once.facts)
            assert (name, piecewise.findings) == (name, at_once.findings)


@pytest.mark.parametrize(("part", "size"), [(0, 100), (1, 1 << 20)])
@pytest.mark.parametrize("command", ["params", "fusions", "collectives"])
def test_a_command_that_skips_lines_has_the_same_facts(
    command: str, part: int, size: int, by_names: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dump is read in one of two sizes. Those with repeated names are left out: a skipped line may define a name again."""
    monkeypatch.setattr(source, "PIECE_BYTES", size)
    for name in sorted(set(DUMPS) - NAMELESS)[part::2]:
        for partial, full in zip(hlo_inspect.inspect_all(DATA / name, [command], phases="names"), by_names[name], strict=True):
            shared = {fact: value for fact, value in partial.facts.items() if fact != "module.unparsed_lines"}
            assert (name, shared) == (name, {fact: full.facts.get(fact) for fact in shared})


@pytest.mark.parametrize("name", sorted(name for name, entry in HAND.items() if "first_lines" in entry))
def test_first_lines_of_modules(name: str) -> None:
    assert [report.input.first_line for report in reports(DATA / "handmade" / name)] == HAND[name]["first_lines"]


@pytest.mark.parametrize(
    "name", sorted(name for name in DUMPS if "aliases" in MACHINE.get(name, HAND.get(name.partition("/")[2], {})))
)
def test_aliases_and_donors(name: str) -> None:
    entry = MACHINE.get(name) or HAND[name.partition("/")[2]]
    header = module(DATA / name).header
    assert sorted([list(a.output_index), a.parameter, list(a.parameter_index)] for a in header.aliases) == entry["aliases"]
    assert sorted([donor.parameter, list(donor.parameter_index)] for donor in header.donors) == entry.get("donors", [])


def test_replica_groups() -> None:
    groups = HAND["replica_groups.txt"]["groups"]
    opcodes = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast"})
    parsed = module(DATA / "handmade/replica_groups.txt", Wants(opcodes))
    read = {i.name: i.attr("replica_groups") for i in parsed.instructions}
    groups_by_name = {
        name: [list(group) for group in value.groups] for name, value in read.items() if isinstance(value, DeviceGroups)
    }
    # empty replica groups are a single group of all devices
    groups_by_name["everybody"] = groups_by_name["everybody"] or [list(range(8))]
    assert groups_by_name == groups
