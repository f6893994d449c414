"""Writes programs of `tests/data` as StableHLO and as HLO text, for the tests to compare: `python lower_programs.py FOLDER`.

A program of its own, since XLA reads its flags once. Each program gives `NAME.mlir` and `NAME.txt` without metadata, and
`NAME.mlirbc` and `NAME.long.txt` with it; one of them is compiled with a dump folder, as text and serialized.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
make_dumps: Any = import_module("make_dumps")


def main() -> None:
    folder = Path(sys.argv[1])
    flags = (f"--xla_dump_to={folder / 'dump'}", "--xla_dump_hlo_as_text", "--xla_dump_hlo_as_proto")
    make_dumps.environment(make_dumps.EIGHT_HOST_DEVICES, *flags)
    jax: Any = import_module("jax")
    for name in make_dumps.SHARDED + make_dumps.SINGLE:
        lowered = make_dumps.lower(name, make_dumps.mesh_of(jax.devices()) if name in make_dumps.SHARDED else None)
        (folder / f"{name}.mlir").write_text(lowered.as_text(), encoding="utf-8")
        bytecode = io.BytesIO()
        lowered.compiler_ir().operation.write_bytecode(bytecode)
        (folder / f"{name}.mlirbc").write_bytes(bytecode.getvalue())
        computation = lowered.compiler_ir("hlo")
        (folder / f"{name}.txt").write_text(computation.as_hlo_text(), encoding="utf-8")
        (folder / f"{name}.long.txt").write_text(computation.as_hlo_module().to_string(), encoding="utf-8")
        if name == "scan_fsdp":
            lowered.compile()


if __name__ == "__main__":
    main()
