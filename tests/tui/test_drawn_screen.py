"""What is written leaves the picture that is wanted on the screen, whatever was there, and is little."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swecli.tui.cells import erases_in_colour
from swecli.tui.drawn_screen import DrawnScreen
from tests.support.cell_grid import Grid, differences, narrow
from tests.tui.golden import check

COLUMNS, ROWS = 40, 12
TRUE_COLOURS = "truecolor"
Lines = list[tuple[int, list[tuple[int, Strip]]]]
BASE = Style.parse("#c0c0c0 on #101418")
STYLES = (
    BASE,
    BASE,
    BASE + Style.parse("bold #ffffff"),
    BASE + Style.parse("dim italic"),
    BASE + Style.parse("reverse"),
    BASE + Style.parse("underline #80a0ff"),
    Style.parse("green on #203020"),
    Style.null(),
    Style.parse("red"),
    BASE + Style(link="https://example.org/a"),
)
PLAIN_WORDS = ("token", "the", "parser", "a", "x", "reads", "it", "──────", "·", "value", "     ", "é")
ODD_WORDS = (*PLAIN_WORDS, "漢字", "👍", "👩‍👩‍👧", "e\u0301", "☑️", "✓", "한국어", "🇩🇪")


def line(text: str, style: Style = BASE, columns: int = COLUMNS) -> Strip:
    return Strip([Segment(text, style)]).adjust_cell_length(columns, BASE)


def random_line(choice: random.Random, words: Sequence[str]) -> Strip:
    segments: list[Segment] = []
    if choice.random() < 0.3:  # lines of which a screen has several
        return line(choice.choice(("", "─" * COLUMNS, "again and again")))
    for _ in range(choice.randint(0, 5)):
        text = " ".join(choice.choices(words, k=choice.randint(1, 3)))
        segments += [Segment(text, choice.choice(STYLES)), Segment(" ", BASE)]
    return Strip(segments).adjust_cell_length(COLUMNS, choice.choice((BASE, BASE, Style.null(), STYLES[4])))


def changed(picture: list[Strip], choice: random.Random, words: Sequence[str]) -> list[Strip]:
    """The picture after something that happens on a screen."""
    match choice.randrange(6):
        case 0:
            return [random_line(choice, words) for _ in picture]
        case 1 | 2:  # lines move up or down, within some of the screen
            top, bottom = sorted(choice.sample(range(len(picture) + 1), 2))
            count = min(choice.randint(1, 3), bottom - top)
            new = [random_line(choice, words) for _ in range(count)]
            part = picture[top:bottom]
            part = part[count:] + new if choice.random() < 0.5 else new + part[:-count]
            return picture[:top] + part + picture[bottom:]
        case 3:  # a word in the middle of a line
            y, x = choice.randrange(len(picture)), choice.randrange(COLUMNS - 8)
            word = Strip([Segment(choice.choice(words), choice.choice(STYLES))])
            before, after = picture[y].crop(0, x), picture[y].crop(x + word.cell_length, COLUMNS)
            joined = Strip.join([before, word, after]).adjust_cell_length(COLUMNS, BASE)
            return [*picture[:y], joined, *picture[y + 1 :]]
        case 4:  # lines become empty
            y = choice.randrange(len(picture))
            return picture[:y] + [line("") for _ in picture[y:]]
        case _:
            return picture


def some_of(picture: list[Strip], choice: random.Random) -> Lines:
    """A part of some lines, as of a widget that has changed alone."""
    left, right = sorted(choice.choice(((3, 30), (0, 40), choice.sample(range(COLUMNS + 1), 2))))
    return [(y, [(left, strip.crop(left, right))]) for y, strip in enumerate(picture) if choice.random() < 0.9]


def numbered(picture: Iterable[Strip], start: int = 0) -> Lines:
    return [(y, [(0, strip)]) for y, strip in enumerate(picture, start)]


def write_in_full(grid: Grid, lines: Lines, colours: ColorSystem) -> None:
    """What Textual writes: all of the lines."""
    for y, parts in lines:
        for x, strip in parts:
            grid.feed(f"\x1b[{y + 1};{x + 1}H")
            for text, style, _ in strip:
                style = style or Style.null()
                style._ansi = Strip.render_ansi(style, colours)  # otherwise it keeps that of the colours before
                grid.feed(Strip.render_style(style, text, colours))


@pytest.mark.parametrize("words", [PLAIN_WORDS, ODD_WORDS], ids=["plain", "odd"])
@pytest.mark.parametrize(
    ("name", "colours"),
    [(TRUE_COLOURS, ColorSystem.TRUECOLOR), ("256", ColorSystem.EIGHT_BIT), ("standard", ColorSystem.STANDARD)],
)
@pytest.mark.parametrize("coloured_erase", [True, False])
def test_every_picture_is_the_one_that_is_wanted(
    words: Sequence[str], name: str, colours: ColorSystem, coloured_erase: bool
) -> None:
    for seed in range(12):
        choice = random.Random(seed)
        screen = DrawnScreen(name, coloured_erase=coloured_erase)
        shown, expected = Grid(COLUMNS, ROWS, coloured_erase=coloured_erase, filled="?"), Grid(COLUMNS, ROWS)
        picture = [random_line(choice, words) for _ in range(ROWS)]
        lost = True
        for _ in range(40):
            if choice.random() < 0.05:
                screen.forget()
                shown, lost = Grid(COLUMNS, ROWS, coloured_erase=coloured_erase, filled="?"), True
            part = choice.random() < 0.5
            lines = some_of(picture, choice) if part else numbered(picture)
            lost = lost and part
            cursor = choice.randrange(COLUMNS), choice.randrange(ROWS)
            shown.feed(screen.draw(lines, (COLUMNS, ROWS), cursor))
            write_in_full(expected, lines, colours)
            assert lost or differences(shown, expected) == [], seed
            assert (shown.column, shown.row) == cursor
            assert shown.at_rest
            picture = changed(picture, choice, words)


def test_the_same_picture_writes_nothing() -> None:
    screen = DrawnScreen(TRUE_COLOURS, coloured_erase=True)
    assert screen.draw(numbered([line("one")] * ROWS), (COLUMNS, ROWS), (0, 0))
    assert screen.draw(numbered([line("one")] * ROWS), (COLUMNS, ROWS), (0, 0)) == ""
    screen.forget()
    assert screen.draw(numbered([line("one")] * ROWS), (COLUMNS, ROWS), (0, 0))


def test_what_no_frame_has_written_since_the_screen_was_lost_is_written_by_the_next_that_has_it() -> None:
    screen, grid = DrawnScreen(TRUE_COLOURS, coloured_erase=True), Grid(COLUMNS, ROWS, filled="?")
    picture = [line(f"line {n}") for n in range(ROWS)]
    screen.draw(numbered(picture), (COLUMNS, ROWS), (0, 0))
    screen.forget()
    part = picture[3].crop(2, 9)
    grid.feed(screen.draw([(3, [(2, part)])], (COLUMNS, ROWS), (0, 0)))
    assert grid.lines()[3] == "??ne 3   ???????????????????????????????"
    grid.feed(screen.draw(numbered([*picture[1:], line("last")]), (COLUMNS, ROWS), (0, 0)))
    assert grid.lines() == [*(f"line {n}" for n in range(1, ROWS)), "last"]


def test_a_terminal_with_other_widths_shows_each_word_behind_blanks_in_its_place() -> None:
    screen, grid = DrawnScreen(TRUE_COLOURS, coloured_erase=True), Grid(COLUMNS, ROWS, divide=narrow)
    for text in ("👍 one  two      right", "👍👍 1  two   right", "plain  two      right", "👩‍👩‍👧 漢字 x  two"):
        grid.feed(screen.draw(numbered([line(text)] * 2), (COLUMNS, ROWS), (0, 0)))
        shown = grid.lines()[0]
        assert shown.split() == text.replace("\u200d", "").split()
        for word in ("two", "right"):
            if word in text:
                assert shown.index(word) == cell_len(text[: text.index(word)])


def test_control_characters_are_never_written() -> None:
    screen = DrawnScreen(TRUE_COLOURS, coloured_erase=True)
    strip = Strip([Segment("a\x1b[2Jb\x07\x9b\x00\x01c", BASE)])
    written = screen.draw([(0, [(0, strip)])], (COLUMNS, ROWS), (0, 0))
    assert "a[2Jbc" in written
    assert written.count("\x1b") == written.count("\x1b[")
    assert not set(written) & set("\x07\x9b\x00\x01")


def test_erased_cells_have_no_colour_in_screen() -> None:
    assert erases_in_colour({"TERM": "xterm-256color"})
    assert erases_in_colour({"TERM": "screen-256color", "TMUX": "/tmp/tmux,1,0"})
    assert not erases_in_colour({"TERM": "xterm-256color", "STY": "1.tty"})
    assert not erases_in_colour({"TERM": "screen.xterm-256color"})
    assert "\x1b[K" not in DrawnScreen("truecolor", coloured_erase=False).draw(
        numbered([line("one")]), (COLUMNS, ROWS), (0, 0)
    )


def test_a_short_session_writes_what_its_golden_has() -> None:
    screen = DrawnScreen(TRUE_COLOURS, coloured_erase=True)
    bold = BASE + Style.parse("bold #ffffff")
    prompt = Strip([Segment("› ", bold), Segment("type here", BASE)]).adjust_cell_length(COLUMNS, BASE)
    page = [line(f"line {n}") for n in range(5)] + [line("─" * COLUMNS), prompt]
    word = [*page[:4], line("line 4 grows"), *page[5:]]
    scrolled = [*word[1:5], line("line 5"), *word[5:]]
    typed = [*scrolled[:6], Strip([Segment("› ", bold), Segment("x", BASE)]).adjust_cell_length(COLUMNS, BASE)]
    wide = [*typed[:2], line("漢字 two    right"), *typed[3:]]
    wider = [*wide[:2], line("漢字 2      right"), *wide[3:]]
    back = [line("line 0"), *wider[:4], *wider[5:]]
    light = [Strip([Segment(strip.text, Style.parse("#101010 on #f0f0f0"))]) for strip in back]
    frames = {
        "first": page,
        "one more word": word,
        "one more line": scrolled,
        "a letter": typed,
        "a wide word": wide,
        "a letter behind it": wider,
        "one line back": back,
        "other colours": light,
    }
    text = [
        f"{name}:\n{screen.draw(numbered(picture), (COLUMNS, 7), (2, 6)).replace(chr(27), '^[')!r}"
        for name, picture in frames.items()
    ]
    check("written-frames", "\n".join(text))
