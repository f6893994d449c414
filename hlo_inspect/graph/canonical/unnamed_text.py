"""A hash of a text that renaming does not change, without reading its instructions.

Ranks of a job print one program with other names, numbers, paths and lines. Equal hashes mean equal programs and schedules;
programs that are equal may have different hashes, as by the number of a channel.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from hashlib import blake2b
from itertools import count

from hlo_inspect.graph.fingerprints import without_metadata
from hlo_inspect.hlo.values.op_names import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

_COMPUTATION = lazy_pattern(r"^(?:ENTRY )?%", re.MULTILINE)
_SIGNATURE = lazy_pattern(r"^((?:ENTRY )?%[\w.\-]++) \([^\n]*+(?<=\{)$", re.ASCII | re.MULTILINE)
_NAME = lazy_pattern(r"%([A-Za-z_][\w.\-]*+)", re.ASCII)
_MODULE_NAME = lazy_pattern(r"HloModule [\w.\-]++", re.ASCII)


def unnamed_digest(text: str) -> bytes | None:
    """Return the hash of a module in the form in which XLA prints it; None for other forms."""
    start = _COMPUTATION.search(text)
    if start is None:
        return None
    head, body = text[: start.start()], without_metadata(text[start.start() :])
    if "%" in head or "%" in "".join(body.split('"')[1::2]):  # a name in a string is no name
        return None
    parts = _NAME.split(_SIGNATURE.sub(r"\1 {", body))
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    hashed = blake2b(_MODULE_NAME.sub("", TABLE.sub("", head), count=1).encode(errors="surrogatepass"), digest_size=16)
    hashed.update("%".join(parts[::2]).encode(errors="surrogatepass"))
    hashed.update(array("q", map(numbers.__getitem__, parts[1::2])).tobytes())
    return hashed.digest()
