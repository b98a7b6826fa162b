"""Vim keys: effect of each key on text and cursor in normal, visual and insert mode. Independent of the screen;
``vim_keys.py`` connects it to the editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Mode = Literal["insert", "normal", "visual", "visual line"]
Ask = Literal["", "older", "newer", "search", "no command"]
"""Request to the prompt: another history message, its search, or a notice that the key does nothing."""

INDENT = "    "
"""What > adds to a line and < removes."""
FAR = 1_000_000_000
"""Column that ``$`` sets for j and k."""


class Buffer(Struct, frozen=True):
    """``cursor`` is an offset in the text. ``atoms`` are spans that are only removed whole, such as a paste's
    placeholder."""

    text: str
    cursor: int
    atoms: tuple[tuple[int, int], ...] = ()


class Command(Struct, frozen=True):
    """One complete command. ``motion`` is the operator's own letter for whole lines; ``target`` is the letter after f,
    F, t, T and r."""

    motion: str
    operator: str = ""
    target: str = ""
    count: int | None = None

    @property
    def times(self) -> int:
        return self.count or 1


class Vim(Struct, frozen=True):
    """``keys`` are those of an incomplete command; ``wish`` is the column that j and k aim for; ``anchor`` is the start
    of the visual selection; ``inserting`` is the text at the start of insert mode."""

    mode: Mode = "insert"
    keys: tuple[str, ...] = ()
    register: str = ""
    whole_lines: bool = False
    found: tuple[str, str] = ("", "")
    wish: int | None = None
    anchor: int = 0
    inserting: Buffer | None = None
    change: Command | None = None
    """The newest change, for the dot command."""
    typed: str = ""
    """Text typed after it."""
    undo: tuple[Buffer, ...] = ()
    redo: tuple[Buffer, ...] = ()


class Step(Struct, frozen=True):
    """Result of a key."""

    vim: Vim
    buffer: Buffer
    ask: Ask = ""


class Target(Struct, frozen=True):
    """Destination of a motion. An operator affects the text between ``start`` and ``end``, or their whole lines."""

    cursor: int
    start: int
    end: int
    lines: bool = False


# --- positions in a text ---


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def settled(text: str, at: int) -> int:
    """Valid cursor position in normal mode: on a character, never behind a line's last one."""
    at = min(max(at, 0), len(text))
    return min(at, max(line_start(text, at), line_end(text, at) - 1))


def first_letter(text: str, at: int) -> int:
    start, end = line_start(text, at), line_end(text, at)
    return min(start + len(text[start:end]) - len(text[start:end].lstrip()), max(start, end - 1))


def _kind(char: str, big: bool) -> int:
    if char.isspace():
        return 0
    return 1 if big or char.isalnum() or char == "_" else 2


def _empty_line(text: str, at: int) -> bool:
    return text[at] == "\n" and (at == 0 or text[at - 1] == "\n")


def word_on(text: str, at: int, big: bool) -> int:
    """Start of the next word; an empty line counts as a word."""
    position, size = at, len(text)
    kind = _kind(text[at], big) if at < size else 0
    while position < size and kind and _kind(text[position], big) == kind:
        position += 1
    while position < size and text[position].isspace():
        if position > at and _empty_line(text, position):
            return position
        position += 1
    return position


def word_end(text: str, at: int, big: bool) -> int:
    """Last character of the word that ends after ``at``."""
    position, size = at + 1, len(text)
    while position < size and text[position].isspace():
        position += 1
    while position + 1 < size and _kind(text[position + 1], big) == _kind(text[position], big):
        position += 1
    return min(position, max(0, size - 1))


def word_back(text: str, at: int, big: bool) -> int:
    """Start of the previous word."""
    position = at - 1
    while position > 0 and text[position].isspace() and not _empty_line(text, position):
        position -= 1
    while (
        position > 0 and not text[position].isspace() and _kind(text[position - 1], big) == _kind(text[position], big)
    ):
        position -= 1
    return max(0, position)


def word_end_back(text: str, at: int, big: bool) -> int:
    """Last character of the word that ends before ``at``."""
    position, kind = at - 1, _kind(text[at], big) if at < len(text) else 0
    while position > 0 and kind and _kind(text[position], big) == kind:
        position -= 1
    while position > 0 and text[position].isspace() and not _empty_line(text, position):
        position -= 1
    return max(0, position)


def matching_bracket(text: str, at: int) -> int | None:
    """Place of the bracket that belongs to the first one from ``at`` on in its line."""
    first = next((position for position in range(at, line_end(text, at)) if text[position] in "()[]{}"), None)
    if first is None:
        return None
    pair = next(pair for pair in ("()", "[]", "{}") if text[first] in pair)
    step, depth, position = (1 if text[first] == pair[0] else -1), 0, first
    while 0 <= position < len(text):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position
        position += step
    return None


def _times(step: Callable[[str, int, bool], int], text: str, at: int, big: bool, count: int) -> int:
    for _ in range(min(count, len(text) + 1)):
        at = step(text, at, big)
    return at


def find_letter(text: str, at: int, kind: str, letter: str, count: int, *, again: bool = False) -> int | None:
    """Destination of f, F, t or T on this line; ``again`` skips the letter next to the cursor, as for a repeated t."""
    ahead = kind in "ft"
    step = 1 if ahead else -1
    position = at + step if again and kind in "tT" else at
    for _ in range(count):
        first, last = line_start(text, at), line_end(text, at)
        position = text.find(letter, position + 1, last) if ahead else text.rfind(letter, first, max(first, position))
        if position < 0:
            return None
    return position - step if kind in "tT" else position


_TURNED = {"f": "F", "F": "f", "t": "T", "T": "t"}
_PAIRS = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "B": "{}", "<": "<>", ">": "<>"}


def text_object(text: str, at: int, name: str, count: int = 1) -> tuple[int, int] | None:
    """Span of a text object such as iw, a" or i(: with a count, of so many words, or within so many brackets."""
    around, what = name[0] == "a", name[1]
    if what in "wW":
        span = _word_object(text, at, around, what == "W")
        for _ in range(count - 1):
            further = span and _word_object(text, span[1], around, what == "W")
            span = (span[0], further[1]) if span and further else None
        return span
    if what in "\"'`":
        return _quoted(text, at, what, around)
    if what in _PAIRS:
        return _bracketed(text, at, _PAIRS[what], around, count)
    return _paragraph_object(text, at, around)


def _paragraph_object(text: str, at: int, around: bool) -> tuple[int, int]:
    """The lines with text around the cursor, or the blank ones; ``around``: with the blank lines behind or before."""

    def is_blank(position: int) -> bool:
        return not text[line_start(text, position) : line_end(text, position)].strip()

    def end_of_run(position: int) -> int:
        blank, end = is_blank(position), line_end(text, position)
        while end < len(text) and is_blank(end + 1) == blank:
            end = line_end(text, end + 1)
        return end

    def start_of_run(position: int) -> int:
        blank, start = is_blank(position), line_start(text, position)
        while start > 0 and is_blank(start - 1) == blank:
            start = line_start(text, start - 1)
        return start

    start, end = start_of_run(at), end_of_run(at)
    if around and end < len(text):
        end = end_of_run(end + 1)
    elif around and start > 0:
        start = start_of_run(start - 1)
    return start, end


def _word_object(text: str, at: int, around: bool, big: bool) -> tuple[int, int] | None:
    first, last = line_start(text, at), line_end(text, at)
    if at >= last:
        return None

    def run(position: int, step: int, kind: int) -> int:
        while first <= position < last and _kind(text[position], big) == kind:
            position += step
        return position

    kind = _kind(text[at], big)
    start, end = run(at, -1, kind) + 1, run(at, 1, kind)
    if not around:
        return start, end
    if kind == 0:
        return start, run(end, 1, _kind(text[end], big)) if end < last else end
    behind = run(end, 1, 0)
    return (start, behind) if behind > end else (run(start - 1, -1, 0) + 1, end)


def _quoted(text: str, at: int, quote: str, around: bool) -> tuple[int, int] | None:
    first, last = line_start(text, at), line_end(text, at)
    places = [
        position for position in range(first, last) if text[position] == quote and text[position - 1 : position] != "\\"
    ]
    for left, right in zip(places[::2], places[1::2], strict=False):
        if at > right:
            continue
        if not around:
            return left + 1, right
        blanks = len(text[right + 1 : last]) - len(text[right + 1 : last].lstrip())
        return left if blanks else first + len(text[first:left].rstrip()), right + 1 + blanks
    return None


def _bracketed(text: str, at: int, pair: str, around: bool, count: int) -> tuple[int, int] | None:
    depth, left = 0, at
    while left >= 0:
        opens = text[left : left + 1] == pair[0]
        count -= opens and depth == 0
        if count == 0:
            break
        if depth or not opens:
            depth += (text[left : left + 1] == pair[1] and left != at) - opens
        left -= 1
    depth, right = 0, left + 1
    while left >= 0 and right < len(text) and not (text[right] == pair[1] and depth == 0):
        depth += (text[right] == pair[0]) - (text[right] == pair[1])
        right += 1
    if left < 0 or right >= len(text):
        return None
    return (left, right + 1) if around else (left + 1, right)


# --- motions ---

_LETTER_MOTIONS = frozenset("fFtT")
_MOTIONS = frozenset((*"hlwWbBeE0^$jkG{};, %_+-", "backspace"))
_OPERATORS = frozenset((*"dcy<>", "gu", "gU", "g~"))
_SHORT = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy", "delete": "dl"}
"""Abbreviations of an operator with a motion."""
_SIMPLE = frozenset((*"pPu~iIaAoOJvV./", "ctrl+r"))
_VISUAL = frozenset((*"dxXDcsSCyYpPuU~JoOvV<>",))
_WHOLE_LINES = frozenset("XDSCY<>")
"""Commands of visual mode for all lines of the selection."""
_OBJECTS = frozenset((*"wWp\"'`", *_PAIRS))


def _span(at: int, position: int) -> Target:
    return Target(position, min(at, position), max(at, position))


def _upto(at: int, position: int) -> Target:
    """Target that includes the character at its end."""
    return Target(position, min(at, position), max(at, position) + 1)


def motion(buffer: Buffer, vim: Vim, command: Command) -> Target | None:
    """Destination of the command's motion from the cursor; None if it can't move."""
    text, at, count = buffer.text, buffer.cursor, command.times
    name = command.motion
    match name:
        case "h" | "backspace":
            position = max(line_start(text, at), at - count)
            return _span(at, position) if position < at else None
        case "l" | " ":
            position = min(line_end(text, at), at + count)
            return _span(at, position) if position > at else None
        case "0":
            return _span(at, line_start(text, at))
        case "^":
            return _span(at, first_letter(text, at))
        case "$":
            for _ in range(count - 1):
                at = min(len(text), line_end(text, at) + 1)
            return _span(buffer.cursor, line_end(text, at))
        case "w" | "W":
            return _words(text, at, command)
        case "e" | "E":
            return _upto(at, _times(word_end, text, at, name == "E", count))
        case "b" | "B":
            return _span(at, _times(word_back, text, at, name == "B", count))
        case "f" | "F" | "t" | "T" | ";" | ",":
            return _to_letter(text, at, vim, command)
        case "j" | "k":
            return _lines_away(text, at, vim, count if name == "j" else -count)
        case "_" | "+" | "-":
            down = count - 1 if name == "_" else count if name == "+" else -count
            target = _lines_away(text, at, vim, down) if down else _span(at, at)
            return target and replace(target, cursor=first_letter(text, target.cursor), lines=True)
        case "ge" | "gE":
            return _upto(at, _times(word_end_back, text, at, name == "gE", count)) if at else None
        case "%":
            bracket = matching_bracket(text, at)
            return None if bracket is None else _upto(at, bracket)
        case "G" | "gg":
            return _to_line(text, at, command)
        case "{" | "}":
            return _span(at, _paragraph(text, at, name, count))
        case _:
            span = text_object(text, at, name, count) if len(name) == 2 else None
            return None if span is None else Target(span[0], *span, lines=name[1] == "p")


def _words(text: str, at: int, command: Command) -> Target:
    """w: with an operator it stays on its line, and ``cw`` keeps the blanks behind the word."""
    big = command.motion == "W"
    position = _times(word_on, text, at, big, command.times - 1)
    if command.operator == "c" and position < len(text) and not text[position].isspace():
        kind = _kind(text[position], big)
        while position < len(text) and _kind(text[position], big) == kind:
            position += 1
        return _span(at, position)
    target = word_on(text, position, big)
    if command.operator and "\n" in text[position:target]:
        target = line_end(text, position)
    return _span(at, target)


def _to_letter(text: str, at: int, vim: Vim, command: Command) -> Target | None:
    kind, letter, again = command.motion, command.target, False
    if kind in ";,":
        kind, letter = vim.found
        if not kind:
            return None
        kind, again = kind if command.motion == ";" else _TURNED[kind], True
    position = find_letter(text, at, kind, letter, command.times, again=again)
    if position is None:
        return None
    return _upto(at, position) if kind in "ft" else _span(at, position)


def _lines_away(text: str, at: int, vim: Vim, count: int) -> Target | None:
    column = at - line_start(text, at) if vim.wish is None else vim.wish
    position = at
    for moved in range(abs(count)):
        edge = line_end(text, position) + 1 if count > 0 else line_start(text, position) - 1
        if not 0 <= edge <= len(text):
            if moved == 0:
                return None
            break
        position = edge
    start = line_start(text, position)
    landed = min(start + column, max(start, line_end(text, position) - 1))
    return Target(landed, min(at, landed), max(at, landed), lines=True)


def _to_line(text: str, at: int, command: Command) -> Target:
    number = command.count or (1 if command.motion == "gg" else text.count("\n") + 1)
    position = 0
    for _ in range(number - 1):
        if line_end(text, position) == len(text):
            break
        position = line_end(text, position) + 1
    position = first_letter(text, position)
    return Target(position, min(at, position), max(at, position), lines=True)


def _paragraph(text: str, at: int, way: str, count: int) -> int:
    for _ in range(count):
        position = text.find("\n\n", at + 1) if way == "}" else text.rfind("\n\n", 0, max(0, at - 1))
        if position < 0:
            return len(text) if way == "}" else 0
        at = position + 1
    return at


# --- parsing of keys ---


def read(keys: tuple[str, ...], *, visual: bool = False) -> Command | Literal["more", "none"]:
    """Parse the keys into a command; "more" if they are incomplete."""
    count, rest = _number(keys)
    if not rest:
        return "more"
    key, rest = rest[0], rest[1:]
    if not visual and key in _SHORT:
        return _ended(Command(_SHORT[key][1], _SHORT[key][0], "", count), rest)
    operator = ""
    if not visual and (key in _OPERATORS or key + "".join(rest[:1]) in _OPERATORS):
        operator, rest = (key, rest) if key in _OPERATORS else (key + rest[0], rest[1:])
        more, rest = _number(rest)
        if not rest:
            return "more"
        count = None if count is None and more is None else (count or 1) * (more or 1)
        key, rest = rest[0], rest[1:]
        if key == operator[-1]:
            return _ended(Command(operator, operator, "", count), rest)
    if key == "g":
        return "more" if not rest else Command(key + rest[0], operator, "", count) if rest[0] in "geE" else "none"
    if key in _LETTER_MOTIONS or (key == "r" and not operator):
        return "more" if not rest else Command(key, operator, rest[0], count) if len(rest[0]) == 1 else "none"
    if key in "ia" and (operator or visual):
        if not rest:
            return "more"
        return Command(key + rest[0], operator, "", count) if rest[0] in _OBJECTS else "none"
    if key in _MOTIONS or (not operator and key in (_VISUAL if visual else _SIMPLE)):
        return _ended(Command(key, operator, "", count), rest)
    return "none"


def _ended(command: Command, rest: tuple[str, ...]) -> Command | Literal["none"]:
    return command if not rest else "none"


def _number(keys: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    size = 0
    while size < len(keys) and keys[size] in "0123456789" and (size or keys[0] != "0"):
        size += 1
    return (min(int("".join(keys[:size])), 9999) if size else None), keys[size:]


# --- changes ---


def press(vim: Vim, buffer: Buffer, key: str) -> Step:
    """Apply a key: a character, or the name of another key. In insert mode only "escape" has a meaning."""
    if vim.mode == "insert":
        return _leave_insert(vim, buffer) if key == "escape" else Step(vim, buffer)
    buffer = replace(buffer, cursor=settled(buffer.text, buffer.cursor))
    if key == "escape":
        return Step(replace(vim, mode="normal", keys=(), wish=None), buffer)
    keys = (*vim.keys, key)
    visual = vim.mode != "normal"
    command = read(keys, visual=visual)
    if command == "more":
        return Step(replace(vim, keys=keys), buffer)
    vim = replace(vim, keys=())
    if command == "none":
        return Step(vim, buffer, "" if len(keys) > 1 else "no command")
    if visual:
        return _in_visual(vim, buffer, command)
    return _run(vim, buffer, command)


def _leave_insert(vim: Vim, buffer: Buffer) -> Step:
    """Esc: the typed text becomes part of the change that started insert mode, repeated by its count."""
    began, typed = vim.inserting, ""
    if began is not None:
        head, tail = began.text[: began.cursor], began.text[began.cursor :]
        if len(buffer.text) >= len(began.text) and buffer.text.startswith(head) and buffer.text.endswith(tail):
            typed = buffer.text[len(head) : len(buffer.text) - len(tail)]
    count = vim.change.times if vim.change is not None and vim.change.motion in "iIaA" and began is not None else 1
    if typed and count > 1:
        more = typed * (count - 1)
        buffer = Buffer(
            buffer.text[: buffer.cursor] + more + buffer.text[buffer.cursor :], buffer.cursor + len(more), ()
        )
    undo = vim.undo
    if began is not None and undo and undo[-1].text == buffer.text:
        undo = undo[:-1]
    cursor = max(line_start(buffer.text, buffer.cursor), buffer.cursor - 1)
    vim = replace(vim, mode="normal", keys=(), inserting=None, typed=typed, undo=undo, wish=None)
    return Step(vim, replace(buffer, cursor=settled(buffer.text, cursor)))


def _run(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """Run a normal mode command."""
    if command.operator:
        return _operate(vim, buffer, command)
    text, at = buffer.text, buffer.cursor
    match command.motion:
        case "/":
            return Step(vim, buffer, "search")
        case "." if vim.change is not None:
            return _again(vim, buffer, replace(vim.change, count=command.count or vim.change.count))
        case ".":
            return Step(vim, buffer)
        case "u" | "ctrl+r":
            return _back_or_on(vim, buffer, command)
        case "v" | "V":
            return Step(replace(vim, mode="visual" if command.motion == "v" else "visual line", anchor=at), buffer)
        case "i" | "I" | "a" | "A" | "o" | "O":
            return _open(vim, buffer, command)
        case "p" | "P":
            return _put(vim, buffer, command)
        case "r":
            end = at + command.times
            if end > line_end(text, at):
                return Step(vim, buffer)
            return _changed(vim, buffer, command, at, end, command.target * command.times, end - 1)
        case "~":
            end = min(line_end(text, at), at + command.times)
            return _changed(vim, buffer, command, at, end, text[at:end].swapcase(), end)
        case "J":
            return _join(vim, buffer, command, max(1, command.times - 1))
        case _:
            return _move(vim, buffer, command)


def _move(vim: Vim, buffer: Buffer, command: Command) -> Step:
    target = motion(buffer, vim, command)
    if target is None:
        edge: Ask = "older" if command.motion == "k" else "newer" if command.motion == "j" else ""
        return Step(vim, buffer, edge if vim.mode == "normal" else "")
    wish = None
    if command.motion in "jk":
        wish = buffer.cursor - line_start(buffer.text, buffer.cursor) if vim.wish is None else vim.wish
    elif command.motion == "$":
        wish = FAR
    search = (command.motion, command.target) if command.motion in _LETTER_MOTIONS else vim.found
    return Step(replace(vim, wish=wish, found=search), replace(buffer, cursor=settled(buffer.text, target.cursor)))


def _operate(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """An operator with a motion, a text object or whole lines."""
    text, at = buffer.text, buffer.cursor
    if command.motion == command.operator:
        position = at
        for _ in range(command.times - 1):
            position = min(len(text), line_end(text, position) + 1)
        target: Target | None = Target(at, at, position, lines=True)
    else:
        target = motion(buffer, vim, command)
    if command.motion in _LETTER_MOTIONS:
        vim = replace(vim, found=(command.motion, command.target))
    if target is None or (target.start == target.end and not target.lines and command.operator != "c"):
        if not (command.operator == "c" and command.motion in ("l", "h")):  # s on an empty line inserts
            return Step(vim, buffer)
        target = Target(at, at, at)
    return _on_span(vim, buffer, command, target)


def _on_span(vim: Vim, buffer: Buffer, command: Command, target: Target) -> Step:
    """Apply the operator to a span."""
    text = buffer.text
    start, end = target.start, min(target.end, len(text))
    if target.lines:
        start, end = line_start(text, start), line_end(text, end)
    elif command.operator != "y":
        start, end = _whole(buffer, start, end)
    if command.operator not in ("d", "c", "y"):
        return _rewritten(replace(vim, mode="normal"), buffer, command, start, end)
    register = text[start:end] + ("\n" if target.lines else "")
    if register:
        vim = replace(vim, register=register, whole_lines=target.lines)
    vim = replace(vim, mode="normal", wish=None)
    if command.operator == "y":
        keeps = target.lines and command.motion[0] not in "ia" and line_start(text, buffer.cursor) == start
        return Step(vim, replace(buffer, cursor=buffer.cursor if keeps else settled(text, start)))
    if command.operator == "c":
        step = _changed(vim, buffer, command, start, end, "", start)
        left = Buffer(step.buffer.text, start)
        undo = step.vim.undo if step.buffer.text != text else (*vim.undo, buffer)
        return Step(replace(step.vim, mode="insert", inserting=left, change=command, undo=undo, redo=()), left)
    if not target.lines:
        return _changed(vim, buffer, command, start, end, "", start)
    if end < len(text):
        end += 1
    elif start > 0:
        start -= 1
    step = _changed(vim, buffer, command, start, end, "", start)
    position = min(start + (end == len(text) and start > 0), len(step.buffer.text))
    return replace(step, buffer=replace(step.buffer, cursor=first_letter(step.buffer.text, position)))


def _rewritten(vim: Vim, buffer: Buffer, command: Command, start: int, end: int, times: int = 1) -> Step:
    """Shift the lines of a span so many times, or change its case."""
    if command.operator in ("<", ">"):
        start, end = line_start(buffer.text, start), line_end(buffer.text, end)
        lines = [_shifted(line, command.operator, times) for line in buffer.text[start:end].split("\n")]
        step = _changed(vim, buffer, command, start, end, "\n".join(lines), start)
        return replace(step, buffer=replace(step.buffer, cursor=first_letter(step.buffer.text, start)))
    return _changed(vim, buffer, command, start, end, _cased(buffer, start, end, command.operator[1]), start)


def _shifted(line: str, way: str, times: int) -> str:
    if way == ">":
        return INDENT * times + line if line else line
    for _ in range(times):
        line = line[1:] if line.startswith("\t") else line[min(len(INDENT), len(line) - len(line.lstrip(" "))) :]
    return line


def _cased(buffer: Buffer, start: int, end: int, how: str) -> str:
    """The span in lower case (u), upper case (U) or swapped (~), with its atoms unchanged."""
    out, position = "", start
    for left, right in (*(atom for atom in buffer.atoms if start <= atom[0] and atom[1] <= end), (end, end)):
        part = buffer.text[position:left]
        out += part.lower() if how == "u" else part.upper() if how == "U" else part.swapcase()
        out, position = out + buffer.text[left:right], right
    return out


def _whole(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    """The span, extended to every atom that it touches."""
    for left, right in buffer.atoms:
        if start < right and left < end:
            start, end = min(start, left), max(end, right)
    return start, end


def _changed(vim: Vim, buffer: Buffer, command: Command, start: int, end: int, text: str, cursor: int) -> Step:
    """Replace a span as a change that u undoes and the dot repeats. Characters of an atom are never replaced
    individually."""
    if text and start < end and _whole(buffer, start, end) != (start, end):
        return Step(vim, buffer)
    new = buffer.text[:start] + text + buffer.text[end:]
    if new == buffer.text:
        return Step(replace(vim, change=command, typed=""), replace(buffer, cursor=settled(new, cursor)))
    vim = replace(vim, undo=(*vim.undo[-199:], buffer), redo=(), change=command, typed="", wish=None)
    return Step(vim, Buffer(new, settled(new, cursor)))


def _open(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """Enter insert mode."""
    text, at = buffer.text, buffer.cursor
    match command.motion:
        case "i":
            position = at
        case "a":
            position = min(line_end(text, at), at + 1)
        case "I":
            position = first_letter(text, at) if text[line_start(text, at) : line_end(text, at)].strip() else at
        case "A":
            position = line_end(text, at)
        case "o":
            position = line_end(text, at) + 1
            text = f"{text[: position - 1]}\n{text[position - 1 :]}"
        case _:
            position = line_start(text, at)
            text = f"{text[:position]}\n{text[position:]}"
    began = Buffer(text, position)
    vim = replace(vim, mode="insert", inserting=began, change=command, undo=(*vim.undo[-199:], buffer), redo=())
    return Step(vim, began)


def _put(vim: Vim, buffer: Buffer, command: Command) -> Step:
    text, at, what = buffer.text, buffer.cursor, vim.register * command.times
    if not what:
        return Step(vim, buffer)
    if not vim.whole_lines:
        position = min(line_end(text, at), at + 1) if command.motion == "p" else at
        return _changed(vim, buffer, command, position, position, what, position + len(what) - 1)
    if command.motion == "P":
        position = start = line_start(text, at)
    else:
        position = line_end(text, at)
        what, start = "\n" + what[:-1], position + 1
    step = _changed(vim, buffer, command, position, position, what, start)
    return replace(step, buffer=replace(step.buffer, cursor=first_letter(step.buffer.text, start)))


def _join(vim: Vim, buffer: Buffer, command: Command, count: int) -> Step:
    text, before = buffer.text, buffer
    cursor = buffer.cursor
    for _ in range(count):
        end = line_end(text, cursor)
        if end == len(text):
            break
        rest = text[end + 1 :].lstrip(" \t")
        gap = "" if not rest or rest[0] in "\n)" or text[end - 1 : end].isspace() else " "
        text, cursor = text[:end] + gap + rest, end
    return (
        _changed(vim, before, command, 0, len(before.text), text, cursor) if text != before.text else Step(vim, before)
    )


def _back_or_on(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """u and Ctrl+R."""
    undo, redo = vim.undo, vim.redo
    for _ in range(command.times):
        if command.motion == "u" and undo:
            undo, redo, buffer = undo[:-1], (*redo, buffer), undo[-1]
        elif command.motion != "u" and redo:
            redo, undo, buffer = redo[:-1], (*undo, buffer), redo[-1]
    return Step(
        replace(vim, undo=undo, redo=redo, wish=None), replace(buffer, cursor=settled(buffer.text, buffer.cursor))
    )


def _again(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """The dot: repeat the newest change with the text typed after it."""
    typed = vim.typed
    step = _run(vim, buffer, command)
    if step.vim.mode != "insert":
        return step
    at = step.buffer.cursor
    text = step.buffer.text[:at] + typed + step.buffer.text[at:]
    return _leave_insert(step.vim, Buffer(text, at + len(typed)))


def selected(vim: Vim, buffer: Buffer) -> tuple[int, int]:
    """Span of the visual selection."""
    text, low, high = buffer.text, min(vim.anchor, buffer.cursor), max(vim.anchor, buffer.cursor)
    if vim.mode == "visual line":
        return line_start(text, low), line_end(text, high)
    return low, min(len(text), high + 1)


def _in_visual(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """Run a visual mode command: move the selection's end, or change the selected text."""
    lines = vim.mode == "visual line" or command.motion in _WHOLE_LINES
    start, end = selected(replace(vim, mode="visual line") if lines else vim, buffer)
    normal = replace(vim, mode="normal")
    match command.motion:
        case "v" | "V":
            mode: Mode = "visual" if command.motion == "v" else "visual line"
            return Step(replace(vim, mode="normal" if mode == vim.mode else mode), buffer)
        case "o" | "O":
            return Step(replace(vim, anchor=buffer.cursor), replace(buffer, cursor=vim.anchor))
        case "d" | "x" | "X" | "D" | "c" | "s" | "S" | "C" | "y" | "Y":
            operator = {"x": "d", "X": "d", "D": "d", "s": "c", "S": "c", "C": "c", "Y": "y"}.get(
                command.motion, command.motion
            )
            step = _on_span(normal, buffer, Command("l", operator), Target(start, start, end, lines))
            return replace(step, vim=replace(step.vim, change=vim.change)) if operator != "c" else step
        case "p" | "P":
            if not vim.register:
                return Step(normal, buffer)
            taken = buffer.text[start:end] + ("\n" if lines else "")
            what = vim.register.removesuffix("\n") if lines else vim.register
            step = _changed(normal, buffer, Command("p"), *_whole(buffer, start, end), "", start)
            text = step.buffer.text[:start] + what + step.buffer.text[start:]
            put = replace(step.vim, register=taken, whole_lines=lines, change=vim.change)
            return Step(put, Buffer(text, settled(text, start + len(what) - 1)))
        case "r":
            text = "".join(char if char == "\n" else command.target for char in buffer.text[start:end])
        case "~" | "u" | "U":
            text = _cased(buffer, start, end, command.motion)
        case "<" | ">":
            step = _rewritten(normal, buffer, Command("l", command.motion), start, end, command.times)
            return replace(step, vim=replace(step.vim, change=vim.change))
        case "J":
            joined = _join(
                normal, replace(buffer, cursor=start), Command("J"), max(1, buffer.text[start:end].count("\n"))
            )
            return replace(joined, vim=replace(joined.vim, change=vim.change))
        case _:
            return _extend(vim, buffer, command)
    step = _changed(normal, buffer, command, start, end, text, start)
    return replace(step, vim=replace(step.vim, change=vim.change))


def _extend(vim: Vim, buffer: Buffer, command: Command) -> Step:
    """Move the end of the selection; a text object replaces the selection."""
    if command.motion[0] in "ia":
        span = text_object(buffer.text, buffer.cursor, command.motion, command.times)
        if span is None:
            return Step(vim, buffer)
        lines = command.motion[1] == "p"
        end = settled(buffer.text, span[1]) if lines else max(span[0], span[1] - 1)
        mode: Mode = "visual line" if lines else vim.mode
        return Step(replace(vim, mode=mode, anchor=span[0]), replace(buffer, cursor=end))
    return _move(vim, buffer, command)
