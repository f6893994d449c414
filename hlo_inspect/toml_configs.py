"""The configuration in `hlo-inspect.toml` or `pyproject.toml`, as the nodes that `configs.py` makes of YAML.

`tomllib` reads the values; it keeps no places, so the lines of headers and keys are found in the text. What stands in one line
has the place of its key.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from pathlib import Path

from hlo_inspect.config_files import PYPROJECT, config_files, is_of_other_user
from hlo_inspect.configs import MAX_DEPTH, ConfigFile, Kind, Node, read_bytes
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.lazy_pattern import lazy_pattern

SECTION = ("tool", "hlo-inspect")

_HEADER = lazy_pattern(r"\s*\[(\[?)\s*([^\]#]+?)\s*\]")
_KEY = lazy_pattern(r"(\s*)([\w\-]+|\"[^\"]*\")\s*=")
_PLACE = lazy_pattern(r"at line (\d+), column (\d+)")

Keys = tuple[str | int, ...]
"""Keys and indices from the root of the file to a value."""

Places = Mapping[Keys, tuple[int, int]]


def nearest_config(folder: Path) -> Node | None:
    """Return the configuration of the nearest file upwards that has one; None without any.

    Raise UsageError for no TOML, and for a file of another user in a folder above.
    """
    for path in config_files(folder):
        node = read_config(path)
        if node is not None:
            if path.parent != folder and is_of_other_user(path):
                raise UsageError("belongs to another user: name it with --config if you trust it", Location(str(path)))
            return node
    return None


def read_config(path: Path) -> Node | None:
    """Return the configuration in a TOML file: all of it, or the table `[tool.hlo-inspect]` of a `pyproject.toml`, if any."""
    import tomllib

    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot be read: {error}", Location(str(path))) from error
    file = ConfigFile(str(path), tuple(text.splitlines()))
    try:
        value: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (max(len(file.lines), 1), 1)
        raise file.error(f"not valid TOML: {str(error).partition(' (at ')[0]}", line, column) from error
    except RecursionError as error:
        raise _nested(file, _line_with_most(file, "[{")) from error
    except ValueError as error:  # more digits than Python converts
        raise file.error("a number has too many digits", _line_with_most(file, string.digits), 1) from error
    section = SECTION if path.name == PYPROJECT else ()
    for name in section:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return _node(file, dict(_places(file)), value, section, (1, 1))


def _nested(file: ConfigFile, line: int, column: int = 1) -> UsageError:
    return file.error(f"the value is nested more than {MAX_DEPTH} levels deep", line, column)


def _line_with_most(file: ConfigFile, characters: str) -> int:
    """Return the number of the line with the most of some characters: `tomllib` has no place for what it cannot hold."""
    counts = [sum(map(line.count, characters)) for line in file.lines]
    return counts.index(max(counts)) + 1


def _places(file: ConfigFile) -> Iterator[tuple[Keys, tuple[int, int]]]:
    """Yield line and column of each header and key that begins a line."""
    table: Keys = ()
    counts: dict[Keys, int] = {}
    for number, line in enumerate(file.lines, 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            table = tuple(part.strip().strip('"') for part in header[2].split("."))
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, (number, line.index("[") + 1)
        elif key is not None:
            yield (*table, key[2].strip('"')), (number, len(key[1]) + 1)


def _node(file: ConfigFile, places: Places, value: object, keys: Keys, above: tuple[int, int]) -> Node:
    line, column = place = places.get(keys, above)
    if len(keys) > MAX_DEPTH:
        raise _nested(file, line, column)
    if isinstance(value, Mapping):
        pairs = []
        for key, inner in value.items():
            node = _node(file, places, inner, (*keys, key), place)
            pairs.append((Node(file, node.line, node.column, "text", key), node))
        return Node(file, line, column, "mapping", pairs=tuple(pairs))
    if isinstance(value, list):
        elements = tuple(_node(file, places, inner, (*keys, number), place) for number, inner in enumerate(value))
        return Node(file, line, column, "list", elements=elements)
    kind: Kind = "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"
    return Node(file, line, column, kind, str(value).lower() if kind == "bool" else str(value))
