"""The origin of an instruction in its metadata: scopes of its `op_name`, source line, phase.

An `op_name` is the path of scopes that JAX writes for an operation. Forward operations are in a scope `jvp(…)`, backward
operations in `transpose(jvp(…))`. Recomputation of a checkpoint is below `rematted_computation`, but not in JAX 0.4.16. XLA's
combiners write `jit(step)/(jvp()/gather:jvp(layer_0)/dot_general)` for the names that they combine. Other passes join two names
by a semicolon.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.lazy_pattern import lazy_pattern

TABLE = lazy_pattern(
    r"[ \t]*+(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*\n(?:\s*+\d+[ \t][^\n]*\n)*+", re.ASCII
)
"""Pattern of a table of stack frames. Blank lines may separate its rows, as in some mails."""

_ROW = lazy_pattern(r"^[ \t]*+\d+[ \t]+(.*)$", re.ASCII | re.MULTILINE)
_FIELD = lazy_pattern(r"(\w+)=(\d{1,18})", re.ASCII)

MAX_FRAMES = 32
"""Innermost frames that are kept of a stack. JAX writes ten."""


class SourceLine(NamedTuple):
    """A line of the compiled program's source; `column` is 0 if the text does not state it."""

    file: str
    line: int
    function: str
    column: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class StackFrames:
    """The four tables of `stack_frame_id`, parsed on first use; rows count from 1. `user_lines` caches the user's lines."""

    def __init__(self) -> None:
        self.user_lines: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[str]] = {}
        self._lines: dict[int, SourceLine | None] = {}
        self._stacks: dict[int, tuple[SourceLine, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """True if the text has none of the tables."""
        return not self._texts

    @property
    def tables(self) -> list[str]:
        """The texts of the tables."""
        return list(self._texts.values())

    def add(self, table: str) -> None:
        name = table.split(None, 1)[0]
        self._texts[name] = table

    def stack(self, frame_id: int) -> tuple[SourceLine, ...]:
        """Return the lines of a frame and its callers, innermost first. Skip lines that the tables lack."""
        missing: list[tuple[int, int]] = []  # frames with their locations
        while frame_id not in self._stacks and self._row("StackFrames", frame_id) and len(missing) < MAX_FRAMES:
            cells = self._cells("StackFrames", frame_id)
            missing.append((frame_id, cells.get("file_location_id", 0)))
            caller = cells.get("parent_frame_id", 0) - 1  # the text has the number plus one
            frame_id = caller if caller < frame_id else 0  # callers are numbered first
        stack = self._stacks.get(frame_id, ())
        for number, location in reversed(missing):
            if location not in self._lines:
                self._lines[location] = self._source_line(location)
            line = self._lines[location]
            stack = self._stacks[number] = (line, *stack[: MAX_FRAMES - 1]) if line is not None else stack
        return stack

    def described(self, frame_id: int) -> str:
        """Return a frame and its callers with all that the tables say of them, but for the numbers of their rows."""
        lines: list[str] = []
        while self._row("StackFrames", frame_id) and len(lines) < MAX_FRAMES:
            frame = self._cells("StackFrames", frame_id)
            cells = self._cells("FileLocations", frame.get("file_location_id", 0))
            file = self._row("FileNames", cells.pop("file_name_id", 0))
            lines.append(f"{file} {self._row('FunctionNames', cells.pop('function_name_id', 0))} {cells}")
            caller = frame.get("parent_frame_id", 0) - 1
            frame_id = caller if caller < frame_id else 0
        return "\n".join(lines)

    def _source_line(self, location: int) -> SourceLine | None:
        fields = self._cells("FileLocations", location)
        file = self._row("FileNames", fields.get("file_name_id", 0))
        function = self._row("FunctionNames", fields.get("function_name_id", 0))
        if not file:
            return None
        return SourceLine(tokens.unquote(file), fields.get("line", 0), tokens.unquote(function), fields.get("column", 0))

    def _cells(self, table: str, number: int) -> dict[str, int]:
        return {name: int(value) for name, value in _FIELD.findall(self._row(table, number))}

    def _row(self, table: str, number: int) -> str:
        """Return a row of a table without its number; empty if absent."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = _ROW.findall(self._texts.get(table, ""))
        return rows[number - 1] if 0 < number <= len(rows) else ""


UNKNOWN, FORWARD, LOSS, BACKWARD, RECOMPUTE, OPTIMIZER = "unknown", "forward", "loss", "backward", "recompute", "optimizer"
PHASES = (FORWARD, RECOMPUTE, BACKWARD, LOSS, OPTIMIZER, UNKNOWN)
NOT_SOUGHT = ""
"""The phase under `--quick` of instructions whose names do not tell it. Other signs are not used."""

_OUTER_FIRST = (UNKNOWN, FORWARD, BACKWARD, RECOMPUTE)  # the later of two phases wins

_BRACKET = lazy_pattern(r"[()\[\]{}]")
_TRANSPOSE = lazy_pattern(r"(?<![\w.])transpose\(")
_JVP = lazy_pattern(r"(?<![\w.])jvp\(")
_FUNCTION = lazy_pattern(r"\w+\([^()]*\)")
_NAMED = lazy_pattern(r"(?:transpose\()?jvp\((\w[\w.\-]*)\)+|(\w[\w.\-]*)")
_NOT_NAMES = lazy_pattern(
    r"main|while|body|cond|scan|branch_\d+_fun|closed_call|core_call|xla_call|p?jit|shard_map|custom_[jv][jv]p_call\w*"
    r"|remat2?|checkpoint|rematted_computation"
)
_INNERMOST = lazy_pattern(r"([\w.\-]+)\)*")
NUMBER = lazy_pattern(r"\d++(?![^\W_])")
"""Pattern of a number that ends a word, unlike the number in `conv2d`."""
LAYER_NUMBER = lazy_pattern(r"[0-9](?<=[_/][0-9])[0-9]*+(?![^\W_])")
"""Pattern of a number after an underscore or at the start of a scope: it tells no phase, JAX scope or function apart."""


class Scope(NamedTuple):
    """The scopes of an `op_name`.

    `path`: the scopes, outermost first, the primitive last; empty if the name joins several names. `phase`: the phase by the
    scopes. `parts`: the phases of the operations that a joined name lists, in the order of operands.
    """

    path: tuple[str, ...] = ()
    phase: str = UNKNOWN
    parts: tuple[str, ...] = ()

    @property
    def primitive(self) -> str:
        return self.path[-1].partition("[")[0] if self.path else ""

    @property
    def parameters(self) -> str:
        """The primitive's parameters, as JAX wrote them until 2024: `[axes=(2,)]`."""
        return self.path[-1].removeprefix(self.primitive) if self.path else ""

    @property
    def is_bare(self) -> bool:
        """True if the operation is directly in the compiled function, in no other scope."""
        if len(self.path) < 2 or not _FUNCTION.fullmatch(self.path[0]) or self.path[0].startswith(("jvp(", "transpose(")):
            return False
        return all(scope in {"jit(main)", "jvp()"} for scope in self.path[1:-1])

    @property
    def has_name(self) -> bool:
        """True if a scope has a name from the program, such as a layer's."""
        return bool(_given_names(self.path[1:-1]))

    @property
    def folded(self) -> tuple[str, ...]:
        """The program's names of its scopes, outermost first, with `*` for numbers.

        `jit(step)/transpose(jvp(layers_3))/attention/dot_general` gives `("layers_*", "attention")`. Consecutive equal names
        count once.
        """
        names = [NUMBER.sub("*", name) for name in _given_names(self.path[:-1])]
        return tuple(name for name, before in zip(names, ["", *names], strict=False) if name != before)

    @property
    def names(self) -> tuple[str, ...]:
        """The innermost name of each scope in the compiled function: `log_softmax` of `jvp(jit(log_softmax))`."""
        matches = (_INNERMOST.search(scope.partition("[")[0].rpartition("(")[2]) for scope in self.path[1:-1])
        return tuple(name[1] for name in matches if name and name[1] != "main")


def _given_names(path: Sequence[str]) -> list[str]:
    """Return the names of scopes that are no transformation, function or control flow."""
    names = [match[1] or match[2] for match in map(_NAMED.fullmatch, path) if match]
    return [name for name in names if not _NOT_NAMES.fullmatch(name)]


def without_layer_numbers(op_name: str) -> str:
    """Replace each `LAYER_NUMBER` by 0, so that unrolled layers have equal names."""
    return LAYER_NUMBER.sub("0", op_name)


def scope_of(op_name: str) -> Scope:
    """Parse an `op_name`."""
    names = _split(op_name, ";")
    if len(names) > 1:
        scopes = [scope_of(name) for name in names if "/" in name]  # the others are bare primitives
        return Scope(parts=tuple(part for scope in scopes for part in scope.parts or (scope.phase,)))
    path = _split(op_name, "/")
    outer = _differentiation(path[:-1])
    combined = _split(path[-1][1:-1], ":") if path[-1].startswith("(") else ()
    if len(combined) > 1:
        inner = {part: _differentiation(_split(part, "/")) for part in set(combined)}
        return Scope(parts=tuple(max(outer, inner[part], key=_OUTER_FIRST.index) for part in combined))
    return Scope(tuple(map(sys.intern, path)), outer)


def _split(text: str, separator: str) -> list[str]:
    """Split a text at the separators outside brackets."""
    if separator not in text:
        return [text]
    pieces: list[str] = []
    depth = 0
    for part in text.split(separator):
        if depth:
            pieces[-1] += separator + part
        else:
            pieces.append(part)
        for bracket in _BRACKET.findall(part):
            depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
    return pieces


def _differentiation(path: list[str]) -> str:
    scopes = [scope.partition("[")[0] for scope in path]
    if "rematted_computation" in scopes:
        return RECOMPUTE
    if any(map(_TRANSPOSE.search, scopes)):
        return BACKWARD
    return FORWARD if any(map(_JVP.search, scopes)) else UNKNOWN


# -- sources ----------------------------------------------------------------------------------------------------------------

_INSTALLED = lazy_pattern(r"(?:^|/)(?:site-packages|dist-packages|third_party/py|lib/python\d\.\d+)/|^<frozen ", re.ASCII)
_FRAMEWORK = lazy_pattern(
    r"/jax/(?:_src|experimental|nn|numpy|lax|example_libraries)/|/flax/(?:linen|nnx|core|training|optim)/|/haiku/_src/"
    r"|/optax/(?:_src|contrib|losses|projections|schedules|transforms|tree_utils)/|/equinox/(?:nn|internal|_\w+\.py)"
    r"|/keras/src/|/tensorflow/python/|/torch/(?:_\w+|autograd|distributed|nn|optim|utils)/|/torch_xla/",
    re.ASCII,
)


class Origin(NamedTuple):
    """Origin of an instruction in the compiled program.

    `op_name`: the front end's scope. `source`: `file:line` of the user's program. Both are empty if unknown. `stack`: the lines
    of the call stack, innermost first, if the text has stack frames.
    """

    op_name: str = ""
    source: str = ""
    stack: tuple[SourceLine, ...] = ()

    @property
    def innermost(self) -> str:
        """`file:line` that created the operation, possibly in a library."""
        return self.stack[0].place if self.stack else self.source


_NO_ORIGIN = Origin()


def origin_of(metadata: Metadata | None, frames: StackFrames) -> Origin:
    """Return the origin that metadata states, inline or by a frame of the module's tables."""
    if metadata is None:
        return _NO_ORIGIN
    op_name, file, line = sys.intern(metadata.op_name), metadata.source_file, metadata.source_line
    if file:
        return Origin(op_name, sys.intern(file if line is None else f"{file}:{line}"))
    frame = metadata.stack_frame_id
    if frame is None:
        return Origin(op_name)
    stack, user_line = frames.stack(frame), frames.user_lines.get(frame)
    if user_line is None:
        innermost = min(stack, key=lambda line: _file_rank(line.file), default=None)
        user_line = frames.user_lines[frame] = sys.intern(innermost.place if innermost is not None else "")
    return Origin(op_name, user_line, stack)


@lru_cache(maxsize=1024)
def _file_rank(file: str) -> int:
    """Return 0 for a file of the user, 1 for one of a framework, 2 for one of an installed package: the least is shown."""
    return 2 if _INSTALLED.search(file) else 1 if _FRAMEWORK.search(file) else 0


# -- phases -----------------------------------------------------------------------------------------------------------------

_LOSS_SCOPE = lazy_pattern(r"log_softmax|\w*cross_entropy\w*|softmax_xent\w*|nll_loss")
PRODUCT_PRIMITIVES = ("dot_general", "conv_general_dilated")
_OPTIMIZER_SCOPE = lazy_pattern(r"optimizer|apply_updates|apply_gradients|clip_by_global_norm")
_LOSS_FILES = ("/optax/losses/", "/optax/_src/loss.py:")
_OPTIMIZER_FILES = ("/optax/", "/flax/optim/", "/jax/example_libraries/optimizers.py:", "/torch/optim/")


def phase_of(innermost: str, scope: Scope) -> str:
    """Return the phase by an instruction's own metadata: innermost source line and scope.

    A product in the scope of a loss is of the forward pass, as by the graph of values: it computes logits.
    """
    if scope.parts:
        return scope.parts[0] if len(set(scope.parts)) == 1 else UNKNOWN
    sources = innermost.split(",")  # XLA lists the sources of all combined instructions
    is_forward = scope.phase == FORWARD and scope.primitive not in PRODUCT_PRIMITIVES
    if is_forward and (_come_from(sources, _LOSS_FILES) or any(map(_LOSS_SCOPE.fullmatch, scope.names[:1]))):
        return LOSS
    if scope.phase == UNKNOWN and not _come_from(sources, _LOSS_FILES):
        named = any(map(_OPTIMIZER_SCOPE.fullmatch, scope.names))
        return OPTIMIZER if named or _come_from(sources, _OPTIMIZER_FILES) else UNKNOWN
    return scope.phase


def _come_from(sources: Iterable[str], files: tuple[str, ...]) -> bool:
    return all(any(file in source for file in files) for source in sources)
