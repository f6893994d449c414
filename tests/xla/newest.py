"""Holds reading and costs against the newest jaxlib, which needs Python 3.12: `python -m tests.xla.newest`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import hlo_inspect
from tests.data import oracle


def differences(name: str) -> list[tuple[str, Any, Any]]:
    """Return the facts of a dump that differ, each with XLA's value and ours. XLA counts -1 byte and FLOP for a custom call."""
    path = oracle.HERE / name
    theirs = oracle.figures(path)["facts"]
    ours = hlo_inspect.inspect(path, ("summary", "cost")).facts
    calls = path.read_text(encoding="utf-8").count(" custom-call(")
    theirs |= {fact: theirs[fact] + calls for fact in ("cost.flops", "cost.bytes_accessed")}
    return [(fact, value, ours[fact]) for fact, value in theirs.items() if not _agree(value, ours[fact])]


def _agree(theirs: Any, ours: Any) -> bool:
    """Return True for equal values; XLA rounds costs to float32."""
    return theirs == ours or (isinstance(theirs, float) and abs(ours - theirs) <= 2e-7 * theirs)


def main() -> None:
    names = [
        path.relative_to(oracle.HERE).as_posix()
        for folder in oracle.FOLDERS["0.12.0.1"]
        for path in sorted((oracle.HERE / folder).glob("*.txt"))
        if oracle.is_module(path)
    ]
    differing = {name: facts for name in names if (facts := differences(name))}
    lines = [f"{len(names)} texts against jaxlib {version('jaxlib')}: {len(differing)} differ"]
    lines += [f"{name}: {difference}" for name, facts in differing.items() for difference in facts]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
