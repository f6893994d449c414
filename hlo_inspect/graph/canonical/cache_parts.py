"""Parts of a compile that keys of compilation caches cover: the program, names, metadata, flags, options, weak types.

XLA's `HloModule::GetFingerprint128` leaves out names and metadata. JAX's persistent cache keeps the module's name and weak
types, and leaves out metadata unless `jax_compilation_cache_include_metadata_in_key` is set. Caches that hash the serialized
module keep all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from hlo_inspect.graph.canonical.spelling import ELEMENT
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.settings.compile_settings import CompileSettings
from hlo_inspect.hlo.settings.stablehlo import StableHlo


class CachePart(NamedTuple):
    """A part of a compile, and a hash of its content; None if no file states it."""

    name: str
    digest: str | None


def cache_parts(
    module: Module,
    views: Views,
    hashes: tuple[str, str | None],
    settings: CompileSettings | None,
    stablehlo: StableHlo | None,
) -> list[CachePart]:
    """Return the parts of a module that was read with its graph. `hashes` are those of its program and schedule."""
    states_settings = settings is not None and not settings.unknown
    return [
        CachePart("program", hashes[0]),
        CachePart("schedule", hashes[1] or ""),
        CachePart("module name", module.name),
        CachePart("instruction names", _digest(_names(views))),
        CachePart("metadata", _digest(_metadata(module, views))),
        CachePart("flags", _digest(_flags(settings)) if settings is not None and states_settings else None),
        CachePart("options", _digest(_options(settings)) if settings is not None and states_settings else None),
        CachePart("topology", settings.topology if settings is not None else None),
        CachePart("weak types", _digest(map(str, stablehlo.weak_values)) if stablehlo is not None else None),
    ]


def cache_identity(parts: Iterable[CachePart]) -> str:
    """Return the hash of all known parts, in 32 hexadecimal digits."""
    return _digest(f"{part.name}={part.digest}" for part in parts if part.digest is not None)


def _digest(texts: Iterable[str]) -> str:
    hashed = blake2b(digest_size=16)
    for text in texts:
        hashed.update(f"{text}\n".encode(errors="surrogatepass"))
    return hashed.hexdigest()


def _names(views: Views) -> Iterator[str]:
    for name in views.computations:
        yield name
        view = views.for_computation(name)
        yield from (view.names[row] for row in _printed(view))


def _metadata(module: Module, views: Views) -> Iterator[str]:
    """Yield the metadata of each row, with its stack frame in words: XLA numbers frames anew in each text."""
    frames: dict[int | None, str] = {None: ""}
    for name in views.computations:
        view = views.for_computation(name)
        for metadata in filter(None, map(view.metadata, _printed(view))):
            frame = metadata.stack_frame_id
            if frame is not None and frame not in frames:
                frames[frame] = module.frames.described(frame)
            yield str((*metadata[:4], frames[frame] or frame))


def _printed(view: View) -> Iterator[int]:
    """Yield the rows that texts of all forms have: none that `x#1` can stand for."""
    return (row for row, opcode in enumerate(view.opcodes) if opcode != ELEMENT or row == view.root)


def _flags(settings: CompileSettings) -> list[str]:
    return [_sorted(values) for values in (settings.flags, settings.process_flags, settings.tpu_flags)]


def _options(settings: CompileSettings) -> list[str]:
    return [_sorted(settings.overrides), _sorted(settings.options), str(settings.devices), str(settings.platform)]


def _sorted(values: Mapping[str, str] | None) -> str:
    return str(sorted((values or {}).items()))
