"""The library of the native reader, loaded by ctypes on first use."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hlo_core.lib")  # noqa: PTH118, PTH120, PTH100 - not worth pathlib
"""The library, as `build` names it; that module is not worth its import here."""

VERSION = 4
"""Version of the columns and functions, as in `source/library.h`."""

VARIABLE = "HLO_INSPECT_NATIVE"
"""Environment variable: `0` turns the native reader off."""

MAX_CHARS = 1 << 30
"""Length of the longest text that the library reads at once."""


class Reading(IntEnum):
    """Reason why reading stopped."""

    READ = 0
    INCOMPLETE = 1
    REFUSED = 2
    ENTRY_READ = 3
    NO_MEMORY = 4


class Library:
    """The functions of the loaded library. `columns` are names and type codes of its columns."""

    def __init__(self, functions: ctypes.CDLL) -> None:
        """Declare the functions. Raise AttributeError if one is missing."""
        import ctypes  # takes 4 ms, which a small text does not need

        self.functions = functions
        pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
        self.pointers = ctypes.c_void_p
        self.counts = ctypes.c_int64
        self.begin = functions.hlo_reader_begin
        self.begin.restype, self.begin.argtypes = pointer, [ctypes.c_uint64, text, text, text, text]
        self.end = functions.hlo_reader_end
        self.end.restype, self.end.argtypes = None, [pointer]
        self.read = functions.hlo_read
        self.read.argtypes = [pointer, pointer, number, ctypes.c_int]
        self.address_of = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
        self.address_of.argtypes, self.address_of.restype = [ctypes.py_object, pointer], pointer
        self.computations, self.position = functions.hlo_computations, functions.hlo_position
        self.computations.argtypes = self.position.argtypes = [pointer]
        self.lengths, self.move, self.take = functions.hlo_lengths, functions.hlo_move, functions.hlo_take
        self.lengths.argtypes, self.move.argtypes = [pointer, pointer], [pointer, number]
        self.take.argtypes, self.take.restype = [pointer, pointer], None
        functions.hlo_column_name.restype = text
        names = [functions.hlo_column_name(index).decode() for index in range(functions.hlo_column_count())]
        widths = [functions.hlo_column_width(index) for index in range(len(names))]
        self.columns = [(name, "i" if width > 1 else "B") for name, width in zip(names, widths, strict=True)]


class NativeReader:
    """A reader of one text that may grow; a context that frees it.

    `literals` are opcodes whose parentheses hold no operands, `left_out` attributes whose values are not part of forms. The
    role of a callee is the index of its attribute in `callees`.
    """

    def __init__(self, library: Library, literals: Sequence[str], left_out: Sequence[str], callees: Sequence[str]) -> None:
        """Begin reading. Raise MemoryError if that is not possible."""
        self._library = library
        seed = int.from_bytes(os.urandom(8), "little")
        words = [",".join(names).encode() for names in (literals, ("metadata",), left_out, callees)]
        self._reader = library.begin(seed, *words)
        if not self._reader:
            raise MemoryError

    def __enter__(self) -> NativeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.end(self._reader)
        self._reader = None

    def read(self, text: str, start: int, end: int, *, is_final: bool) -> Reading:
        """Read on in `text[start:end]`, which begins with the text of the call before."""
        library = self._library
        if text.isascii():  # its characters are its bytes, which are not copied
            return Reading(library.read(self._reader, library.address_of(text, None) + start, end - start, is_final))
        encoded = text[start:end].encode(errors="surrogatepass")
        return Reading(library.read(self._reader, encoded, len(encoded), is_final))

    @property
    def position(self) -> int:
        """The offset after the last computation that was read."""
        return int(self._library.position(self._reader))

    @property
    def computations(self) -> int:
        """The number of computations that were read."""
        return int(self._library.computations(self._reader))

    def take_columns(self, start: int = 0) -> Mapping[str, array[int]]:
        """Return all columns, and forget them. The text begins at `start` of another. Raise MemoryError without memory."""
        library = self._library
        library.move(self._reader, start)
        counts = (library.counts * len(library.columns))()
        if library.lengths(self._reader, counts) != Reading.READ:
            raise MemoryError
        copies = {
            name: array(code, bytes(count * (4 if code == "i" else 1)))
            for (name, code), count in zip(library.columns, counts, strict=True)
        }
        addresses = (library.pointers * len(copies))(*[copy.buffer_info()[0] for copy in copies.values()])
        library.take(self._reader, addresses)
        return copies


_FAULT = "the library does not load"


@cache
def load() -> Library | str:
    """Load the library once. Return why that is not possible if it is not."""
    if os.environ.get(VARIABLE) == "0":
        return f"{VARIABLE} is 0"
    if not os.path.isfile(PATH):  # noqa: PTH113
        return "the library is not built"
    try:
        import ctypes

        functions = ctypes.CDLL(PATH)
        version = functions.hlo_version()
        return Library(functions) if version == VERSION else f"{_FAULT}: it has version {version}, not {VERSION}"
    except (ImportError, OSError, AttributeError) as error:
        return f"{_FAULT}: {error}"


def library() -> Library | None:
    """Return the library, or None without it."""
    loaded = load()
    return loaded if isinstance(loaded, Library) else None


def library_for(size: int, least: int) -> Library | None:
    """Return the library for work of a size, from `least` on, or of any size with `HLO_INSPECT_NATIVE=1`. None without it."""
    return library() if size >= least or os.environ.get(VARIABLE) == "1" else None


def load_fault() -> str | None:
    """Return why the library does not load, if a text asked for it and it is there."""
    loaded = load() if load.cache_info().currsize else ""
    return loaded if isinstance(loaded, str) and loaded.startswith(_FAULT) else None


def described() -> str:
    """Return which reader runs, and why if it is not the native one."""
    loaded = load()
    return "native reader" if isinstance(loaded, Library) else f"reader in Python: {loaded}"
