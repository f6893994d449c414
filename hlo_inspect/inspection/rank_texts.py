"""The ranks of a job: their directories, and the texts of their modules with hashes of what they hold and of options beside."""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.compare.programs.rank_sets import RankText, rank_order
from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError, reading
from hlo_inspect.hlo.input.dump_directory import DirectoryFile, chosen_files, files_below, files_by_module, latest_file
from hlo_inspect.hlo.input.source import DECOMPRESSORS, PIECE_BYTES, open_source
from hlo_inspect.hlo.settings.compile_settings import SETTING_FILES, stablehlo_file
from hlo_inspect.lazy_pattern import lazy_pattern

RANK = "{rank}"
_WILD = lazy_pattern(r"\{rank\}|\*")
_MODULE_FOLDER = lazy_pattern(r"(?:\d+\.)?module_\d{4,18}\..*", re.ASCII | re.DOTALL)


class RankDirectory(NamedTuple):
    """The dump of one rank: a directory, or a file."""

    label: str
    path: Path


def rank_directories(arguments: Sequence[str]) -> list[RankDirectory]:
    """Return the ranks that the arguments name, in order.

    These are a pattern with `{rank}` or `*`, a directory of directories, or several directories. Raise InputError if there is
    none, UsageError if two have one name.
    """
    if len(arguments) > 1:
        ranks = _sorted(RankDirectory(Path(argument).name or argument, Path(argument)) for argument in arguments)
    else:
        ranks = _of_argument(arguments[0])
    labels = [rank.label for rank in ranks]
    for first, second in pairwise(ranks):
        if first.label == second.label:
            raise UsageError(f"{first.path} and {second.path} are both rank {first.label!r}; name it with {RANK}")
    if not labels:
        raise InputError(f"no directory fits this pattern; `dumps/{RANK}` fits dumps/0, dumps/1, …", Location(arguments[0]))
    return ranks


def _of_argument(argument: str) -> list[RankDirectory]:
    if RANK in argument or (glob.has_magic(argument) and not Path(argument).exists()):
        return _sorted(_matches(argument))
    root = Path(argument)
    if not root.is_dir():
        what = "is a file" if root.exists() else "there is no such directory"
        raise InputError(
            f"{what}; `ranks` reads a directory for each rank: a pattern such as 'dumps/{RANK}'", Location(argument)
        )
    with reading(argument):
        paths = list(root.iterdir())
    if any(_MODULE_FOLDER.fullmatch(path.name) for path in paths):
        raise InputError(f"is the dump of one rank; name all of them with a pattern such as 'dumps/{RANK}'", Location(argument))
    folders = [path for path in paths if path.is_dir()]
    if len(folders) == 1 and not _has_dump(folders[0]):
        what = f"holds one folder, {folders[0].name}, which holds the ranks; name that"
        raise InputError(f"{what}: '{folders[0]}'", Location(argument))
    return _sorted(RankDirectory(path.name, path) for path in folders)


def _has_dump(folder: Path) -> bool:
    """Return True if a folder holds files, or no folders: it is no folder of ranks."""
    with reading(str(folder)):
        entries = list(folder.iterdir())
    return not entries or any(entry.is_file() for entry in entries)


def _matches(pattern: str) -> Iterator[RankDirectory]:
    """Yield the paths that fit a pattern. `{rank}`, or each `*` without it, is the rank; else the name of the directory is."""
    marks, texts = _WILD.findall(pattern), _WILD.split(pattern)
    wild = "*".join(map(glob.escape, texts)) if marks else pattern
    parts = [re.escape(texts[0])]
    for mark, text in zip(marks, texts[1:], strict=True):
        parts += [r"([^/]*)" if mark == RANK or RANK not in marks else r"[^/]*", re.escape(text)]
    expression = re.compile("".join(parts), re.DOTALL)
    for path in glob.glob(wild):  # noqa: PTH207 - an absolute pattern has no folder to start in
        match = expression.fullmatch(path)
        label = "/".join(dict.fromkeys(match.groups())) if match is not None else ""
        yield RankDirectory(label or Path(path).name, Path(path))


def _sorted(ranks: Iterable[RankDirectory]) -> list[RankDirectory]:
    return sorted(ranks, key=lambda rank: rank_order(rank.label))


_COMPRESSED = tuple(magic for magic, _ in DECOMPRESSORS)
_NAME = lazy_pattern(rb"^[ \t]*+HloModule[ \t]++%?+([\w.\-]++)", re.MULTILINE)
_NUMBER = lazy_pattern(r"(?:\d++\.)?+module_\d++\.", re.ASCII)
_ELIDED = b"constant({...})"
_LOCATION = lazy_pattern(rb"^#loc[^\n]*\n|[ \t]*loc\([^\n]*", re.MULTILINE)
_OWN = (b"process_index:", b"launch_id:", b"device_ordinal:", b"xla_dump_to:")
"""Options that differ between the ranks of one job."""
_ASSIGNMENT, _DEVICE = b"device_assignment {", b"replica_device_ids:"
_ENDS = tuple(end for ends in SETTING_FILES for end in ends)
_PLATFORM = lazy_pattern(rb"^[ \t]*platform_\w+[ \t]*:[^\n]*", re.MULTILINE)


class RankListing(NamedTuple):
    """The texts of the modules of one rank; `fault` says why there are none, or which entries cannot be read."""

    texts: list[RankText]
    notes: list[str]
    fault: HloInspectError | None = None


class RankLister:
    """Lists the texts of ranks with their hashes. What a text holds is searched once for equal texts."""

    def __init__(self) -> None:
        self._elides: dict[bytes, bool] = {}

    def texts(self, rank: int, directory: RankDirectory) -> RankListing:
        """Return the texts of a rank's modules, in the order of their numbers."""
        listing = RankListing([], [])
        try:
            files, fault = files_below(directory.path) if directory.path.is_dir() else ([directory.path], None)
            listing = listing._replace(fault=fault)
            modules = files_by_module(files)
            # the texts of a directory that is no dump, or the file itself
            others = chosen_files(directory.path, files, None) if directory.path.is_dir() else [DirectoryFile(directory.path)]
            chosen = list(map(latest_file, modules)) if modules else list(others)
        except HloInspectError as error:
            return listing._replace(fault=listing.fault or error)
        listing.notes.extend(_mixed_runs(modules))
        option_files = _OptionFiles(files)
        for file in chosen:
            text = self._hashed(rank, file, option_files)
            if text is not None:
                listing.texts.append(text)
        return listing

    def _hashed(self, rank: int, file: DirectoryFile, option_files: _OptionFiles) -> RankText | None:
        """Return the text of a file with its hashes, None if it holds no module and need not hold one."""
        path = str(file.path)
        hashed = sha256()  # processors have instructions for it
        name = b""
        try:
            for block in _blocks(path):
                hashed.update(block)
                if not name and (match := _NAME.search(block)) is not None:
                    name = match[1]
            digest = hashed.digest()
            if digest not in self._elides:
                self._elides[digest] = _ELIDED in b"".join(_blocks(path))
        except (InputError, OSError):  # reading its program gives the error again
            return RankText(rank, _module_name(file.path), path, path.encode(errors="surrogateescape"), file.note is None)
        if not name and file.may_hold:
            return None
        settings, assignment = option_files.hashes(path)
        constants = _constants_hash(file.path) if self._elides[digest] else None
        module = name.decode() or _module_name(file.path)
        return RankText(rank, module, path, digest, file.note is None, settings, assignment, constants)


def _mixed_runs(modules: Iterable[Sequence[tuple[Path, str]]]) -> Iterator[str]:
    """Yield a note if two modules of one folder have one number, as those of two processes have."""
    names: dict[tuple[str, str], str] = {}
    for module in modules:
        path, stem = module[0]
        folder, file = os.path.split(path)
        number, name = file[: len(file) - len(stem)].partition("module_")[2].partition(".")[0], stem.partition(".")[0]
        other = names.setdefault((folder, number), name)
        if other != name:
            yield f"{folder}: module_{number} is {other} and {name}: it may hold files of two runs, or of two ranks"
            return


def _blocks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a text, decompressed."""
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - thousands of files
        block = stream.read(PIECE_BYTES)
        if not block.startswith(_COMPRESSED):
            while block:
                yield block
                block = stream.read(PIECE_BYTES)
            return
    yield from open_source(path).raw_pieces()


def _module_name(path: Path) -> str:
    """Return the name of a module by the name of its file."""
    return _NUMBER.sub("", path.name).partition(".")[0]


def _constants_hash(path: Path) -> bytes:
    """Return a hash of the StableHLO beside a text without its locations, empty without StableHLO."""
    stablehlo = stablehlo_file(path)
    if stablehlo is None:
        return b""
    return blake2b(_LOCATION.sub(b"", stablehlo.read_bytes()), digest_size=16).digest()


class _OptionFiles:
    """The files of options below a directory, found by the beginnings of their names."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files: defaultdict[str, list[str]] = defaultdict(list)
        for path in map(str, files):
            end = next((end for end in _ENDS if path.endswith(end)), None) if path.endswith(_ENDS) else None
            if end is not None:
                self._files[path.removesuffix(end)].append(path)

    def hashes(self, text: str) -> tuple[bytes, bytes]:
        """Return hashes of flags and options beside a text, and of its devices; empty without such files."""
        files = []
        start = text.find(".", text.find("module_", text.rfind("/") + 1)) + 1
        while (start := text.find(".", start) + 1) > 0:
            files += self._files.get(text[: start - 1], [])
        hashed, devices = blake2b(digest_size=16), blake2b(digest_size=16)
        for file in files:
            content = _content(file)
            if file.endswith("/topology.textproto"):
                content = b"".join(_PLATFORM.findall(content))
            rest, assignment = _without_devices(content)
            hashed.update(_without_own_lines(rest))
            devices.update(assignment)
        return (hashed.digest(), devices.digest()) if files else (b"", b"")


def _content(path: str) -> bytes:
    """Return the bytes of a file of options, nothing if it cannot be read: its reader says so."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - as above
            return stream.read()
    except OSError:
        return b""


def _without_devices(content: bytes) -> tuple[bytes, bytes]:
    """Return options without the device assignment, and the assignment."""
    start, last = content.find(_ASSIGNMENT), content.rfind(_DEVICE)
    if not 0 <= start < last:
        return content, b""
    end = content.find(b"\n", last)
    return content[:start] + content[end:], content[start:end]


def _without_own_lines(content: bytes) -> bytes:
    """Return options without the lines that differ between the ranks of one job."""
    for name in _OWN:
        position = content.find(name)
        while position >= 0:
            end = content.find(b"\n", position)
            content = content[:position] + (content[end:] if end >= 0 else b"")
            position = content.find(name, position)
    return content
