r"""Text as people paste it -> text as XLA printed it.

What stood before each line is taken off (`prefixes`), lines of several ranks are put into a text for each, strings with `\n`
are undone, and colour codes, no-break spaces, HTML entities and line ends at a fixed column. Nothing of this touches a text
that needs none: a piece is passed on as it is unless something in it shows that it has to be mended, for which few lines are
looked at.
From there on each line is looked at. `places` says where the text stands in the input.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from hlo_inspect.hlo.mended_line import (
    FRESH,
    NO_BREAK_SPACES,
    JoinedLine,
    Line,
    unescaped,
    with_plain_spaces,
    without_colours,
    without_entities,
    wrapped_width,
)
from hlo_inspect.hlo.mended_text import PIECE_CHARS, MendedText
from hlo_inspect.hlo.prefixes import MAX_PREFIX, WINDOW, Match, Prefix, content_start, learn
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_PREFIXES = 16
MAX_TRIED = 100
PLAIN_STEP = 1 << 15
WIDTH_WINDOW, WIDTH_CHARS = 200, 1 << 15

_PLAIN_HEADER = lazy_pattern(r"HloModule[ \t]++%?[A-Za-z_][\w.\-]*+(?:,[ \t]*+[a-z_]++=|,?[ \t]*+$)", re.ASCII)
_BREAKS = lazy_pattern(rf'^[^"\n]*[{NO_BREAK_SPACES}][^\n]*$', re.MULTILINE)
_CODE = lazy_pattern(rf"HloModule|ENTRY|(?:ROOT|%?[\w.\-]+)[ {NO_BREAK_SPACES}]=|->[ {NO_BREAK_SPACES}]", re.ASCII)
_ENTITY = lazy_pattern(r"(?:(?<=\) )-|(?<=\))-|-)&gt;|=&quot;|&lt;=\[|&nbsp;")
_ESCAPE_CODE = lazy_pattern(r"\x1b[\[(]")
_ESCAPED = lazy_pattern(
    r"HloModule[ \t]++%?[A-Za-z_][\w.\-]*+[^\n]*?\\++n(?:[\"'`]|\\++n|%|ENTRY[ \t]|FileNames\\|[A-Za-z_][\w.\-]*+ (?:\(|\{))",
    re.ASCII,
)
_STRING = lazy_pattern(r"[ \t]*+[\[(]*+[A-Za-z]{0,2}([\"'])")
_BODY = {quote: lazy_pattern(rf"(?:[^\\{quote}]++|\\.)*+", re.DOTALL) for quote in ("'", '"', "`")}


class _Lines:
    """The lines of pieces, of which some can be looked at ahead."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._waiting: deque[str] = deque()

    def add(self, piece: str) -> None:
        self._waiting.extend(piece.split("\n")[:-1])

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def next(self) -> str:
        return self._waiting.popleft()

    def ahead(self, count: int) -> list[str]:
        """The next lines, as many as there are."""
        while len(self._waiting) < count and (piece := next(self._pieces, "")):
            self.add(piece)
        return list(islice(self._waiting, count))


class Mender:
    """Mends one input: its `text`. Once `pieces` is used up, `others` are the texts of other writers."""

    def __init__(self) -> None:
        self.text = MendedText()
        self._last = self.text
        self._streams: dict[tuple[str, ...], MendedText] = {}
        self._number = 0  # of the next line of the input, from the first line on that was mended
        self._prefixes: list[Prefix] = []
        self._spaces = self._entities = self._colours = False
        self._string: str | None = None  # how a line begins in which a string holds the text
        self._unended: Line | None = None  # what a string holds of a line that goes on in the next one
        self._width = 0
        self._joined: tuple[Line, JoinedLine, MendedText] | None = None
        self._rest: list[tuple[int, int, int]] = []

    def pieces(self, raw: Iterator[str], next_line: Callable[[], int]) -> Iterator[str]:
        """The first text, in pieces that end with a line. `next_line` gives the number of a piece's first line, as long as no
        line was mended.
        """
        lines = _Lines(raw)
        for piece in raw:
            if not self._needs_mending(piece):
                if self._number:
                    self._pass(piece)
                yield piece
                continue
            if not self._number:
                self._number = self.text.lines = next_line()
            lines.add(piece)
            while lines:
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

    @property
    def others(self) -> list[MendedText]:
        """The texts of the other writers."""
        return [stream for stream in dict.fromkeys(self._streams.values()) if stream is not self.text]

    # -- whether a text needs it ----------------------------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """Whether nothing that was found holds for what follows."""
        marks = self._spaces or self._entities or self._colours
        return not (marks or self._prefixes or self._string or self._width or len(self._streams) > 1)

    def _needs_mending(self, piece: str) -> bool:
        if not piece.isascii() and not self._spaces:
            self._spaces = any(_CODE.search(found[0]) for found in islice(_BREAKS.finditer(piece), MAX_TRIED))
        self._entities = self._entities or _holds_outside_strings(piece, "&", _ENTITY)
        self._colours = self._colours or _holds_outside_strings(piece, "\x1b", _ESCAPE_CODE)
        if not self._is_idle:
            return True
        return not _looks_plain(piece) and self._has_mark_inside(piece)

    def _has_mark_inside(self, piece: str) -> bool:
        """Whether a header or an entry stands behind something else in its line, or is wrapped."""
        last = piece.rfind("\n", 0, -1) + 1
        if self._is_prefixed(piece[last : last + (MAX_PREFIX << 1)], []):
            return True
        tried = 0
        for word in ("HloModule", "ENTRY"):  # a pattern of both would take ten times as long
            at = piece.find(word)
            while at >= 0:
                start = piece.rfind("\n", 0, at) + 1
                end = piece.find("\n", at)
                before = piece[start:at]
                tried += not before.isspace() and bool(before)
                if not before.strip():
                    if word == "HloModule" and (
                        _is_escaped(piece[start:end]) or self._width_at(piece[start : start + WIDTH_CHARS])
                    ):
                        return True
                elif word == "HloModule" and tried <= MAX_TRIED and _is_escaped(piece[start:end]):
                    return True
                elif len(before) <= MAX_PREFIX:
                    line = piece[start:end]
                    following = piece[end + 1 : end + 1 + WIDTH_CHARS].split("\n", WINDOW)[:WINDOW]
                    if self._is_prefixed(line, following) or tried > MAX_TRIED:
                        return True
                at = piece.find(word, at + 1)
        return False

    @staticmethod
    def _is_prefixed(line: str, following: list[str]) -> bool:
        start = content_start(line)
        if start is None or not line[:start].strip():
            return False
        is_cut = len(following) < WINDOW
        return learn(line, start, following, is_cut=is_cut) is not None or _is_header_of(line, start, following)

    def _pass(self, piece: str) -> None:
        """Counts the lines of a piece that needs nothing."""
        self.text.places.add(self.text.lines, 0, self._number, 1)
        count = piece.count("\n")
        self.text.lines += count
        self._number += count

    # -- line by line ---------------------------------------------------------------------------------------------------

    def _take(self, lines: _Lines) -> None:
        line = self._cleaned(Line.of(lines.next(), self._number))
        self._number += 1
        stripped, match = self._without_prefix(line, lines)
        stream = self._last
        if match is not None:
            stream = self._last = self._stream_of(match, line.text[: match.length], stripped, lines)
        for one in self._strings(stripped):
            self._put(one, stream, lines)

    def _cleaned(self, line: Line) -> Line:
        if self._colours and "\x1b" in line.text:
            self.text.notes["colour codes are left out"] = None
            line = without_colours(line)
        if self._entities and "&" in line.text:
            self.text.notes["HTML entities are undone"] = None
            line = without_entities(line)
        if self._spaces and not line.text.isascii():
            self.text.notes["no-break spaces are read as spaces"] = None
            line = with_plain_spaces(line)
        return line

    def _ahead(self, lines: _Lines, count: int = WINDOW) -> list[str]:
        return [self._cleaned(Line.of(text, 0)).text for text in lines.ahead(count)]

    def _without_prefix(self, line: Line, lines: _Lines) -> tuple[Line, Match | None]:
        """The line without what stood before it. Where that is new, it is learned from the lines that follow."""
        text = line.text
        if self._string is not None or not text:
            return line, None
        match = self._match(text)
        if match is not None and not ("HloModule" in text and self._is_behind_more(text, match.length)):
            return line.part(match.length), match
        start = content_start(text)
        if start is None or not text[:start].strip():
            return self._without_old_side(line), None
        return (line, None) if _is_escaped(text) else self._without_new_prefix(line, start, self._ahead(lines))

    def _without_new_prefix(self, line: Line, start: int, following: list[str]) -> tuple[Line, Match | None]:
        """The line in which HLO begins at `start` without what stands before it, if that is a prefix."""
        learned = learn(line.text, start, following)
        match = learned.take_off(line.text) if learned is not None else None
        if learned is not None and match is not None:
            self._note_prefix(learned)
            self._prefixes = [learned, *self._prefixes[: MAX_PREFIXES - 1]]
            return line.part(match.length), match
        if _is_header_of(line.text, start, following):
            self.text.notes[f'the line of the header began with "{line.text[:start]}"'] = None
            return line.part(start), None
        return line, None

    def _note_prefix(self, prefix: Prefix) -> None:
        since = f"from line {self._number - 1} on " if self._prefixes else ""
        self.text.notes[f'{since}each line began with "{prefix.sample}"'] = None

    @staticmethod
    def _is_behind_more(text: str, length: int) -> bool:
        start = content_start(text[length:])
        return bool(start and text[length : length + start].strip())

    def _without_old_side(self, line: Line) -> Line:
        """The line, or an empty one for a line of the old side of a diff whose new side is read."""
        if self._prefixes and line.text.startswith("-") and self._prefixes[0].sample.strip() == "+":
            self.text.notes["lines of the old side of the diff are left out"] = None
            return line._replace(text="")
        return line

    def _stream_of(self, match: Match, sample: str, line: Line, lines: _Lines) -> MendedText:
        """Whose text a line belongs to: that of its key; without one that of the line before it."""
        key = match.key
        if key and key not in self._streams:
            self._streams[key] = self._new_stream(line, lines, sample)
        return self._streams[key] if key else self._last

    def _new_stream(self, line: Line, lines: _Lines, sample: str) -> MendedText:
        """A text of its own for a new key, where it begins with a module or others come back; else it goes on with the last."""
        if not self._streams:
            return self._last
        if not line.text.lstrip().startswith("HloModule"):
            matches = [self._match(text) for text in self._ahead(lines)]
            if not any(match is not None and match.key in self._streams for match in matches):
                return self._last
        return MendedText(f'of several writers these are the lines that begin as "{sample}"')

    def _match(self, text: str) -> Match | None:
        return next((match for prefix in self._prefixes if (match := prefix.take_off(text)) is not None), None)

    def _strings(self, line: Line) -> Iterator[Line]:
        r"""The lines in the string that a line holds, or the line itself; without `\n` at its end it goes on in the next."""
        text = line.text
        if self._string is None:
            if not _is_escaped(text):
                yield line
                return
            self._string = text[: text.index("HloModule")]
            self.text.notes["the text is unescaped: its line ends were written as \\n"] = None
        start = self._string_start(text)
        if start is None:
            self._string = None
            yield from self._ended_string()
            yield line
            return
        quote = self._string[-1:]
        end = len(text)
        if quote in _BODY:
            found = _BODY[quote].match(text, start)
            end = found.end() if found is not None else end
        ended = list(unescaped(line.part(start, end)))
        if self._unended is not None and self._unended.text:
            before, first = self._unended, ended[0]
            columns = tuple((offset + len(before.text), column) for offset, column in first.columns)
            ended[0] = before._replace(text=before.text + first.text, columns=(*before.columns, *columns))
        self._unended = ended.pop()
        yield from ended

    def _string_start(self, text: str) -> int | None:
        """Where the string begins in a line that is as the first one of them, or is a string alone."""
        begin = self._string or ""
        if text.startswith(begin) and (begin or "HloModule" in text):
            return len(begin)
        string = _STRING.match(text)
        return string.end() if string is not None and begin and string[1] == begin[-1] else None

    def _ended_string(self) -> Iterator[Line]:
        if self._unended is not None and self._unended.text:
            yield self._unended
        self._unended = None

    # -- wrapped lines --------------------------------------------------------------------------------------------------

    def _put(self, line: Line, stream: MendedText, lines: _Lines) -> None:
        """Adds a line to its text, once it is known that the next one does not continue it."""
        if not self._width and self._string is None and line.text.startswith("HloModule"):
            following = "\n".join([line.text + " " * (line.size - len(line.text)), *self._ahead(lines, WIDTH_WINDOW)])
            self._width = self._width_at(following)
            if self._width:
                self.text.notes[f"lines that were wrapped at column {self._width} are joined"] = None
        if not self._width:
            stream.emit(line, [])
            return
        if self._joined is not None:
            before, joined, its_stream = self._joined
            if before.size == self._width and its_stream is stream and joined.is_continued_by(line.text):
                self._rest += [(joined.length + offset, line.number, column) for offset, column in line.columns]
                joined.add(line.text)
                self._joined = before._replace(size=line.size), joined, stream
                return
            self._put_joined()
        self._joined = line, JoinedLine(line.text), stream

    def _put_joined(self) -> None:
        if self._joined is not None:
            line, joined, stream = self._joined
            stream.emit(line._replace(text=joined.text), self._rest)
            self._joined, self._rest = None, []

    def _width_at(self, text: str) -> int:
        """The column at which the lines of a text are wrapped, which begins with a module; 0 where they are not."""
        lines = text.split("\n", WIDTH_WINDOW)[:WIDTH_WINDOW]
        return wrapped_width(lines, self._rest_of)

    def _rest_of(self, text: str) -> str:
        match = self._match(text)
        return text[match.length :] if match is not None else text

    def _flush(self) -> None:
        """The end of the input, or of what has to be mended."""
        for line in self._ended_string():
            self._last.emit(line, [])
        self._put_joined()


def _looks_plain(piece: str) -> bool:
    """Whether some lines of a piece, the last one among them, are of a module that is printed as it is. A short piece never
    does: all of it is looked at.
    """
    if len(piece) < PLAIN_STEP * 2:
        return False
    end = 0  # of the line that was looked at last
    for at in (*range(0, len(piece) - 1, PLAIN_STEP), len(piece) - 1):
        if at < end:
            continue
        start, end = piece.rfind("\n", 0, at) + 1, piece.find("\n", at) + 1 or len(piece)
        if not FRESH.match(piece, start) or (piece.startswith("HloModule", start) and _is_escaped(piece[start : start + 4096])):
            return False
    return True


def _holds_outside_strings(piece: str, first: str, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern, which starts with `first` or a character before it, stands where no string of a module can be."""
    at = piece.find(first)
    for _ in range(MAX_TRIED):
        if at < 0:
            return False
        if pattern.match(piece, at) or pattern.match(piece, at - 1):
            start = piece.rfind("\n", 0, at) + 1
            if piece.find('"', start, at) < 0:
                return True
        at = piece.find(first, at + 1)
    return False


def _is_escaped(line: str) -> bool:
    r"""Whether a line holds a header behind which a line end is written as `\n`; one in a string of the header is none."""
    at = line.find("HloModule")
    if at < 0:
        return False
    escaped = _ESCAPED.match(line, at)
    return escaped is not None and (line[:at].rstrip().endswith(("'", '"', "`")) or "ENTRY" in line[escaped.end() - 6 :])


def _is_header_of(line: str, start: int, following: list[str]) -> bool:
    """Whether a line ends in the header of a module that follows as it is: a log that names itself before its first line."""
    before = line[:start]
    if not _PLAIN_HEADER.match(line, start) or (before.endswith(("'", '"')) and not before.endswith(("'''", '"""'))):
        return False  # in quotes it may be a value in the header of another module
    texts = [one for one in following if one.strip()]
    return bool(texts) and FRESH.match(texts[0]) is not None and (content_start(texts[0]) or 0) < 3
