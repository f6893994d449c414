"""Text protos: fields, strings, maps, and the places of faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.errors import InputError
from hlo_inspect.hlo.settings.text_proto import MAX_DEPTH, joined_entries, parse_lines, parse_text_proto, read_file
from tests.linear_time import assert_linear

TEXT = """\
# written by hand
count: 3  # a comment
ratio: -1.5e3, on: true; mode: "fast" 'er'
list: [1, 2]
list: 3
angle < depth: 2 >
493: 1
[ext.name]: "x"
options { key: "a.b" value: "-1" }
options { key: "c" value { bool_field: true } }
parts { ids: 0 ids: 1 }
parts { ids: 2 empty { } }
quote: "a \\"b\\" {"
"""


def test_values_have_the_names_of_the_fields_around_them() -> None:
    assert joined_entries(parse_text_proto(TEXT, "f")) == {
        "count": "3",
        "ratio": "-1.5e3",
        "on": "true",
        "mode": "faster",
        "list": "1, 2, 3",
        "angle.depth": "2",
        "493": "1",
        "[ext.name]": "x",
        "options.a.b": "-1",
        "options.c.bool_field": "true",
        "parts.ids": "0, 1, 2",
        "quote": '\\"b\\" {'.join(("a ", "")),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f:1:1: is empty"),
        ("a: 1\nb", "f:2:2: ends inside a line: the file is not complete"),
        ("a: 1\nb 2\n", "f:2:3: expected `:` or `{` after b"),
        ("a: 1\n  b {\n c: 1\n", "f:4:1: ends inside the message of line 2: the file is not complete"),
        ('a: "x\n', "f:1:4: a string is not closed"),
        ("a: 1\n}\n", "f:2:1: expected the name of a field"),
        ("a: }\n", "f:1:4: expected a value"),
        ("a { b: 1 >\n", "f:1:10: expected the name of a field"),
        ("a: [1, {\n", "f:1:8: expected a value"),
        ("a {\n" * (MAX_DEPTH + 1), f"f:{MAX_DEPTH + 1}:3: messages are nested more than {MAX_DEPTH} deep"),
    ],
)
def test_a_fault_has_its_line_and_column(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_text_proto(text, "f")
    assert str(error.value) == message


def test_outer_strings_of_debug_options_are_not_escaped() -> None:
    text = 'a: "re\\.x "y""\nb: {\n  key: "k\\"" value: "1"\n}\nc: 2\n'
    message, fault = parse_lines(text, "f")
    assert (joined_entries(message), fault) == ({"a": 're\\.x "y"', 'b.k\\"': "1", "c": "2"}, None)


def test_lines_behind_a_fault_are_read() -> None:
    message, fault = parse_lines("a: 1\nversion 2 = b\nc: 3\n!\n", "f")
    assert joined_entries(message) == {"a": "1", "c": "3"}
    assert str(fault) == "f:2:9: expected `:` or `{` after version"


def test_the_last_line_of_a_half_written_file_does_not_count() -> None:
    message, fault = parse_lines("a: 1\nb: tr", "f")
    assert joined_entries(message) == {"a": "1"}
    assert str(fault) == "f:2:6: ends inside a line: the file is not complete"


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a: \xff\r\n")
    assert read_file(path) == "a: \\xff\n"
    with pytest.raises(InputError, match="is larger than 0 MiB"):
        read_file(path, 3)
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "none")


@pytest.mark.parametrize("line", ["a { b: 1 }\n", "!\n", "a { \n", 'a: "" "" \n', "a: [\n", "a: {\n!\n"])
def test_texts_are_read_in_linear_time(line: str) -> None:
    def parse(count: int) -> None:
        parse_lines(line * count, "f")

    assert_linear(parse, 2000)
