"""The dumps in tests/data: listed, small, free of machine paths, with consistent figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
TEXTS = sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*.txt"))
README = (DATA / "README.md").read_text(encoding="utf-8")


def expected(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def test_the_readme_lists_each_dump_once() -> None:
    assert sorted(re.findall(r"`([\w./-]+/[\w.-]+\.txt)`", README)) == TEXTS


def test_dumps_are_small() -> None:
    assert [name for name in TEXTS if (DATA / name).stat().st_size >= 40_000] == []


def test_dumps_name_no_path_of_the_machine_that_made_them() -> None:
    paths = re.compile(rb"/(?:work|root|home|tmp|Users|var|opt|usr|mnt)/|site-packages")
    assert [name for name in TEXTS if paths.search((DATA / name).read_bytes())] == []


def test_a_checkout_keeps_line_ends() -> None:
    windows, old_mac = ((DATA / "handmade" / name).read_bytes() for name in ("crlf.txt", "cr_only.txt"))
    assert windows.count(b"\r\n") == windows.count(b"\n") > 0
    assert b"\n" not in old_mac
    assert old_mac == windows.replace(b"\r\n", b"\r")


def test_each_module_has_figures() -> None:
    tables = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")
    by_parser = set(expected("expected.json")["dumps"])
    by_hand = {f"handmade/{name}" for name in expected("handmade/expected.json")}
    assert by_parser | by_hand == {name for name in TEXTS if not name.endswith(tables) and not name.startswith("workloads/")}


def test_the_readme_lists_the_texts_that_jaxlib_refuses() -> None:
    _, refused = README.split("jaxlib 0.10.2 refuses these:")
    listed = set(re.findall(r"`handmade/([\w.]+\.txt)`", refused))
    assert listed == {name for name, entry in expected("handmade/expected.json").items() if entry["jaxlib"] != "reads"}


def test_parameter_figures_agree_with_the_programs() -> None:
    figures = expected("expected.json")
    compared = 0
    for name, dump in figures["dumps"].items():
        truth = figures["programs"].get(Path(name).name.split(".")[0], {})
        facts = {**dump["facts"], "params.donated_count": len(dump.get("aliases", [])) + len(dump.get("donors", []))}
        for fact in ("params.count", "params.unused_count", "params.donated_count"):
            if fact in truth:
                assert (name, fact, facts[fact]) == (name, fact, truth[fact])
                compared += 1
    assert compared > 80
