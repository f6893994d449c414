"""Configuration files: the folder of shipped files, and a strict YAML reader that keeps the place of every value.

A getter raises `UsageError` if the node is of another kind. Aliases, anchors, tags, duplicate keys and a second document are
refused. A plain decimal (`3`, `-0.5`, `1e12`) is a number, plain `true` and `false` are bools. Plain `null`, `~` and nothing
are null. Anything else is text, even if YAML 1.1 reads it as another type (`yes`, `010`, `1:30`, `1_000`, dates). A caller that
expects a quantity reads it from `scalar`, the text as written.

Example:
    node = configs.read("profile.yaml")                        # or parse(text, path)
    fields = node.fields(allowed=("name", "peak"), required=("name",))
    fields["name"].text()                                      # text(), choice(options), items(), entries()
    raise fields["peak"].error("the peak must be positive")    # UsageError with path, line, column and the key
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from hlo_inspect.errors import Location, UsageError, did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    import yaml

Kind = Literal["text", "number", "bool", "null", "list", "mapping"]

MAX_DEPTH = 20
MAX_BYTES = 1 << 20
MAX_SHOWN = 60
_KEY = lazy_pattern(r"[ \t]*+(?:-[ \t]++)*+[\w.\-]{1,60}[ \t]*+:(?=[ \t]|$)")
_KEY_NAME = lazy_pattern(r"[A-Za-z][\w\-]{0,39}", re.ASCII)
"""Form of a key that a message repeats. Any other text may be a line of a file that is no configuration."""

_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LINE_BREAK = lazy_pattern("\r\n|[\r\n\x85\u2028\u2029]")  # the line ends of YAML


class ConfigFile(NamedTuple):
    """Configuration file. If it `is_private`, errors show only the keys of its `lines`."""

    path: str
    lines: tuple[str, ...]
    is_private: bool = True

    def error(self, message: str, line: int, column: int) -> UsageError:
        """Return an error at a 1-based line and column. A private file shows keys only: it can hold secrets."""
        shown = self.lines[line - 1] if line <= len(self.lines) else None
        if shown is not None and self.is_private:
            key = _KEY.match(shown)
            shown = key[0] if key is not None else None
        return UsageError(message, Location(self.path, line, column), shown)


class Node(NamedTuple):
    """Value of a YAML file and its place. `scalar` is the text of a scalar without its quotes."""

    file: ConfigFile
    line: int
    column: int
    kind: Kind
    scalar: str = ""
    elements: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()

    @property
    def location(self) -> Location:
        return Location(self.file.path, self.line, self.column)

    def error(self, message: str) -> UsageError:
        """Return an error at this node, for the caller to raise."""
        return self.file.error(message, self.line, self.column)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Raise a UsageError or ValueError of the block at this node."""
        try:
            yield
        except UsageError as error:
            raise self.error(error.message) from error
        except ValueError as error:
            raise self.error(str(error)) from error

    def text(self) -> str:
        """Return the text of a text node. A plain number or `true` is not text: it needs quotes."""
        return self._expect("text").scalar

    def choice(self, options: Iterable[str]) -> str:
        """Return the text of a node that must be one of `options`."""
        names = list(options)
        chosen = self.text()
        if chosen not in names:
            hint = did_you_mean(chosen[:MAX_SHOWN], names)
            written = repr(chosen[:MAX_SHOWN]) if hint else "the value"  # a word close to a name is no secret
            raise self.error(f"{written} is not one of {', '.join(names)}{hint}")
        return chosen

    def items(self) -> tuple[Node, ...]:
        """Return the elements of a list."""
        return self._expect("list").elements

    def entries(self) -> tuple[tuple[Node, Node], ...]:
        """Return keys and values of a mapping, in the order of the file; the text of a key is its `scalar`."""
        return self._expect("mapping").pairs

    def fields(self, allowed: Iterable[str], required: Iterable[str] = ()) -> dict[str, Node]:
        """Return the values of a mapping by key. Raise UsageError if a key is not `allowed`, or a `required` key is missing."""
        names = list(allowed)
        values = {}
        for key, value in self.entries():
            if key.scalar not in names:
                is_name = _KEY_NAME.fullmatch(key.scalar) is not None
                written = f" {key.scalar!r}" if is_name else ""
                hint = did_you_mean(key.scalar, names) if is_name else ""
                raise key.error(f"unknown key{written}; the keys are {', '.join(names)}{hint}")
            values[key.scalar] = value
        missing = [name for name in required if name not in values]
        if missing:
            raise self.error(f"missing key{'s' if len(missing) > 1 else ''}: {', '.join(missing)}")
        return values

    def _expect(self, kind: Kind) -> Node:
        if self.kind != kind:
            hint = "; put text in quotes" if kind == "text" and self.kind in ("number", "bool") else ""
            raise self.error(f"expected a value of kind {kind}, found {self.kind}{hint}")
        return self


def shipped_configs(kind: str) -> Path:
    """Return the folder of shipped files of a kind, inside the installed package or next to it in a source checkout."""
    package = Path(__file__).parent
    inside = package / "configs"
    return (inside if inside.is_dir() else package.parent / "configs") / kind


def read(path: str | Path) -> Node:
    """Read a YAML file and return its root node. Raise UsageError if it is unreadable or larger than `MAX_BYTES`."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8", Location(str(path))) from error
    return parse(text, str(path))


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a configuration file. Raise UsageError if it is unreadable or larger than `MAX_BYTES`."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {getattr(error, 'strerror', None) or error}", Location(str(path))) from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"is larger than {MAX_BYTES >> 20} MiB, the limit for a configuration file", Location(str(path)))
    return data


def parse(text: str, path: str) -> Node:
    """Parse YAML and return its root node; `path` names the text in errors."""
    import yaml

    file = ConfigFile(path, tuple(_LINE_BREAK.split(text)))
    try:
        return _document(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not valid YAML: {error.problem or error.context}"
        if error.context == "while scanning a block scalar":
            message += "; text that begins with > or | needs quotes"
        if mark is None:
            raise UsageError(message, Location(path)) from error
        raise file.error(message, mark.line + 1, mark.column + 1) from error
    except yaml.reader.ReaderError as error:
        before = _LINE_BREAK.split(text[: error.position])
        raise file.error(f"not valid YAML: {error.reason}", len(before), len(before[-1]) + 1) from error


def _document(events: Iterator[yaml.Event], file: ConfigFile) -> Node:
    import yaml

    starts = (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)
    root: Node | None = None
    for event in events:
        if isinstance(event, yaml.StreamEndEvent):
            break
        if isinstance(event, starts):
            continue
        if root is not None:
            raise _error(event, file, "a second YAML document is not allowed; use one file for each")
        root = _node(event, events, file, MAX_DEPTH)
    if root is None:
        raise UsageError("is empty", Location(file.path))
    if root.kind not in ("mapping", "list"):
        raise root.error("expected keys with values, found a single value")
    return root


def _node(event: yaml.Event, events: Iterator[yaml.Event], file: ConfigFile, depth: int) -> Node:
    """Return the node that begins with `event`; consume the events that belong to it."""
    import yaml

    if depth == 0:
        raise _error(event, file, f"the value is nested more than {MAX_DEPTH} levels deep")
    if isinstance(event, yaml.AliasEvent):
        raise _error(event, file, "an alias (*name) is not allowed; text that begins with * needs quotes")
    if getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None:
        raise _error(event, file, "an anchor (&name) or tag (!name) is not allowed; text that begins with & or ! needs quotes")
    line, column = _place(event)
    if isinstance(event, yaml.ScalarEvent):
        return Node(file, line, column, _scalar_kind(event.value, event.style), scalar=event.value)
    children = []
    for inner in events:
        if isinstance(inner, yaml.CollectionEndEvent):
            break
        children.append(_node(inner, events, file, depth - 1))
    if isinstance(event, yaml.SequenceStartEvent):
        return Node(file, line, column, "list", elements=tuple(children))
    return Node(file, line, column, "mapping", pairs=_distinct(list(zip(children[::2], children[1::2], strict=True))))


def _distinct(pairs: list[tuple[Node, Node]]) -> tuple[tuple[Node, Node], ...]:
    lines: dict[str, int] = {}
    for key, _ in pairs:
        if key.kind in ("list", "mapping"):
            raise key.error("a key must be text, not a list or mapping")
        if key.scalar in lines:
            raise key.error(f"duplicate key {key.scalar[:MAX_SHOWN]!r}; the first is on line {lines[key.scalar]}")
        lines[key.scalar] = key.line
    return tuple(pairs)


def _scalar_kind(written: str, style: str | None) -> Kind:
    if style:  # quoted or a block
        return "text"
    if written in ("true", "false"):
        return "bool"
    if written in ("null", "~", ""):
        return "null"
    return "number" if _NUMBER.fullmatch(written) else "text"


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _error(event: yaml.Event, file: ConfigFile, message: str) -> UsageError:
    return file.error(message, *_place(event))
