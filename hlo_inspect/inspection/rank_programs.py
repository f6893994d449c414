"""The programs of all ranks' modules: each distinct text is read once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from hlo_inspect.analysis.collectives.logical_collectives import WANTS as COLLECTIVE_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.programs.deviations import RankProgram
from hlo_inspect.compare.programs.rank_sets import RankText
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, ParseError, as_internal_errors
from hlo_inspect.graph.fingerprints import unnamed_digest
from hlo_inspect.hlo.input.dump_directory import text_before_optimizations
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.settings.compile_settings import CompileSettings, read_settings, stablehlo_file
from hlo_inspect.hlo.settings.stablehlo import ElidedConstant, read_stablehlo
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.source_reports import without_collection
from hlo_inspect.xla import Xla

WANTS = COLLECTIVE_WANTS | Wants(graph=True, entry=True, checked=True)


class RankPrograms:
    """Reader of the programs of texts, and of the settings beside them. It keeps the programs until `forget`.

    `errors` are of texts that cannot be read, `notes` of texts that are not read as a whole.

    Texts that differ in names, numbers, paths and lines only have one program, which is read from the first of them.
    """

    def __init__(self) -> None:
        self._xla = Xla()
        self._programs: dict[bytes, RankProgram | None] = {}
        self._read: dict[bytes, tuple[RankText, RankProgram | None]] = {}
        self._unnamed: dict[bytes, RankProgram | None] = {}
        self._hashed: set[bytes] = set()
        self._before: dict[Path, Hashable | None] = {}
        self.errors: list[HloInspectError] = []
        self.notes: list[str] = []

    def __enter__(self) -> RankPrograms:
        return self

    def __exit__(self, *_: object) -> None:
        self._xla.close()

    def forget(self) -> None:
        for cache in (self._programs, self._read, self._unnamed, self._hashed, self._before):
            cache.clear()

    def program(self, text: RankText) -> RankProgram | None:
        """Return the program of a text, maybe with other names; None if the text holds none, or cannot be read."""
        if text.digest not in self._programs:
            self._programs[text.digest] = self._equal(text) or self.exact(text)
        return self._programs[text.digest]

    def exact(self, text: RankText) -> RankProgram | None:
        """Return the program of a text with the names of that text."""
        if text.digest not in self._read:
            self._read[text.digest] = text, self._parse(text)
        return self._read[text.digest][1]

    def _equal(self, text: RankText) -> RankProgram | None:
        """Return the program of a text that differs from this one in names only, if one was read."""
        for other, program in self._read.values():
            if other.digest not in self._hashed:
                self._hashed.add(other.digest)
                self._unnamed.setdefault(_unnamed(other), program)
        return self._unnamed.get(_unnamed(text)) if self._unnamed else None

    def before(self, text: RankText) -> Hashable | None:
        """Return a key of the program before optimizations; None if the dump has no such text, or not a whole one."""
        path = text_before_optimizations(Path(text.path))
        if path is None:
            return None
        if path not in self._before:
            program = self.exact(RankText(text.rank, text.module, str(path), b"before " + str(path).encode()))
            self._before[path] = program.identity if program is not None and not program.is_truncated else None
        return self._before[path]

    def settings(self, text: RankText) -> CompileSettings:
        """Return the flags and options beside a text."""
        return read_settings(Path(text.path))

    def _parse(self, text: RankText) -> RankProgram | None:
        try:
            with as_internal_errors(Location(text.path), text.module), without_collection():
                modules = self._xla.modules(open_source(text.path), WANTS, strict=False)
                item = next(modules, None)
                if item is None or isinstance(item, ParseError):
                    return None
                if next(modules, None) is not None:
                    self.notes.append(f"{Location(text.path)}: holds several modules; only the first is compared")
                return RankProgram(Context(item[0]), self._constants(text))
        except (InputError, InternalError) as error:
            self.errors.append(error)
        return None

    @staticmethod
    def _constants(text: RankText) -> Sequence[ElidedConstant]:
        """Return the constants that a text may elide."""
        path = stablehlo_file(Path(text.path)) if text.constants else None
        return read_stablehlo(path).constants if path is not None else ()


def _unnamed(text: RankText) -> bytes:
    """Return a hash that texts share if they differ in names only; that of the text itself if it has no such hash."""
    try:
        content = b"".join(open_source(text.path).raw_pieces())
    except InputError:  # reading its program gives the error again
        return text.digest
    digest = unnamed_digest(content.decode(errors="replace"))
    return text.digest if digest is None else digest + (text.constants or b"")
