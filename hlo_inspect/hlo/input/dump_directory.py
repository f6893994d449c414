"""The files of modules in a directory, or the files that match a pattern.

XLA's dump directories (`--xla_dump_to`) have many files per module; one of them is read. Their names follow `FilenameFor` in
xla/service/dump.cc: `[timestamp.]module_NNNN.name.stage.txt`, or `….hlo.pb` for serialized HLO. In other directories, every
text is read. `compiled_modules` lists the files of compiler passes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple, cast

from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError, did_you_mean, reading
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import inner_path, is_address, is_remote_directory, matching_addresses, remote_files_below

_COMPRESSED = r"(?:\.(?:gz|bz2|xz|zst))?"
_FILE = lazy_pattern(
    r"(?:\d+\.)?module_(?P<number>\d{4,18})\.(?P<stem>.*)"
    rf"\.(?:txt|hlo|(?P<serialized>hlo(?:_unoptimized_snapshot|_snapshot)?\.pb)){_COMPRESSED}",
    re.ASCII | re.DOTALL,
)
_TEXT = lazy_pattern(rf"[^.][^.]*|[^.].*\.(?:txt|text|hlo|log|out|mlir|hlo\.pb){_COMPRESSED}", re.ASCII | re.DOTALL)
_SIDECAR = lazy_pattern(
    r"-(?:buffer-assignment(?:-values)?|live-range|memory-usage-report)$"
    r"|(?:thunk_(?:sequence\w*|metadata)|execution_options|hlo_module_config|target_arguments|tpu_comp_env|transfer_stats"
    r"|basic_compiler_metadata|debug_options|after_codegen)$"
)
PASS = lazy_pattern(
    r"\.(\d{4,9})\.(?P<pipeline>[^.]*+(?:\.(?!after_)[^.]*+)*?)\.after_(?P<after>.*?)(?:\.before_(?P<before>.*))?$", re.ASCII
)
"""Pattern of the end of a file's name that marks a compiler pass."""

# The end of a module's name that has a dot, and the build of a TPU's compiler.
_BEFORE_STAGE = lazy_pattern(r"(?:\d{1,3}\.|cl_\d+\.)*", re.ASCII)
AFTER, BEFORE = "after_optimizations", "before_optimizations"


PROFILE_FILE = lazy_pattern(rf".*\.xplane\.pb{_COMPRESSED}", re.DOTALL)
"""Pattern of the names of recorded profiles. Other files of their folder are caches of viewers."""


class DirectoryFile(NamedTuple):
    """A file to read. `note` says why it is not the expected file.

    `may_hold`: True if its name does not tell that it holds a module. `hosts`: the profiles of the other hosts of a run.
    `address`: that of a remote file, whose path only has its names.
    """

    path: Path
    note: str | None = None
    may_hold: bool = False
    hosts: tuple[Path, ...] = ()
    address: str = ""

    @property
    def source(self) -> Path | str:
        """The path or address to open."""
        return self.address or self.path


def is_directory(source: Openable) -> bool:
    """Return True for a directory, local or remote. Raise InputError if an address cannot be reached."""
    if not isinstance(source, str | os.PathLike) or source == "" or (isinstance(source, str) and "\n" in source):
        return False
    if isinstance(source, str) and is_address(source) and not os.path.lexists(source):
        with reading(source):
            return is_remote_directory(source)
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):
        return False


def expanded(argument: str) -> list[Path | str]:
    """Return the inputs that an argument of the command line names.

    These are standard input (`-`), a file or directory of that name, else all matches of a pattern (`dumps/*.txt`, `**` for
    folders), sorted by name. Raise InputError if nothing matches a pattern.
    """
    if argument in {"-", ""}:
        return [argument]
    if os.path.lexists(argument):
        return [Path(argument)]
    if is_address(argument):
        with reading(argument):
            addresses = matching_addresses(argument)
        if not addresses:
            raise InputError("no object matches this pattern", Location(argument))
        return list(addresses)
    from glob import glob, has_magic

    if not has_magic(argument):
        return [Path(argument)]
    matches = sorted(glob(argument, recursive=True))  # noqa: PTH207 - an absolute pattern has no folder to start in
    if not matches:
        raise InputError("no file or directory matches this pattern", Location(argument))
    return [Path(match) for match in matches]


def stage_of(path: str) -> str:
    """Return the stage in the name of a dump's file (`cpu_after_optimizations`), else an empty string.

    If the module's name has a dot, a part of it may count as stage.
    """
    match = _FILE.fullmatch(Path(inner_path(path)).name)
    return _BEFORE_STAGE.sub("", match["stem"].partition(".")[2], count=1) if match is not None else ""


def dump_files(directory: Openable, stage: str | None) -> Iterator[DirectoryFile]:
    """Yield the files to read: the optimized text of each module of a dump, or the file closest to it, else all texts.

    `stage` selects other files of a dump: the files of that stage, else the files with `stage` in their names. Serialized HLO
    counts if the stage has no text. Raise InputError for a directory without dumps or texts, UsageError for a stage without
    files.
    """
    if isinstance(directory, str) and is_address(directory) and not os.path.lexists(directory):
        yield from _remote_dump_files(directory, stage)
        return
    root = Path(str(directory))
    files, fault = files_below(root)
    if files or fault is None:
        yield from chosen_files(root, files, stage)
    if fault is not None:
        raise fault


def _remote_dump_files(address: str, stage: str | None) -> Iterator[DirectoryFile]:
    """Yield the files to read of a remote directory. Files of XLA beside a remote text are not read."""
    with reading(address):
        addresses = list(remote_files_below(address))
    try:
        yield from chosen_addresses(address, addresses, stage)
    except InputError as error:
        raise InputError(error.message, Location(address)) from error


def chosen_addresses(root: str, addresses: Iterable[str], stage: str | None) -> Iterator[DirectoryFile]:
    """Yield those of the files at paths or addresses that `dump_files` yields, each with its address; raise its errors."""
    names = {Path(inner_path(address)): address for address in addresses}
    for file in chosen_files(Path(root), sorted(names), stage):
        yield file._replace(address=names[file.path])


def _profile(root: Path, files: Iterable[Path]) -> DirectoryFile | None:
    """Return the profile of a run's first host; None if the folder has no profiles. Raise InputError for several runs."""
    runs: dict[Path, list[Path]] = {}
    for path in files:
        if PROFILE_FILE.fullmatch(path.name):
            runs.setdefault(path.parent, []).append(path)
    if len(runs) > 1:
        names = ", ".join(str(run.relative_to(root)) for run in list(runs)[-4:])
        raise InputError(f"has profiles of {len(runs)} runs; name the folder of one, for example {names}", Location(str(root)))
    for first, *others in runs.values():
        note = f"{first.name} is read: profiles of {len(others)} other hosts have modules too" if others else None
        return DirectoryFile(first, note, hosts=tuple(others))
    return None


def chosen_files(root: Path, files: Sequence[Path], stage: str | None) -> Iterator[DirectoryFile]:
    """Yield those of the files of a directory that `dump_files` yields; raise its errors."""
    modules = files_by_module(files)
    if stage is None and modules:
        yield from map(latest_file, modules)
        return
    dumps = [[path for path, _ in stems] for stems in modules]
    profile = _profile(root, files) if not dumps else None
    if profile is not None:
        yield profile
        return
    texts = [] if dumps else [path for path in files if _TEXT.fullmatch(path.name)]
    if not dumps and not texts:
        what = "is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb) or other texts"
        raise InputError(f"{what}; XLA writes dumps with --xla_dump_to=DIR", Location(str(root)))
    if stage is None:
        yield from (DirectoryFile(path, may_hold=True) for path in texts)
        return
    chosen = [DirectoryFile(path) for paths in dumps for path in _stage_files(paths, stage)]
    chosen += [DirectoryFile(path, may_hold=True) for path in texts if stage in path.name]
    if not chosen:
        names = sorted({stage_of(path.name) for paths in dumps for path in paths} or {path.name for path in texts})
        hint = did_you_mean(stage, names)
        raise UsageError(f"no file of {root} has {stage!r} in its name; choose from: {', '.join(names)}{hint}")
    yield from chosen


def module_of(name: str) -> tuple[str, str] | None:
    """Return number and name of the module that a file of a dump is of, by the file's name; None for other files."""
    match = _FILE.fullmatch(name)
    return None if match is None or _SIDECAR.search(match["stem"]) else (match["number"], match["stem"].partition(".")[0])


def files_by_module(files: Iterable[Path]) -> list[list[tuple[Path, str]]]:
    """Group the files of a dump by module, each with the part of its name after the module's number.

    Texts come before serialized files. If a stage has both, only the text counts.
    """
    named = [(path, match) for path in files if (match := _FILE.fullmatch(path.name)) is not None]
    named = [(path, match) for path, match in named if not _SIDECAR.search(match["stem"])]
    texts = {(path.parent, match["number"], match["stem"]) for path, match in named if not match["serialized"]}
    modules: dict[tuple[int, Path, str], list[tuple[Path, str]]] = {}  # processes that share a directory use equal numbers
    for path, match in named:
        number, stem = match["number"], match["stem"]
        if not match["serialized"] or (path.parent, number, stem) not in texts:
            modules.setdefault((int(number), path.parent, stem.partition(".")[0]), []).append((path, stem))
    return [stems for _, stems in sorted(modules.items())]


def _stage_files(paths: Iterable[Path], stage: str) -> list[Path]:
    """Return the files of the stage of a module, else the files with `stage` in their names."""
    return [path for path in paths if stage_of(path.name) == stage] or [path for path in paths if stage in path.name]


PIPE_FAULT = "is a named pipe: name it itself to read what is written to it"


def files_below(root: Path) -> tuple[list[Path], InputError | None]:
    """Return every file below the directory, by name, and the error for entries that cannot be read.

    These are folders, links to themselves, and texts that are named pipes: a reader would wait until something writes to one.
    """
    paths: list[Path] = []
    faults: list[InputError] = []
    folders = [str(root)]
    while folders:
        folder = folders.pop()
        try:
            with reading(folder), os.scandir(folder) as scanned:
                entries = sorted(scanned, key=attrgetter("name"))
        except InputError as error:
            faults.append(error)
            continue
        folders += [entry.path for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
        for entry in entries:
            try:
                with reading(entry.path):
                    is_folder, is_unread = entry.is_dir(), is_pipe(entry)
            except InputError as error:
                faults.append(error)
                continue
            if not is_unread and not is_folder:
                paths.append(Path(entry))
            elif is_unread and may_be_text(entry.name):
                faults.append(InputError(PIPE_FAULT, Location(entry.path)))
    more = f"; {len(faults) - 1} more of this directory cannot be read" if len(faults) > 1 else ""
    return sorted(paths), next((InputError(f"{fault.message}{more}", fault.location) for fault in faults), None)


def is_pipe(entry: os.DirEntry[str]) -> bool:
    """Return True for a named pipe. Raise OSError if the entry cannot be read."""
    return not entry.is_dir() and not entry.is_file() and Path(entry).is_fifo()


def may_be_text(name: str) -> bool:
    """Return True if a file of this name can be a dump or another text."""
    return _TEXT.fullmatch(name) is not None


def latest_file(files: Sequence[tuple[Path, str]]) -> DirectoryFile:
    """Return the optimized text of a module, or the file closest to it."""
    optimized = [path for path, stem in files if stem.endswith(AFTER)]
    if optimized:
        return DirectoryFile(optimized[-1])
    passes = [(int(match[1]), path) for path, stem in files if (match := PASS.search(stem)) is not None]
    before = [path for path, stem in files if stem.endswith(BEFORE)]
    chosen = max(passes, key=itemgetter(0))[1] if passes else before[-1] if before else files[-1][0]
    return DirectoryFile(chosen, f"{chosen.name} is read: the dump has no file after optimizations for this module")


def text_before_optimizations(optimized: Path) -> Path | None:
    """Return the text before optimizations of the module whose optimized text this is; None if the dump has none."""
    return next((path for path, stem in _files_beside(optimized) if stem.endswith(BEFORE)), None)


def text_before_partitioning(optimized: Path) -> Path | None:
    """Return the text of a module that the SPMD partitioner reads, else that before optimizations; None without both."""
    files = sorted(_files_beside(optimized))
    partitioned = (path for path, stem in files if (match := PASS.search(stem)) and PARTITIONER in (match["before"] or ""))
    return next(partitioned, None) or text_before_optimizations(optimized)


class CompileFiles(NamedTuple):
    """The texts of one compile in a dump: `before` and `after` optimizations, None if absent.

    A dump of a load from a persistent cache `is_load`: XLA writes its optimized text and none before.
    """

    number: int
    name: str
    before: Path | None
    after: Path | None
    is_load: bool = False


def compile_files(files: Iterable[Path]) -> list[CompileFiles]:
    """Return the compiles of the files of dumps: by directory, then by module number."""
    compiles = []
    for stems in files_by_module(files):
        number = int(cast("re.Match[str]", _FILE.fullmatch(stems[0][0].name))["number"])
        before = [path for path, stem in stems if stem.endswith(BEFORE)]
        after = [path for path, stem in stems if stem.endswith(AFTER)]
        if before or after:
            name = stems[0][1].partition(".")[0]
            compiles.append(CompileFiles(number, name, before[-1] if before else None, after[-1] if after else None))
    compiled_in = {compile_.before.parent for compile_ in compiles if compile_.before is not None}
    marked = [compile_._replace(is_load=_is_load(compile_, compiled_in)) for compile_ in compiles]
    return sorted(marked, key=lambda compile_: ((compile_.before or compile_.after or Path()).parent, compile_.number))


def _is_load(files: CompileFiles, compiled_in: Container[Path]) -> bool:
    """Return True for an optimized text alone if XLA dumps compiles with another: in this directory, or by its flags."""
    if files.before is not None or files.after is None or stage_of(files.after.name) != AFTER:
        return False
    if files.after.parent in compiled_in:
        return True
    stem = files.after.name.partition(f".{AFTER}")[0]
    return stem.endswith(f".{files.name}") and files.after.with_name(f"{stem}.debug_options").is_file()


def _files_beside(optimized: Path) -> Sequence[tuple[Path, str]]:
    """Return the files of the module whose optimized text this is, with the ends of their names; none for other files."""
    match = _FILE.fullmatch(optimized.name)
    if match is None or not match["stem"].endswith(AFTER):
        return ()
    try:
        modules = files_by_module(sorted(optimized.parent.iterdir()))
    except OSError:
        return ()
    return next((files for files in modules if any(path == optimized for path, _ in files)), ())


HOW_TO = "XLA writes them with --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*"

_START, _END = "pipeline-start", "pipeline-end"
PARTITIONER = "spmd-partitioning"
"""Part of the names of XLA's passes that partition a module: `spmd-partitioning`, `stateful-rng-spmd-partitioning`."""


class PassFile(NamedTuple):
    """The text of a module after a pass.

    `name`: the pass that produced it. `pipeline`: the pipeline of that pass. `number`: the number of the file; None for the
    first and last text, which are not files of passes.
    """

    path: Path
    number: int | None
    pipeline: str
    name: str

    @property
    def label(self) -> str:
        """The pass and its number, because passes of one name run often."""
        return self.name if self.number is None else f"{self.name} ({self.number:04d})"


class CompiledModule(NamedTuple):
    """The files of a module in the order of compilation.

    `passes`: the number of files of passes. `has_starts`: True if the dump has starts of pipelines, as a dump of all
    passes has.
    """

    name: str
    files: Sequence[PassFile]
    passes: int
    has_starts: bool

    @property
    def bytes(self) -> int:
        """The size of all files that can be read."""
        return sum(file.path.stat().st_size for file in self.files if os.path.isfile(file.path))  # noqa: PTH113 - False for all others


def compiled_modules(directory: str, errors: list[HloInspectError] | None = None) -> list[CompiledModule]:
    """Return the modules of a dump directory that have files of passes. Raise InputError if there are none.

    Append the error for entries that cannot be read to `errors`, or raise it without such a list.
    """
    root = Path(directory)
    if not root.is_dir():
        what = "is not a directory" if root.exists() else "there is no such directory"
        raise InputError(f"{what}: history reads a dump directory with a file for each pass; {HOW_TO}", Location(directory))
    files, fault = files_below(root)
    dumps = files_by_module(files)
    modules = [module for stems in dumps if (module := _module(stems)).passes]
    if fault is not None:
        if errors is None or not modules:
            raise fault
        errors.append(fault)
    if not modules:
        what = "no module of this dump directory has files of compiler passes" if dumps else "is a directory without XLA dumps"
        raise InputError(f"{what}: history reads a file for each pass; {HOW_TO}", Location(directory))
    return modules


def _module(stems: Sequence[tuple[Path, str]]) -> CompiledModule:
    """Build a module from the paths of its files and the ends of their names."""
    passes = sorted(
        ((int(match[1]), path, match) for path, stem in stems if (match := PASS.search(stem)) is not None),
        key=lambda file: file[:2],
    )
    first = [PassFile(path, None, "", "before optimizations") for path, stem in stems if stem.endswith(BEFORE)]
    last = [PassFile(path, None, "", "after optimizations") for path, stem in stems if stem.endswith(AFTER)]
    files = first[:1]
    last_of = {match["pipeline"]: number for number, _, match in passes if match["after"] != _START}
    has_starts = any(match["after"] == _START for _, _, match in passes)
    outer, upcoming = "", ""
    for number, path, match in passes:
        after, pipeline = match["after"], match["pipeline"]
        if after == _START:  # the outer pipeline goes on: its pass that runs this one made the changes
            is_inside = pipeline != outer and last_of.get(outer, 0) > number and upcoming not in ("", _END)
            after = upcoming if is_inside else f"before {pipeline}"
        files.append(PassFile(path, number, pipeline, after))
        outer, upcoming = pipeline, match["before"] or ""
    return CompiledModule(stems[0][1].partition(".")[0], [*files, *last[-1:]], len(passes), has_starts)
