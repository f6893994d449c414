"""White space and comments may stand between any two tokens, and change nothing.

The tokens are those of XLA's lexer, read by a small lexer in this file.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from tests.hlo.generate import ORDINARY, Writer
from tests.hlo.reading import EVERYTHING, contents, module, problems

DATA = Path(__file__).parents[2] / "data"
TEXTS = [
    "handmade/replica_groups.txt",
    "handmade/operator_attributes.txt",
    "handmade/literals.txt",
    "jax_0_4_13/scan_forward.after.txt",
]
OPCODES = [*ORDINARY, "constant", "parameter", "fusion", "call", "all-reduce"]

TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|//[^\n]*)
    |(?P<string>"(?:[^"\\]|\\.)*"|'[^'\n]*')
    |(?P<labels>[0-9a-z?]{2,}_[0-9a-z?]{2,}->[0-9a-z?]{2,}|-?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)*|\d+(?:x\d+)+)
    |(?P<attribute>[A-Za-z_][\w.\-]*=(?!=)|[A-Za-z_][\w.\-]*:)
    |(?P<word>(?!T\()%?[A-Za-z_][\w.\-]*(?:\#\d+)*|-?(?:nan\(0x[0-9a-f]+\)|inf|nan)|-?[\d.]+(?:e[+-]?\d+)?)
    |(?P<mark>->|<=|T\(|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
DICTIONARY = re.compile(r"(?:backend_config|frontend_attributes)=$")
WORD_START, WORD_END = re.compile(r"[\w%.\-\"'=]"), re.compile(r"[\w.\-\"')\]}]$")
BLANKS = [" ", "  ", "\n", "\t", " \n  ", "/* a ( comment */", "/**/", " // to the end\n", "\n\n", "/* two\nlines = */"]


def tokens(text: str) -> list[str]:
    """Return the tokens of a text. A dictionary is a single token, because its content is no HLO."""
    layouts: list[str] = []
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        assert match is not None
        position = match.end()
        if match[0] == "{" and layouts and DICTIONARY.match(layouts[-1]):
            position = dictionary_end(text, match.start())
        if match["space"] is None:
            layouts.append(text[match.start() : position])
    return layouts


def dictionary_end(text: str, start: int) -> int:
    depth = 0
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[{}]').finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise AssertionError(text[start:])


def with_blanks(text: str, seed: int) -> str:
    """Return the same tokens with other blanks between them."""
    chance = random.Random(seed)  # noqa: S311 - no secrets
    rate = chance.choice([0.02, 0.2, 0.9])
    parts: list[str] = []
    before = ""
    for token in tokens(text):
        needed = bool(WORD_END.search(before) and WORD_START.match(token))
        if chance.random() < rate:
            parts.append(chance.choice(BLANKS))
        elif needed or before in {",", "{", "}"}:
            parts.append(" ")
        if token == "=" and not (parts and parts[-1].endswith((" ", "\n", "\t", "/"))):
            parts.append(" ")
        parts.append(token)
        before = token
    return "".join(parts) + "\n"


def without_blanks(value: Any) -> Any:
    """Return a reading with the text of each attribute reduced to its tokens."""
    if isinstance(value, dict):
        return {key: without_blanks(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_blanks(item) for item in value]
    return "".join(tokens(value)) if isinstance(value, str) else value


def pieces(text: str, least: int) -> Iterator[str]:
    """Yield a text in pieces of whole lines; each but the last has at least `least` characters."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + least - 1) + 1 or len(text)
        yield text[start:end]
        start = end


def check_reading(text: str, seed: int, piece_chars: int) -> None:
    header, _, rest = text.partition("\n")  # on a line of its own, as the reader searches for it
    other = f"{header}\n{with_blanks(rest, seed)}"
    assert tokens(other) == tokens(text)
    (parsed,) = read_modules(TextSource("text", pieces(other, piece_chars)), EVERYTHING)  # unmended: it is not pasted
    expected = module(text)
    assert problems(expected) == [] or "is not defined" in str(problems(expected))
    assert without_blanks(contents(parsed)) == without_blanks(contents(expected))


@example(7251, 1)  # the value of an attribute and the next row on a line: `1 i.0.1 = …`, as in a numbered listing
@settings(max_examples=60, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 50, 1 << 20]))
def test_blanks_between_tokens_do_not_change_a_random_module(seed: int, piece_chars: int) -> None:
    check_reading(Writer(seed).module(OPCODES)[0], seed, piece_chars)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", TEXTS)
def test_blanks_between_tokens_do_not_change_a_dump(name: str, seed: int) -> None:
    check_reading((DATA / name).read_text(encoding="utf-8"), seed, [1, 100, 1 << 20][seed % 3])


@pytest.mark.parametrize("name", TEXTS)
def test_a_dump_on_one_line_reads_the_same(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    header, _, rest = text.partition("\n")
    header_tokens = "".join(f" {token}" for token in tokens(rest)).replace("\n", " ")
    assert without_blanks(contents(module(f"{header}\n{header_tokens}\n"))) == without_blanks(contents(module(text)))
