"""Where an instruction comes from by its metadata: the scopes of its `op_name`, the line of source, the phase that both name.

An `op_name` is the path of scopes that JAX writes for an operation. Operations of the forward pass are in a scope `jvp(…)`,
those of the backward pass in `transpose(jvp(…))`; what checkpoint computes again is below `rematted_computation`, but not yet
in JAX 0.4.16. XLA's combiners write the names of what they combine as
`jit(step)/(jvp()/gather:jvp(layer_0)/dot_general)`, other passes join two names by a semicolon.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.lazy_pattern import lazy_pattern

TABLE = lazy_pattern(
    r"[ \t]*+(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*\n(?:\s*+\d+[ \t][^\n]*\n)*+", re.ASCII
)
"""A table; blank lines may stand between its rows, as between all lines of some mails."""

_ROW = lazy_pattern(r"^[ \t]*+\d+[ \t]+(.*)$", re.ASCII | re.MULTILINE)
_FIELD = lazy_pattern(r"(\w+)=(\d{1,18})", re.ASCII)

MAX_FRAMES = 32
"""JAX writes ten; of more the innermost are kept."""


class SourceLine(NamedTuple):
    """A line of the program that was compiled."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class StackFrames:
    """The four tables that metadata points into by `stack_frame_id`. Rows count from 1; they are parsed when first asked
    for. `user_lines` is where an analysis notes which line of a stack it takes for the user's, by frame.
    """

    def __init__(self) -> None:
        self.user_lines: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[str]] = {}
        self._stacks: dict[int, tuple[SourceLine, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the text has none of the tables."""
        return not self._texts

    @property
    def tables(self) -> list[str]:
        """The texts of the tables."""
        return list(self._texts.values())

    def add(self, table: str) -> None:
        name = table.split(None, 1)[0]
        self._texts[name] = table

    def stack(self, frame_id: int) -> tuple[SourceLine, ...]:
        """The lines of a frame and of those that it was called from, innermost first; without those that the tables do not
        have.
        """
        missing: list[int] = []
        while frame_id not in self._stacks and self._row("StackFrames", frame_id) and len(missing) < MAX_FRAMES:
            missing.append(frame_id)
            caller = self._cells("StackFrames", frame_id).get("parent_frame_id", 0) - 1  # printed is one more than the number
            frame_id = caller if caller < frame_id else 0  # callers are numbered first
        stack = self._stacks.get(frame_id, ())
        for one in reversed(missing):
            line = self._source_line(one)
            stack = self._stacks[one] = (line, *stack[: MAX_FRAMES - 1]) if line is not None else stack
        return stack

    def _source_line(self, frame_id: int) -> SourceLine | None:
        location = self._cells("StackFrames", frame_id).get("file_location_id", 0)
        fields = self._cells("FileLocations", location)
        file = self._row("FileNames", fields.get("file_name_id", 0))
        function = self._row("FunctionNames", fields.get("function_name_id", 0))
        return SourceLine(tokens.unquote(file), fields.get("line", 0), tokens.unquote(function)) if file else None

    def _cells(self, table: str, number: int) -> dict[str, int]:
        return {name: int(value) for name, value in _FIELD.findall(self._row(table, number))}

    def _row(self, table: str, number: int) -> str:
        """A row of a table behind its number; empty where there is none."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = _ROW.findall(self._texts.get(table, ""))
        return rows[number - 1] if 0 < number <= len(rows) else ""


UNKNOWN, FORWARD, LOSS, BACKWARD, RECOMPUTE, OPTIMIZER = "unknown", "forward", "loss", "backward", "recompute", "optimizer"
PHASES = (FORWARD, RECOMPUTE, BACKWARD, LOSS, OPTIMIZER, UNKNOWN)
NOT_SOUGHT = ""
"""The phase that names leave open if nothing else is asked (`--quick`)."""

_OUTER_FIRST = (UNKNOWN, FORWARD, BACKWARD, RECOMPUTE)  # an operation in one of these is in all before it, or in none of them

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
"""A number to the end of a word, not that of `conv2d`."""
LAYER_NUMBER = lazy_pattern(r"[0-9](?<=[_/][0-9])[0-9]*+(?![^\W_])")
"""A number behind an underscore, or one that begins a scope: no phase, scope of JAX or function is known by it."""


class Scope(NamedTuple):
    """`path` are the scopes, outermost first, the primitive last; empty where the name joins several. `phase` is what the
    scopes say, `parts` what they say of each that a combined operation does, in the order of its operands.
    """

    path: tuple[str, ...] = ()
    phase: str = UNKNOWN
    parts: tuple[str, ...] = ()

    @property
    def primitive(self) -> str:
        return self.path[-1].partition("[")[0] if self.path else ""

    @property
    def parameters(self) -> str:
        """The primitive's parameters, which JAX wrote until 2024: `[axes=(2,)]`."""
        return self.path[-1].removeprefix(self.primitive) if self.path else ""

    @property
    def is_bare(self) -> bool:
        """Whether the operation is directly in the compiled function, in no scope of its own."""
        if len(self.path) < 2 or not _FUNCTION.fullmatch(self.path[0]) or self.path[0].startswith(("jvp(", "transpose(")):
            return False
        return all(scope in {"jit(main)", "jvp()"} for scope in self.path[1:-1])

    @property
    def has_name(self) -> bool:
        """Whether a scope has a name that the program gave it, such as that of a layer."""
        return bool(_given_names(self.path[1:-1]))

    @property
    def folded(self) -> tuple[str, ...]:
        """The names that the program gave its scopes, outermost first, with `*` for numbers: `("layers_*", "attention")` of
        `jit(step)/transpose(jvp(layers_3))/attention/dot_general`. Of equal names that follow each other one is kept.
        """
        names = [NUMBER.sub("*", name) for name in _given_names(self.path[:-1])]
        return tuple(name for name, before in zip(names, ["", *names], strict=False) if name != before)

    @property
    def names(self) -> tuple[str, ...]:
        """The innermost name of each scope below the compiled function: `log_softmax` of `jvp(jit(log_softmax))`."""
        found = (_INNERMOST.search(scope.partition("[")[0].rpartition("(")[2]) for scope in self.path[1:-1])
        return tuple(name[1] for name in found if name and name[1] != "main")


def _given_names(path: Sequence[str]) -> list[str]:
    """The names among scopes that are no transformation, function or control flow."""
    found = [match[1] or match[2] for match in map(_NAMED.fullmatch, path) if match]
    return [name for name in found if not _NOT_NAMES.fullmatch(name)]


def without_layer_numbers(op_name: str) -> str:
    """A name with 0 for each `LAYER_NUMBER`, by which layers differ that are written out."""
    return LAYER_NUMBER.sub("0", op_name)


def scope_of(op_name: str) -> Scope:
    """What an op_name says."""
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
    """The parts between the separators that are outside of brackets."""
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
    """`op_name` is the scope that the front end gave, `source` is `file:line` of the user's program; both are empty where the
    text does not say. `stack` has the lines of the call stack, innermost first, where the text has stack frames.
    """

    op_name: str = ""
    source: str = ""
    stack: tuple[SourceLine, ...] = ()

    @property
    def innermost(self) -> str:
        """`file:line` at which the operation was made, which may be in a library."""
        return self.stack[0].place if self.stack else self.source


_NO_ORIGIN = Origin()


def origin_of(metadata: Metadata | None, frames: StackFrames) -> Origin:
    """Return the place in the compiled program that metadata names: inline, or by a frame of the module's tables."""
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
        user_line = frames.user_lines[frame] = sys.intern(_user_line(stack))
    return Origin(op_name, user_line, stack)


def _user_line(stack: Sequence[SourceLine]) -> str:
    """The innermost line that is neither in an installed package nor in a framework; else the innermost that is in no
    installed package, else the innermost.
    """
    not_installed = [line for line in stack if not _INSTALLED.search(line.file)]
    users = (line for line in not_installed if not _FRAMEWORK.search(line.file))
    found = next(users, next(iter(not_installed or stack), None))
    return found.place if found is not None else ""


# -- phases -----------------------------------------------------------------------------------------------------------------

_LOSS_SCOPE = lazy_pattern(r"log_softmax|\w*cross_entropy\w*|softmax_xent\w*|nll_loss")
_OPTIMIZER_SCOPE = lazy_pattern(r"optimizer|apply_updates|apply_gradients|clip_by_global_norm")
_LOSS_FILES = ("/optax/losses/", "/optax/_src/loss.py:")
_OPTIMIZER_FILES = ("/optax/", "/flax/optim/", "/jax/example_libraries/optimizers.py:", "/torch/optim/")


def phase_of(innermost: str, scope: Scope) -> str:
    """What an instruction's metadata says by itself: the innermost line of its origin and the scope of its `op_name`."""
    if scope.parts:
        return scope.parts[0] if len(set(scope.parts)) == 1 else UNKNOWN
    sources = innermost.split(",")  # of combined instructions XLA lists all
    if scope.phase == FORWARD and (_come_from(sources, _LOSS_FILES) or any(map(_LOSS_SCOPE.fullmatch, scope.names[:1]))):
        return LOSS
    if scope.phase == UNKNOWN and not _come_from(sources, _LOSS_FILES):
        named = any(map(_OPTIMIZER_SCOPE.fullmatch, scope.names))
        return OPTIMIZER if named or _come_from(sources, _OPTIMIZER_FILES) else UNKNOWN
    return scope.phase


def _come_from(sources: Iterable[str], files: tuple[str, ...]) -> bool:
    return all(any(file in source for file in files) for source in sources)
