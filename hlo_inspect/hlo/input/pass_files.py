"""The files of a dump directory that XLA writes for the passes of the compiler (`--xla_dump_hlo_pass_re=.*`).

Their names follow `HloPassPipeline` (xla/hlo/pass/hlo_pass_pipeline.cc): `….NNNN.pipeline.after_PASS.before_NEXT.txt`. A file
is written when a pipeline starts and after each pass that changed something; a pass can run a pipeline of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.input.dump_directory import AFTER, BEFORE, PASS, files_below, files_by_module

HOW_TO = "XLA writes them with --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*"

_START, _END = "pipeline-start", "pipeline-end"


class PassFile(NamedTuple):
    """The text of a module behind a pass. `name` is that of the pass that made it what it is, `pipeline` where it ran; `number`
    is that of the file, `None` of the first and the last text, which are no files of passes.
    """

    path: Path
    number: int | None
    pipeline: str
    name: str

    @property
    def label(self) -> str:
        """The pass and its number: passes of one name run often."""
        return self.name if self.number is None else f"{self.name} ({self.number:04d})"


class CompiledModule(NamedTuple):
    """The files of one module in the order of the compilation, and how many of them are of passes. The dump of all passes has
    the starts of pipelines too.
    """

    name: str
    files: Sequence[PassFile]
    passes: int
    has_starts: bool

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.path.stat().st_size for file in self.files)


def compiled_modules(directory: str) -> list[CompiledModule]:
    """The modules of a dump directory that have files of passes. `InputError` where there are none, and for a folder that
    cannot be looked into.
    """
    root = Path(directory)
    if not root.is_dir():
        what = "is no directory" if root.exists() else "there is no such directory"
        raise InputError(f"{what}: history reads a dump directory with a file for each pass; {HOW_TO}", Location(directory))
    files, fault = files_below(root)
    if fault is not None:
        raise fault
    dumps = files_by_module(files)
    found = [module for stems in dumps if (module := _module(stems)).passes]
    if not found:
        what = "no module of this dump directory has files of compiler passes" if dumps else "is a directory without XLA dumps"
        raise InputError(f"{what}: history reads a file for each pass; {HOW_TO}", Location(directory))
    return found


def _module(stems: Sequence[tuple[Path, str]]) -> CompiledModule:
    """One module, of the paths of its files and what their names say."""
    passes = sorted(
        ((int(match[1]), path, match) for path, stem in stems if (match := PASS.search(stem)) is not None),
        key=lambda one: one[:2],
    )
    first = [PassFile(path, None, "", "before optimizations") for path, stem in stems if stem.endswith(BEFORE)]
    last = [PassFile(path, None, "", "after optimizations") for path, stem in stems if stem.endswith(AFTER)]
    files = first[:1]
    last_of = {match["pipeline"]: number for number, _, match in passes if match["after"] != _START}
    has_starts = any(match["after"] == _START for _, _, match in passes)
    outer, upcoming = "", ""
    for number, path, match in passes:
        after, pipeline = match["after"], match["pipeline"]
        if after == _START:  # a pass that runs a pipeline made what is new, where the one that it belongs to goes on
            is_inside = pipeline != outer and last_of.get(outer, 0) > number and upcoming not in ("", _END)
            after = upcoming if is_inside else f"before {pipeline}"
        files.append(PassFile(path, number, pipeline, after))
        outer, upcoming = pipeline, match["before"] or ""
    return CompiledModule(stems[0][1].partition(".")[0], [*files, *last[-1:]], len(passes), has_starts)
