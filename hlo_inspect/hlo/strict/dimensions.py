"""Attribute values that spell dimensions: windows, paddings, slices, the labels of a convolution's dimensions."""

from __future__ import annotations

import re

from hlo_inspect.hlo.strict.tokens import ATTRIBUTE, Tokens

_SIZES = re.compile(r"\d+(?:x\d+)+(?![\w.])|-?\d+(?![\w.])", re.ASCII)
_PAD = re.compile(r"-?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)*(?![\w.])", re.ASCII)
_LABELS = re.compile(r"([0-9bf?]{2,})_([0-9io?]{2,})->([0-9bf?]{2,})(?![\w.])", re.ASCII)
_WINDOW_FIELDS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def take_window(tokens: Tokens) -> None:
    """`{size=1x2 stride=… pad=0_0x1_1 lhs_dilate=… rhs_dilate=… rhs_reversal=…}`, in any order."""
    start = tokens.position
    counts: dict[str, int] = {}
    tokens.expect("{", ATTRIBUTE)
    while not tokens.take("}"):
        place = tokens.position
        field = tokens.attribute_name(ATTRIBUTE, "a part of the window")
        if field not in _WINDOW_FIELDS:
            tokens.refuse(ATTRIBUTE, f"a window has no {field!r}", place)
        if field in counts:
            tokens.refuse(ATTRIBUTE, f"{field} stands twice in the window", place)
        counts[field] = _pad_count(tokens) if field == "pad" else _size_count(tokens)
    for field in ("stride", "pad", "lhs_dilate", "rhs_dilate"):
        if field in counts and counts[field] != counts.get("size", 0):
            tokens.refuse(ATTRIBUTE, f"{field} and size of the window differ in dimensions", start)


def _size_count(tokens: Tokens) -> int:
    sizes = tokens.match(_SIZES)
    return sizes[0].count("x") + 1 if sizes else tokens.refuse(ATTRIBUTE, "expected sizes like 1x2")


def _pad_count(tokens: Tokens) -> int:
    start = tokens.position
    pad = tokens.match(_PAD)
    if pad is None or any(part.count("_") != 1 for part in pad[0].split("x")):
        tokens.refuse(ATTRIBUTE, "expected low and high padding like 0_0x1_1", start)
    return pad[0].count("x") + 1


def take_padding(tokens: Tokens) -> None:
    """`0_0_0x1_1`: low, high and interior padding of each dimension."""
    if tokens.match(_PAD) is None:
        tokens.refuse(ATTRIBUTE, "expected padding like 0_0_0x1_1")


def take_slice(tokens: Tokens) -> None:
    """`{[0:8:2], [1:3]}`."""
    for _ in tokens.list("{", "}", ATTRIBUTE):
        start = tokens.position
        tokens.expect("[", ATTRIBUTE)
        numbers = [tokens.integer(ATTRIBUTE)]
        while tokens.take(":"):
            numbers.append(tokens.integer(ATTRIBUTE))
        tokens.expect("]", ATTRIBUTE)
        if len(numbers) not in {2, 3}:
            tokens.refuse(ATTRIBUTE, "expected [start:limit] or [start:limit:step]", start)


def take_dim_labels(tokens: Tokens) -> None:
    """`b01f_01io->b01f`: what each dimension of the input, the kernel and the output is."""
    start = tokens.position
    labels = tokens.match(_LABELS)
    if labels is None:
        tokens.refuse(ATTRIBUTE, "expected labels like b01f_01io->b01f")
    spatial = set()
    for part, letters in zip(labels.groups(), ("bf", "io", "bf"), strict=True):
        known = [label for label in part if label != "?"]
        if len(set(known)) != len(known):
            tokens.refuse(ATTRIBUTE, f"a dimension stands twice in {part!r}", start)
        numbers = [label for label in known if label not in letters]
        if any(int(number) >= len(part) for number in numbers):
            tokens.refuse(ATTRIBUTE, f"a dimension of {part!r} is out of range", start)
        spatial.add(len(numbers))
    if len(spatial) != 1:
        tokens.refuse(ATTRIBUTE, "input, kernel and output differ in spatial dimensions", start)
