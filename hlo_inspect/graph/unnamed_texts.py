"""Texts whose names do not matter: a hash that programs share if they differ in names and metadata only."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from hashlib import blake2b
from itertools import count

from hlo_inspect.hlo.values.op_names import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

_METADATA = lazy_pattern(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_BEGIN = ", metadata={"
_UP_TO_A_BRACE = lazy_pattern(r", metadata=\{[^}\n]*+\}")
_STRING_OR_METADATA = lazy_pattern(rf'("(?:[^"\\\n]++|\\.)*+"?+|{_COMMENT})|{_METADATA.pattern}')
"""An open string ends with its line; otherwise each quote in it would start a new search."""
_COMPUTATION = lazy_pattern(r"^(?:ENTRY )?%", re.MULTILINE)
_SIGNATURE = lazy_pattern(r"^((?:ENTRY )?%[\w.\-]++) \([^\n]*+(?<=\{)$", re.ASCII | re.MULTILINE)
_MARKED_NAME = lazy_pattern(r"%([A-Za-z_][\w.\-]*+)", re.ASCII)
_MODULE_NAME = lazy_pattern(r"HloModule [\w.\-]++", re.ASCII)


def _remove_to_brace(text: str) -> str:
    """Remove metadata up to its first closing brace, which is nearly always its last."""
    first, *others = text.split(_BEGIN)
    bare = "".join([first, *[part.partition("}")[2] for part in others]])
    if "}" not in others[-1] or bare.count("\n") != text.count("\n"):  # one is not closed, or not on its line
        return _UP_TO_A_BRACE.sub("", text)
    return bare


def without_metadata(text: str) -> str:
    """Return the lines of a text without metadata. A string that looks like metadata stays."""
    if _BEGIN not in text:
        return text
    bare = _remove_to_brace(text)
    if '"' not in bare and "*" not in bare:  # else the match may be in a string or a comment, or a part of the metadata
        return bare
    if text.count("/*") != text.count("/*index="):  # a comment may hold text like metadata, or a quote
        return _STRING_OR_METADATA.sub(r"\1", text)
    if '"' not in bare:
        return bare
    if '\\"' not in text and not any(part.count('"') % 2 for part in (*text.split("\n"), *text.split(_BEGIN))):
        return _METADATA.sub("", text)  # all strings are closed, and the match begins outside of them
    return _STRING_OR_METADATA.sub(r"\1", text)


def unnamed_digest(text: str) -> bytes | None:
    """Return a hash of a text that renaming does not change, without reading its instructions.

    Ranks of a job print one program with other names, numbers, paths and lines. Equal hashes mean equal programs and
    schedules; programs that are equal may have different hashes, as by the number of a channel. None for texts in another form
    than that of XLA's printer.
    """
    start = _COMPUTATION.search(text)
    if start is None:
        return None
    head, body = text[: start.start()], without_metadata(text[start.start() :])
    if "%" in head or "%" in "".join(body.split('"')[1::2]):  # a name in a string is no name
        return None
    parts = _MARKED_NAME.split(_SIGNATURE.sub(r"\1 {", body))
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    hashed = blake2b(_MODULE_NAME.sub("", TABLE.sub("", head), count=1).encode(errors="surrogatepass"), digest_size=16)
    hashed.update("%".join(parts[::2]).encode(errors="surrogatepass"))
    hashed.update(array("q", map(numbers.__getitem__, parts[1::2])).tobytes())
    return hashed.digest()
