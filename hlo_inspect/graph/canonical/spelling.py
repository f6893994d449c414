"""The content of an instruction without names: shape, opcode, operands, and attributes without metadata.

Printers differ in white space, in comments, and in the operand shapes that they repeat; a spelling keeps none of these. Without
tuning it keeps no choices that a compiler measures either: autotuning picks another algorithm on each run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from hlo_inspect.graph.canonical.device_ids import DEVICE_ATTRIBUTES, DeviceTexts
from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Operand, operands_end
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES, CalleeAttribute
from hlo_inspect.hlo.values.attribute_forms import AttributeForm
from hlo_inspect.lazy_pattern import lazy_pattern

ELEMENT = "get-tuple-element"

METADATA = frozenset({"metadata", "origin", "original_value", "statistics"})
"""Attributes that tell an instruction's origin or drawing, not its function."""

_LAYOUTS = frozenset({"operand_layout_constraints"})
_CALLS = {str(name): name for name in CALLEE_ATTRIBUTES}
_STRING = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\\n]++|\\.)*+\'', re.DOTALL)
_GAP = lazy_pattern(r"[ \t\r\n]{2,}+|[\t\r\n]")
_INSIDE = lazy_pattern(r"(?<=[({\[]) | (?=[)}\],])")
_LOOSE = lazy_pattern(r"/\*|//|[\t\r\n]|  |[({\[] | [)}\],]")
_TABLE = lazy_pattern(r"[su](?:8|16|32|64)\[\d+\]\S* constant")
_NAME = lazy_pattern(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)


_NO_OPERANDS: Sequence[Operand] = ()

Texts = tuple[tuple[str, str], ...]
"""Names and texts."""


class Callees(NamedTuple):
    """The computations that one attribute names; `is_list` if they stand in braces."""

    attribute: CalleeAttribute
    names: tuple[str, ...]
    is_list: bool


_NOTHING: tuple[str, int | None] = ("", None)

_Parts = tuple[Texts, tuple[Callees, ...], tuple[str, ...], str]
"""Attributes, callees, predecessors and channel of a `Spelling`."""


class Spelling(NamedTuple):
    """The content of one instruction.

    `shape` is empty if it is left out. `operands` is empty if each operand is just the name of an instruction. `literal` is the
    content of a constant, or the number of a parameter. `attributes` are sorted pairs of name and text, without attributes that
    hold names. `rest` is the text that cannot be read as attributes.
    """

    shape: str
    opcode: str
    operands: Sequence[Operand] = ()
    literal: str = ""
    attributes: Texts = ()
    callees: tuple[Callees, ...] = ()
    predecessors: tuple[str, ...] = ()
    channel: str = ""
    rest: str = ""


class _Attributes(NamedTuple):
    """The attributes of a form as a `Spelling` has them.

    Callees and channel are a text, or the number of the place of that text in the form.
    """

    attributes: Texts
    callees: tuple[tuple[CalleeAttribute, str, int | None], ...]
    predecessors: tuple[str, ...]
    channel: tuple[str, int | None]


class Speller:
    """Spells rows. Without `layouts` shapes have none; with `metadata` the attributes `METADATA` stay.

    `devices` replaces the texts that name devices. Without `tuning`, choices of autotuning are left out. The keys of
    `backend_config` are sorted: XLA prints them in another order each time. A get-tuple-element that is no root has its index
    alone, as `x#1` has.
    """

    def __init__(
        self,
        *,
        layouts: bool = True,
        metadata: bool = False,
        devices: DeviceTexts | None = None,
        tuning: bool = True,
    ) -> None:
        self._layouts = layouts
        self._tuning = tuning
        self._devices = devices
        self._dropped = (frozenset() if metadata else METADATA) | (frozenset() if layouts else _LAYOUTS)
        self._shapes: dict[str, str] = {}
        self._forms: dict[object, _Attributes | None] = {}

    def spell(self, view: View, index: int) -> Spelling:
        """Return the spelling of a row of a view."""
        shape, opcode, tail = self._shape(view, index), view.opcodes[index], view.tails[index]
        try:
            end = operands_end(tail)
        except tokens.ScanError:
            return Spelling(shape, opcode, rest=plain(tail))
        literal, operands = "", _NO_OPERANDS
        if opcode in LITERAL_OPCODES:
            literal = plain(tail[:end])
            if self._devices is not None and opcode == "constant" and _TABLE.fullmatch(view.heads[index].text):
                literal = self._devices.table(literal)
        elif view.whole_operands(index) is None:
            operands = view.operands(index)
        form, places = view.computation.values.forms.take_apart(tail[end + 1 :])
        parts = self._parts(form, places)
        if parts is None:
            return Spelling(shape, opcode, operands, literal, rest=plain(form.filled(places)))
        if opcode == ELEMENT and index != view.root:
            kept = tuple([attribute for attribute in parts[0] if attribute[0] == "index" or attribute[0] in METADATA])
            parts = (kept, *parts[1:])
        if not self._tuning and opcode == "custom-call":
            shape = without_workspace(shape, dict(parts[0]).get("custom_call_target", ""))
        return Spelling(shape, opcode, operands, literal, *parts)

    def _shape(self, view: View, index: int) -> str:
        head = view.heads[index].text
        spelled = self._shapes.get(head)
        if spelled is None:
            shape = None if self._layouts else view.shapes[index]
            spelled = self._shapes[head] = plain(head.rpartition(" ")[0]) if shape is None else str(shape)
        return spelled

    def _parts(self, form: AttributeForm[Any], places: tuple[str, ...]) -> _Parts | None:
        """Return the attributes as a `Spelling` has them; None if they cannot be read.

        It reads the shared part of instructions of one form once.
        """
        if form not in self._forms:
            self._forms[form] = self._form_spelling(form)
        attributes = self._forms[form]
        if attributes is None:  # the form alone does not tell them
            attributes, places = self._form_spelling(AttributeForm(form.filled(places), has_holes=False)), ()
        if attributes is None:
            return None
        callees = []
        for attribute, in_form, number in attributes.callees:
            text = in_form if number is None else places[number]
            names = () if "=" in text else tuple(_NAME.findall(text))  # the remaining names are nested too deep to be read
            callees.append(Callees(attribute, names, text.startswith("{")))
        in_form, number = attributes.channel
        return attributes.attributes, tuple(callees), attributes.predecessors, in_form if number is None else places[number]

    def _form_spelling(self, form: AttributeForm[Any]) -> _Attributes | None:
        """Read the attributes of a form.

        Return None if it cannot be read, or if a place holds neither a callee nor a channel.
        """
        if form.fault:
            return None
        attributes = {name: (text, form.places.get(name)) for name, text in form.texts.items()}
        for name in self._dropped:
            attributes.pop(name, None)
        predecessors = tuple(_NAME.findall(attributes.pop("control-predecessors", _NOTHING)[0]))
        channel = attributes.pop("channel_id", _NOTHING)
        callees = sorted((_CALLS[name], *attributes.pop(name)) for name in _CALLS.keys() & attributes.keys())
        if any(place is not None for _, place in attributes.values()):
            return None
        texts = sorted((name, self._text(name, text)) for name, (text, _) in attributes.items())
        return _Attributes(tuple(texts), tuple(callees), predecessors, channel)

    def _text(self, name: str, text: str) -> str:
        if name == TUNED_ATTRIBUTE:
            return sorted_config(plain(text), tuning=self._tuning)
        if self._devices is None or name not in DEVICE_ATTRIBUTES:
            return plain(text)
        return self._devices.attribute(name, tokens.without_comments(text))


def plain(text: str) -> str:
    """Return a text without comments, with white space outside of strings as printers write it."""
    if _LOOSE.search(text) is None:
        return text
    text = tokens.without_comments(text)
    parts = [_INSIDE.sub("", _GAP.sub(" ", part)) for part in _STRING.split(text)]
    return "".join(part + string for part, string in zip(parts, [*_STRING.findall(text), ""], strict=True)).strip()


# -- choices of autotuning ----------------------------------------------------------------------------------------------------


TUNED_ATTRIBUTE = "backend_config"

_TUNED_KEYS = frozenset(
    {
        "selected_algorithm",
        "algorithm",
        "algorithm_id",
        "algo_id",
        "block_level_fusion_config",
        "triton_gemm_config",
        "plan_id",
        "cudnn_plan_id",
        "tuning_knobs",
        "workspace_size",
        "autotune_workspace_size",
        "scratch_bytes",
    }
)
_MAX_DEPTH = 64
_JSON_STRING = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LIBRARY_CALL = lazy_pattern(r'"?__(?:cublas|cudnn|hipblaslt|miopen)')
_WORKSPACE = lazy_pattern(r", [su]8\[\d+\](?:\{[^{}]*+\})?\)$", re.ASCII)


def sorted_config(text: str, *, tuning: bool = True) -> str:
    """Return the text of `backend_config` with sorted keys, without `tuning` also without autotuned choices.

    Return texts that are no JSON as they are.
    """
    is_quoted = text.startswith('"{')  # as XLA printed it until 2023
    content = tokens.unquote(text) if is_quoted else text
    depth = max(accumulate(1 if char in "{[" else -1 for char in _JSON_STRING.sub("", content) if char in "{}[]"), default=0)
    if depth > _MAX_DEPTH or not content.startswith("{"):
        return text
    try:
        config = json.loads(content)
    except ValueError:
        return text
    ordered = json.dumps(config if tuning else _untuned(config), sort_keys=True, separators=(",", ":"))
    return '"' + ordered.replace("\\", "\\\\").replace('"', '\\"') + '"' if is_quoted else ordered


def _untuned(value: object) -> object:
    if isinstance(value, dict):
        return {key: _untuned(inner) for key, inner in value.items() if key not in _TUNED_KEYS}
    return [_untuned(inner) for inner in value] if isinstance(value, list) else value


def without_workspace(shape: str, target: str) -> str:
    """Return the shape of a library's call without the size of its workspace, its last result."""
    return _WORKSPACE.sub(", workspace)", shape) if _LIBRARY_CALL.match(target) else shape
