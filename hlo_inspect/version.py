"""The version, in one place: the build reads it from here. And the first version whose hashes of programs are as now."""

import re

__version__ = "1.1.0"

_HASHES_SINCE = (1, 1)
"""Older versions hash another text of a program: `x#1` beside get-tuple-element, and keys of JSON in the order of the text."""

HASHES = "hashes of programs"
"""Start of the notes on hashes of older versions."""


def has_older_hashes(version: str) -> bool:
    """Return True if that version of hlo-inspect gives a program other hashes than this one."""
    numbers = re.match(r"(\d+)\.(\d+)", version, re.ASCII)
    return numbers is None or (int(numbers[1]), int(numbers[2])) < _HASHES_SINCE
