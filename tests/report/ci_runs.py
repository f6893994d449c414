"""Runs of `check` and `lint` whose output the tests of the formats for CI read."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from hlo_inspect.report.formats import CI_FORMATS, RenderOptions
from hlo_inspect.report.model import Finding, Input, Report
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
ADAMW = DATA / "cpu" / "adamw_step.after.txt"
"""A step with an all-reduce of 516 B along d0 (programs.py:66) and one of 256 B along d1; its parameters have 2,052 B."""

FAILING = "collectives[kind=all-reduce, axis=d0].runs == 0"
HOLDING = "collectives.all-to-all.count == 0"
UNDECIDED = "optimizer.clip_norm == 3"

GATHERS = """HloModule step, entry_computation_layout={()->(f32[2097152]{0}, f32[2097152]{0})}, num_partitions=4

ENTRY e {
  one = f32[] constant(1)
  a = f32[524288]{0} broadcast(one), dimensions={}
  g = f32[2097152]{0} all-gather(a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  h = f32[2097152]{0} all-gather(a), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT r = (f32[2097152]{0}, f32[2097152]{0}) tuple(g, h)
}
"""
"""Two gathers of a constant: two warnings HI210 with equal fingerprints, of 3 x 2 MiB sent each."""


def checked(format_name: str, *assertions: str, dump: Path = ADAMW, folder: Path | None = None) -> str:
    """Return the output of `check` in a format."""
    options = [word for assertion in assertions for word in ("--assert", assertion)]
    return call_text("check", dump, *options, "--format", format_name, folder=folder).stdout


def linted(format_name: str, text: str, folder: Path, *options: str) -> str:
    """Return the output of `lint` in a format: the findings of HI210 on a text."""
    dump = folder / "module_0003.step.txt"
    dump.write_text(text, encoding="utf-8")
    options = (*options, "--select", "constant-collective")
    done = call_text("lint", dump, "--format", format_name, *options, folder=folder)
    assert done.stderr == ""
    return done.stdout


def rendered(format_name: str, message: str, module: str = "m") -> str:
    """Return a report with one finding in a format. The texts need not be such that a module can have."""
    finding = Finding("HI210", "warning", message, name="constant-collective")
    stream = StringIO()
    report = Report("lint", Input("a.txt", 1, 1, 1), {"module.name": module}, findings=(finding,))
    CI_FORMATS[format_name]([report], stream, RenderOptions(root=Path("/nowhere")))
    return stream.getvalue()
