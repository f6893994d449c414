"""A position in text that arrives in pieces: lines, columns and bytes counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlo_inspect.hlo.read.cursor import Cursor, count_lines


def cursor_of(*pieces: str) -> Cursor:
    return Cursor(lambda _: iter(pieces))


def test_a_cursor_starts_before_the_first_piece() -> None:
    cursor = cursor_of("ab\n")
    assert (cursor.text, cursor.position, cursor.line, cursor.bytes_before) == ("\n", 1, 1, 0)


def test_more_adds_a_piece_and_drops_earlier_lines() -> None:
    cursor = cursor_of("ab\ncd\n", "ef\n")
    assert cursor.more()
    cursor.advance(cursor.text.index("d"))
    assert (cursor.line, cursor.column(), cursor.bytes_before) == (2, 2, 4)
    assert cursor.more()
    assert cursor.text == "\ncd\nef\n"
    assert cursor.text[cursor.position] == "d"
    assert cursor.column() == 2
    assert not cursor.is_final
    assert not cursor.more()
    assert cursor.is_final
    assert cursor.text == "\ncd\nef\n"
    assert (cursor.line, cursor.bytes_before) == (2, 4)


def test_more_adds_nothing_to_a_text_above_the_limit() -> None:
    cursor = cursor_of("abcd\n", "ef\n")
    assert cursor.more(4)
    assert not cursor.more(4)
    assert not cursor.is_final
    assert cursor.more(5)


def test_each_position_has_its_line_and_column() -> None:
    cursor = cursor_of("ab\n\ncde\n")
    cursor.more()
    places = []
    for position in range(1, len(cursor.text)):
        cursor.advance(position)
        places.append((cursor.line, cursor.column()))
    assert places == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 1),
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 4),
    ]


def test_bytes_before_the_cursor_are_those_of_utf_8() -> None:
    cursor = cursor_of("a\u00e9\u4e2d\n", "b\n")
    cursor.more()
    cursor.advance(4)
    assert cursor.bytes_before == 1 + 2 + 3
    cursor.next_line()
    assert cursor.bytes_before == 7
    cursor.more()
    cursor.next_line()
    assert (cursor.bytes_before, cursor.line) == (9, 3)


def test_next_line_stops_at_the_end_of_the_text() -> None:
    cursor = cursor_of("ab\ncd\n")
    cursor.more()
    cursor.next_line()
    cursor.next_line()
    cursor.next_line()
    assert (cursor.position, cursor.line) == (len(cursor.text), 3)


def test_a_source_can_get_the_line_of_each_piece_that_it_reads() -> None:
    asked: list[int] = []

    def pieces(next_line: Callable[[], int]) -> Iterator[str]:
        for piece in ("ab\ncd\n", "e\n", "f\n"):
            asked.append(next_line())
            yield piece

    cursor = Cursor(pieces)
    while cursor.more():
        cursor.next_line()
    assert asked == [1, 3, 4]


def test_twice_as_much_doubles_the_text() -> None:
    """A very long item is thus read again once per doubling, not once per piece."""
    cursor = cursor_of(*["x\n"] * 100)
    tries = 0
    while cursor.twice_as_much():
        tries += 1
    assert (len(cursor.text), cursor.is_final) == (201, True)
    assert tries <= 8


def test_lines_of_a_range_of_text_with_any_characters_are_counted() -> None:
    text = "a\n\u5757\n\udc80b\n\n"
    assert [count_lines(text, 0, end) for end in range(len(text) + 1)] == [0, 0, 1, 1, 2, 2, 2, 3, 4]
    assert count_lines(text, 2, 6) == 1
    assert count_lines(text, 5, 5) == 0
