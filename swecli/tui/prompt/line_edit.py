"""Decisions of the line editor as pure functions: words, line ends, continuation."""

from __future__ import annotations


def word_left(text: str, column: int) -> int:
    """Column of the start of the word before ``column``: blanks are skipped, then letters and digits, or one
    run of other characters."""
    position = column
    while position > 0 and text[position - 1].isspace():
        position -= 1
    if position == 0:
        return 0
    word = _is_word(text[position - 1])
    while position > 0 and not text[position - 1].isspace() and _is_word(text[position - 1]) == word:
        position -= 1
    return position


def word_right(text: str, column: int) -> int:
    """Column of the end of the word after ``column``."""
    position = column
    while position < len(text) and text[position].isspace():
        position += 1
    if position == len(text):
        return position
    word = _is_word(text[position])
    while position < len(text) and not text[position].isspace() and _is_word(text[position]) == word:
        position += 1
    return position


def blank_left(text: str, column: int) -> int:
    """Column of the start of what Ctrl+W removes: the blanks and the non-blanks before ``column``."""
    position = column
    while position > 0 and text[position - 1].isspace():
        position -= 1
    while position > 0 and not text[position - 1].isspace():
        position -= 1
    return position


def continues(line: str, column: int) -> bool:
    """Whether Enter behind this makes a new line: an odd number of backslashes ends the line at the cursor."""
    before = line[:column]
    slashes = len(before) - len(before.rstrip("\\"))
    return column == len(line) and slashes % 2 == 1


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
