r"""Pasted text -> text as XLA printed it.

The mender removes prefixes (`prefixes`) and separates the lines of several ranks. It also undoes strings with `\n`, colour
codes, no-break spaces, HTML entities and line ends at a fixed column. A piece without a sign of these passes unchanged; only a
few of its lines are examined. After the first sign, every line is examined. `places` maps the text to the input.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from hlo_inspect.hlo.pasted.mended_text import (
    FRESH,
    PIECE_CHARS,
    WIDTH_WINDOW,
    JoinedLine,
    Line,
    MendedText,
    unescaped,
    wrapped_width,
)
from hlo_inspect.hlo.pasted.prefixes import MAX_PREFIX, WINDOW, Match, Prefix, content_start, learn, prefixed_start
from hlo_inspect.hlo.pasted.strings import MAX_TRIED, header_in_strings, next_string, string_end, string_start
from hlo_inspect.hlo.pasted.unified_diff import NEW, UnifiedDiff, diff_start
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_PREFIXES = 16
PLAIN_STEP = 1 << 15
WIDTH_CHARS = 1 << 15

_PLAIN_HEADER = lazy_pattern(r"HloModule[ \t]++%?[A-Za-z_][\w.\-]*+(?:,[ \t]*+[a-z_]++=|,?[ \t]*+$)", re.ASCII)
_NO_BREAK_SPACES = "\u00a0\u2007\u202f"
_BREAKS = lazy_pattern(rf'^[^"\n]*[{_NO_BREAK_SPACES}][^\n]*$', re.MULTILINE)
_CODE = lazy_pattern(rf"HloModule|ENTRY|(?:ROOT|%?[\w.\-]+)[ {_NO_BREAK_SPACES}]=|->[ {_NO_BREAK_SPACES}]", re.ASCII)
_ENTITY = lazy_pattern(r"&(?:(?<=-&)gt;|(?<==&)quot;|lt;=\[|nbsp;)")
_COLOUR = lazy_pattern(r"\x1b\[[0-9;?]*+[A-Za-z]|\x1b[()][A-Z0-9]|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)|\x1b", re.ASCII)
_ANY_ENTITY = lazy_pattern(r"&(?:[a-z]{2,6}|#\d{1,6}|#x[0-9a-fA-F]{1,5});", re.ASCII)
_SPACES = str.maketrans(dict.fromkeys(_NO_BREAK_SPACES, " "))
_ESCAPE_CODE = lazy_pattern(r"\x1b[\[(]")


class _Lines:
    """The lines of pieces, with lookahead."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self.waiting: deque[str] = deque()

    def add(self, piece: str) -> None:
        self.waiting.extend(piece.split("\n")[:-1])

    def peek(self, count: int) -> Iterator[str]:
        """Return the next lines, up to `count`."""
        while len(self.waiting) < count and (piece := next(self._pieces, "")):
            self.add(piece)
        return islice(self.waiting, count)


class Mender:
    """Mender of one input: its `text`. After `pieces` is exhausted, `others` are the texts of other writers."""

    def __init__(self) -> None:
        self.text = MendedText()
        self.others: list[MendedText] = []
        self._last = self.text
        self._streams: dict[tuple[str, ...], MendedText] = {}  # by writer
        self._number = 0  # of the next line of the input; 0 before the first mended line
        self._prefixes: list[Prefix] = []
        self._spaces = self._entities = self._colours = False
        self._string: str | None = None  # start of a line whose string holds the text
        self._unended: Line | None = None  # the part in this string of a line that continues in the next string
        self._width = 0
        self._joined: tuple[JoinedLine, MendedText] | None = None
        self._diff: UnifiedDiff | None = None

    def pieces(self, raw: Iterator[str], next_line: Callable[[], int]) -> Iterator[str]:
        """Yield the first text in whole lines. `next_line` returns the number of a piece's first line until one is mended."""
        lines = _Lines(raw)
        for piece in raw:
            if (self._is_idle and piece.isspace()) or not self._needs_mending(piece):
                if self._number:
                    self._pass(piece)
                yield piece
                continue
            if not self._number:
                self._number = self.text.lines = next_line()
            lines.add(piece)
            while lines.waiting:
                self._take(lines)
                if self.text.size > PIECE_CHARS:
                    yield self.text.taken()
                    for stream in self.others:
                        stream.keep()
            if self._is_idle:
                self._flush()
            if self.text.out:
                yield self.text.taken()
        if self._number:
            self._flush()
            if self.text.out:
                yield self.text.taken()

    # -- signs of text to mend ------------------------------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """True if no sign in earlier lines applies to later lines."""
        marks = self._spaces or self._entities or self._colours
        return not (marks or self._prefixes or self._string or self._width or self.others)

    def _needs_mending(self, piece: str) -> bool:
        if not piece.isascii() and not self._spaces:
            self._spaces = any(_CODE.search(match[0]) for match in islice(_BREAKS.finditer(piece), MAX_TRIED))
        self._entities = self._entities or ("&" in piece and _holds_outside_strings(piece, _ENTITY))
        self._colours = self._colours or ("\x1b" in piece and _holds_outside_strings(piece, _ESCAPE_CODE))
        if not self._is_idle:
            return True
        # a short piece is searched whole
        return not (len(piece) >= PLAIN_STEP * 2 and _looks_plain(piece)) and self._has_mark_inside(piece)

    def _has_mark_inside(self, piece: str) -> bool:
        """Return True if other text precedes a header or an entry, or the text is escaped, wrapped or a diff."""
        if "\n@@ -" in piece and diff_start(piece) >= 0:
            return True
        last = piece.rfind("\n", 0, -1) + 1
        if not FRESH.match(piece, last) and _is_prefixed(piece[last : last + (MAX_PREFIX << 1)], []):
            return True
        tried = 0
        for word in ("HloModule", "ENTRY"):  # a pattern of both would take ten times as long
            is_header = word == "HloModule"
            position = piece.find(word)
            while position >= 0:
                start, end = piece.rfind("\n", 0, position) + 1, piece.find("\n", position)
                is_first = not piece[start:position].strip()
                tried += not is_first
                may_be_string = piece[position - 1] in "\"'" or piece.find("\\n", position, end) >= 0
                if is_header and may_be_string and tried <= MAX_TRIED and _is_in_string(piece, start, end):
                    return True
                if is_first:
                    if is_header and wrapped_width(piece[start : start + WIDTH_CHARS], self._rest_of):
                        return True
                elif position - start <= MAX_PREFIX:
                    following = piece[end + 1 : end + 1 + WIDTH_CHARS].split("\n", WINDOW)[:WINDOW]
                    if tried > MAX_TRIED or _is_prefixed(piece[start:end], following):
                        return True
                position = piece.find(word, position + 1)
        return False

    def _pass(self, piece: str) -> None:
        """Count the lines of a piece that stays unchanged."""
        self.text.places.add(self.text.lines, 0, self._number, 1)
        count = piece.count("\n")
        self.text.lines += count
        self._number += count

    # -- line by line ---------------------------------------------------------------------------------------------------

    def _take(self, lines: _Lines) -> None:
        line = self._cleaned(Line.from_input(lines.waiting.popleft(), self._number))
        self._number += 1
        if self._diff is None and line.text.startswith("--- ") and diff_start("\n".join([line.text, *lines.peek(2)])) == 0:
            self._diff = self._new_diff()
        if self._diff is not None:
            for side, part in self._diff.take(line):
                (self.others[-1] if side == NEW else self.text).emit(part)
            return
        stripped, match = self._without_prefix(line, lines)
        if match is not None and match.key:  # a line without a key continues the last text
            if match.key not in self._streams:
                self._streams[match.key] = self._new_stream(stripped, lines, line.text[: match.length])
            self._last = self._streams[match.key]
        for part in self._strings(stripped, lines):
            self._put(part, self._last, lines)

    def _cleaned(self, line: Line) -> Line:
        if self._colours and "\x1b" in line.text:
            self._note("colour codes were removed")
            line = line.substituted(_COLOUR, lambda _: "")
        if self._entities and "&" in line.text:
            import html

            self._note("HTML entities were decoded")
            line = line.substituted(_ANY_ENTITY, lambda match: html.unescape(match[0]).translate(_SPACES))
        if self._spaces and not line.text.isascii():
            self._note("no-break spaces were replaced by spaces")
            line = line._replace(text=line.text.translate(_SPACES))
        return line

    def _note(self, note: str) -> None:
        self.text.notes[note] = None

    def _next_texts(self, lines: _Lines, count: int = WINDOW) -> list[str]:
        return [self._cleaned(Line.from_input(text, 0)).text for text in lines.peek(count)]

    def _match(self, text: str) -> Match | None:
        return next((match for prefix in self._prefixes if (match := prefix.take_off(text)) is not None), None)

    def _rest_of(self, text: str) -> str:
        match = self._match(text)
        return text[match.length :] if match is not None else text

    def _without_prefix(self, line: Line, lines: _Lines) -> tuple[Line, Match | None]:
        """Return the line without its prefix. Learn a new prefix from the lines that follow."""
        text = line.text
        if self._string is not None or not text:
            return line, None
        match = self._match(text)
        if match is not None and not ("HloModule" in text and prefixed_start(text[match.length :]) is not None):
            return line.part(match.length), match
        start = prefixed_start(text)
        if start is None:
            is_old = self._prefixes and text.startswith("-") and self._prefixes[0].sample.strip() == "+"
            if is_old:
                self._note("lines that the diff removes were left out")
            return line._replace(text="") if is_old else line, None
        following = self._next_texts(lines)
        if header_in_strings(text, following) is not None:
            return line, None
        return self._without_new_prefix(line, start, following)

    def _without_new_prefix(self, line: Line, start: int, following: list[str]) -> tuple[Line, Match | None]:
        """Return the line from `start`, the start of HLO, if a prefix precedes it; else the whole line."""
        learned = learn(line.text, start, following)
        match = learned.take_off(line.text) if learned is not None else None
        if learned is not None and match is not None:
            since = f" from line {self._number - 1} on" if self._prefixes else ""
            self._note(f'the prefix of each line, such as "{learned.sample}", was removed{since}')
            self._prefixes = [learned, *self._prefixes[: MAX_PREFIXES - 1]]
            return line.part(match.length), match
        if _is_header_of(line.text, start, following):
            self._note(f'the text "{line.text[:start]}" before the header was removed')
            return line.part(start), None
        return line, None

    def _new_stream(self, line: Line, lines: _Lines, sample: str) -> MendedText:
        """Return a new text for a new key if a module or an earlier key follows; else the last text."""
        if not self._streams:
            return self._last
        if not line.text.lstrip().startswith("HloModule"):
            matches = [self._match(text) for text in self._next_texts(lines)]
            if not any(match is not None and match.key in self._streams for match in matches):
                return self._last
        self.others.append(MendedText(f'the input has several writers; these are the lines that begin like "{sample}"'))
        return self.others[-1]

    def _new_diff(self) -> UnifiedDiff:
        self._flush()
        self._note("the input is a diff; this is its old side")
        self.others.append(MendedText("the input is a diff; this is its new side"))
        return UnifiedDiff()

    # -- text in strings ------------------------------------------------------------------------------------------------

    def _strings(self, line: Line, lines: _Lines) -> Iterator[Line]:
        r"""Yield the lines in a line's strings, or the line itself.

        A string without `\n` at its end goes on in the next string, unless a comma separates the two.
        """
        text, start = line.text, None
        if self._string is not None:
            begin = self._string
            is_like_first = text.startswith(begin) and (begin or "HloModule" in text)
            start = len(begin) if is_like_first else string_start(text, begin[-1:])
            if start is None:
                self._string = None
                yield from self._ended_string()
        if start is None:
            start = self._enter_strings(text, self._next_texts(lines) if "HloModule" in text else ())
            if start is None:
                yield line
        while start is not None:
            end = string_end(text, start, text[start - 1 : start])
            ended = list(unescaped(line.part(start, end)))
            ended[0] = Line.joined([*self._ended_string(), ended[0]])
            self._unended = ended.pop()
            yield from ended
            is_line, start = next_string(text, end)
            if is_line:
                yield from self._ended_string()
            if start is None and "HloModule" in text[end:]:
                start = self._enter_strings(text, (), end)

    def _enter_strings(self, text: str, following: Iterable[str], position: int = 0) -> int | None:
        """Return the start of the first string with a header from `position` on, whose line its strings begin like."""
        start = header_in_strings(text, following, position)
        if start is not None:
            self._string = text[:start]
            self._note("escapes such as \\n were decoded")
        return start

    def _ended_string(self) -> list[Line]:
        """Return the rest of a string as a list; empty if there is none."""
        unended, self._unended = self._unended, None
        return [unended] if unended is not None and unended.text else []

    # -- wrapped lines --------------------------------------------------------------------------------------------------

    def _put(self, line: Line, stream: MendedText, lines: _Lines) -> None:
        """Add a line to its text, once the next line is known not to continue it."""
        if not self._width and self._string is None and line.text.startswith("HloModule"):
            following = "\n".join([line.text + " " * (line.width - len(line.text)), *self._next_texts(lines, WIDTH_WINDOW)])
            self._width = wrapped_width(following, self._rest_of)
            if self._width:
                self._note(f"lines wrapped at column {self._width} were joined")
        if not self._width:
            stream.emit(line)
            return
        if self._joined is not None:
            joined, its_stream = self._joined
            if joined.lines[-1].width == self._width and its_stream is stream and joined.is_continued_by(line.text):
                joined.add(line)
                return
        self._put_joined()
        self._joined = JoinedLine(line), stream

    def _put_joined(self) -> None:
        if self._joined is not None:
            joined, stream = self._joined
            stream.emit(Line.joined(joined.lines))
            self._joined = None

    def _flush(self) -> None:
        """End the input or the part to mend: emit the lines held back."""
        for line in self._ended_string():
            self._last.emit(line)
        self._put_joined()


def _looks_plain(piece: str) -> bool:
    """Return True if samples of a long piece, with its last line, look like a module as XLA prints it."""
    end = 0  # of the last examined line
    for position in (*range(0, len(piece) - 1, PLAIN_STEP), len(piece) - 1):
        if position < end:
            continue
        start, end = piece.rfind("\n", 0, position) + 1, piece.find("\n", position) + 1 or len(piece)
        if not FRESH.match(piece, start):
            return False
        if piece.startswith("HloModule", start):
            first = piece[start : start + WIDTH_CHARS]
            if header_in_strings(first[:4096], ()) is not None or wrapped_width(first, str):
                return False
    return True


def _holds_outside_strings(piece: str, pattern: re.Pattern[str]) -> bool:
    """Return True if a match is outside every string of a module."""
    positions = [match.start() for match in islice(pattern.finditer(piece), MAX_TRIED)]
    return any(piece.find('"', piece.rfind("\n", 0, position) + 1, position) < 0 for position in positions)


def _is_prefixed(line: str, following: list[str]) -> bool:
    """Return True if a line has a prefix. More lines may come after `following`."""
    start = prefixed_start(line)
    if start is None:
        return False
    is_cut = len(following) < WINDOW
    return learn(line, start, following, is_cut=is_cut) is not None or _is_header_of(line, start, following)


def _is_in_string(piece: str, start: int, end: int) -> bool:
    """Return True if a header in the line from `start` to `end` is in a string of a program or JSON."""
    following = piece[end + 1 : end + 1 + WIDTH_CHARS].split("\n", WINDOW)[:WINDOW]
    return header_in_strings(piece[start:end], following) is not None


def _is_header_of(line: str, start: int, following: list[str]) -> bool:
    """Return True if a line ends in the header of the module that follows, after a log's own text."""
    before = line[:start]
    if not _PLAIN_HEADER.match(line, start) or (before.endswith(("'", '"')) and not before.endswith(("'''", '"""'))):
        return False  # in quotes, it may be a value in another module's header
    texts = [text for text in following if text.strip()]
    return bool(texts) and FRESH.match(texts[0]) is not None and (content_start(texts[0]) or 0) < 3
