"""Vim's keys on a text."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from swecli.tui.prompt.vim import Buffer, Step, Vim, press, selected

_NAMED = re.compile(r"<(esc|c-r|bs)>|(.|\n)")
_NAMES = {"esc": "escape", "c-r": "ctrl+r", "bs": "backspace"}


def typed(marked: str, keys: str, vim: Vim | None = None) -> Step:
    """Press the keys with the cursor at the bar of ``marked``; what is typed in insert mode goes into the text."""
    at = marked.index("|")
    step = Step(vim or Vim("normal"), Buffer(marked.replace("|", "", 1), at))
    for name, letter in _NAMED.findall(keys):
        if step.vim.mode == "insert" and not name:
            text, at = step.buffer.text, step.buffer.cursor
            step = replace(step, buffer=Buffer(f"{text[:at]}{letter}{text[at:]}", at + 1))
        else:
            step = press(step.vim, step.buffer, _NAMES[name] if name else letter)
    return step


def shown(step: Step) -> str:
    text, at = step.buffer.text, step.buffer.cursor
    return f"{text[:at]}|{text[at:]}"


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("one |two", "h", "one| two"),
        ("|one", "h", "|one"),
        ("one |two", "<bs>", "one| two"),
        ("|one two", "3l", "one| two"),
        ("on|e", "l", "on|e"),
        ("|one\ntwo", "lllll", "on|e\ntwo"),
        ("|one two.three", "w", "one |two.three"),
        ("one |two.three", "ww", "one two.|three"),
        ("|one two.three four", "2W", "one two.three |four"),
        ("one t|wo", "b", "one |two"),
        ("one two|", "2b", "|one two"),
        ("|one two", "e", "on|e two"),
        ("|one two", "2e", "one tw|o"),
        ("  one t|wo", "0", "|  one two"),
        ("  one t|wo", "^", "  |one two"),
        ("|one\ntwo", "$", "on|e\ntwo"),
        ("one|\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("|a.b.c", "f.", "a|.b.c"),
        ("|a.b.c", "2f.", "a.b|.c"),
        ("|a.b.c", "t.", "|a.b.c"),
        ("|ab.b.c", "t.;", "ab.|b.c"),
        ("a.b.|c", "F.", "a.b|.c"),
        ("a.b.c|d", "T.", "a.b.|cd"),
        ("|a.b.c", "f.;,", "a|.b.c"),
        ("|x日本", "f本", "x日|本"),
        ("on|e\n\nfour", "jj", "one\n\nfo|ur"),
        ("|one\nlonger", "$j", "one\nlonge|r"),
        ("o|ne\n\ntwo", "}", "one\n|\ntwo"),
        ("|one", "fz", "|one"),
        ("f(a, (b|, [c]))", "%", "f(a, (b, [c|]))"),
        ("|f(a, (b))", "%", "f(a, (b)|)"),
        ("f(a, (b)|)", "%", "f|(a, (b))"),
        ("  {\n  x(\n|)\n}", "%", "  {\n  x|(\n)\n}"),
        ("a |} {b}", "%", "a |} {b}"),
        ("on|e (\n)", "j%", "one |(\n)"),
        ("one two|.three", "ge", "one tw|o.three"),
        ("one two.thr|ee", "gE", "on|e two.three"),
        ("x\n\n|\ny", "ge", "x\n|\n\ny"),
        ("|one", "ge", "|one"),
        ("one\n  two|\n  three", "_", "one\n  |two\n  three"),
        ("o|ne\n  two\n  three", "2_", "one\n  |two\n  three"),
        ("o|ne\n  two\n  three", "+", "one\n  |two\n  three"),
        ("  one\ntwo\nth|ree", "2-", "  |one\ntwo\nthree"),
        ("o|ne\ntwo\nthree", "9j", "one\ntwo\nt|hree"),
    ],
)
def test_motions(before: str, keys: str, after: str) -> None:
    assert shown(typed(before, keys)) == after


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("o|ne", "x", "o|e"),
        ("on|e", "x", "o|n"),
        ("o|ne", "X", "|ne"),
        ("|one two three", "dw", "|two three"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("one t|wo three", "db", "one |wo three"),
        ("|one two", "de", "| two"),
        ("one |two", "D", "one| "),
        ("one |two", "d0", "|two"),
        ("|a.b.c", "df.", "|b.c"),
        ("|a.b.c", "dt.", "|.b.c"),
        ("a.b.|c", "dF.", "a.b|c"),
        ("on|e\ntwo\nthree", "dd", "|two\nthree"),
        ("one\ntw|o", "dd", "|one"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one\ntwo\nthree", "dj", "|three"),
        ("one\n|two\nthree", "dG", "|one"),
        ("one\ntwo\nth|ree", "dgg", "|"),
        ("|one two", "cwten<esc>", "te|n two"),
        ("one |two", "Cx y<esc>", "one x |y"),
        ("|one\ntwo", "ccnew<esc>", "ne|w\ntwo"),
        ("o|ne", "sxy<esc>", "ox|ye"),
        ("  one\ntwo|", "Sx<esc>", "  one\n|x"),
        ("say(on|e, two)", "di(", "say(|)"),
        ('a "b|c" d', 'ci"x<esc>', 'a "|x" d'),
        ("one t|wo three", "daw", "one |three"),
        ("one t|wo three", "diw", "one | three"),
        ("o|ne two three four", "d2aw", "|three four"),
        ("o|ne two three", "d3iw", "| three"),
        ("one t|wo", "d3aw", "one t|wo"),
        ("o|ne two three", "v2awd", "|three"),
        ("f(a, (b, [|c]))", "di(", "f(a, (|))"),
        ("f(a, (b, [|c]))", "d2i(", "f(|)"),
        ("f(a)(|b)", "d2a(", "f(a)(|b)"),
        ("say 'on|e' twice", "da'", "say |twice"),
        ("say 'on|e'", "da'", "sa|y"),
        ("|one", "rx", "|xne"),
        ("|one", "2rx", "x|xe"),
        ("|one", "5rx", "|one"),
        ("|oNe", "3~", "On|E"),
        ("on|e\n  two", "J", "one| two"),
        ("|one\ntwo\nthree", "3J", "one two| three"),
        ("|one", "ia<esc>", "|aone"),
        ("|one", "ax<esc>", "o|xne"),
        ("  on|e", "Ix<esc>", "  |xone"),
        ("|one", "Ax<esc>", "one|x"),
        ("|one\ntwo", "onew<esc>", "one\nne|w\ntwo"),
        ("one\n|two", "Onew<esc>", "one\nne|w\ntwo"),
        ("|one", "3ix<esc>", "xx|xone"),
        ("f(|a, (b)) c", "d%", "f(|) c"),
        ("|one\ntwo\nthree", "9dd", "|"),
        ("one\n|two\nthree", "d9j", "|one"),
        ("one\ntwo\nth|ree", "d9k", "|"),
        ("one tw|o", "dge", "o|n"),
        ("o|ne\n  two\nthree", "d+", "|three"),
        ("o|ne\n  two\n\nthree", "3>>", "    |one\n      two\n\nthree"),
        ("  o|ne\n\ttwo\n        three", "2<<.", "|one\ntwo\n        three"),
        ("o|ne\n  two", ">j", "    |one\n      two"),
        ("o|ne\ntwo\n\nthree", "Vj2>", "        |one\n        two\n\nthree"),
        ("one\n|\n\ntwo", "vj>", "one\n|\n\ntwo"),
        ("o|ne\ntwo\n\nthree", ">ip", "    |one\n    two\n\nthree"),
        ("one\ntw|o\n\n\nthree", "dap", "|three"),
        ("one\n\n|two\nthree", "dap", "|one"),
        ("one\ntw|o\n\nthree", "dip", "|\nthree"),
        ("one\n\n|\nthree", "dip", "one\n|three"),
        ("one\ntw|o\n\nthree", "cipx<esc>", "|x\n\nthree"),
        ("one\ntw|o\n\nthree", "vapd", "|three"),
        ("one tw|o", "gUiw", "one |TWO"),
        ("o|ne\ntwo", "gUU", "|ONE\ntwo"),
        ("One |Two", "g~$", "One |tWO"),
        ("ONE |TWO", "gub", "|one TWO"),
        ("|", "dd", "|"),
        ("|", "x", "|"),
    ],
)
def test_changes_and_one_undo_for_each(before: str, keys: str, after: str) -> None:
    step = typed(before, keys)
    assert shown(step) == after
    assert step.vim.mode == "normal"
    undone = press(step.vim, step.buffer, "u")
    assert undone.buffer.text == before.replace("|", "", 1)
    assert press(undone.vim, undone.buffer, "ctrl+r").buffer.text == step.buffer.text


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("|one two", "dwP", "one| two"),
        ("|one two", "yw$p", "one twoone| "),
        ("|one\ntwo", "yyp", "one\n|one\ntwo"),
        ("|one\ntwo", "Yjp", "one\ntwo\n|one"),
        ("one\n|two", "ddP", "|two\none"),
        ("|one\ntwo", "yy2p", "one\n|one\none\ntwo"),
        ("|ab", "xp", "b|a"),
        ("|one two three", "dw.", "|three"),
        ("|one two three", "cwx<esc>w.", "x |x three"),
        ("|a\nb\nc", "A;<esc>j.j.", "a;\nb;\nc|;"),
        ("|one two three four", "dw2.", "|four"),
        ("|abcdef", "x3.u", "|bcdef"),
        ("|abc", "xxuu<c-r>", "|bc"),
    ],
)
def test_the_register_and_the_dot(before: str, keys: str, after: str) -> None:
    assert shown(typed(before, keys)) == after


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("|one two", "ved", "| two"),
        ("one |two", "vbd", "|wo"),
        ("|one\ntwo\nthree", "Vjd", "|three"),
        ("one t|wo three", "viwcx<esc>", "one |x three"),
        ("|one two", "vey$p", "one twoon|e"),
        ("|one two", "veU", "|ONE two"),
        ("|one two", "vero", "|ooo two"),
        ("|one two", "yewvep", "one on|e"),
        ("|one\ntwo", "Vjy", "|one\ntwo"),
        ("|one", "v<esc>x", "|ne"),
        ("|one\ntwo", "vjJ", "one| two"),
    ],
)
def test_visual_mode(before: str, keys: str, after: str) -> None:
    assert shown(typed(before, keys)) == after


def test_visual_mode_shows_what_it_has_selected() -> None:
    step = typed("one t|wo three", "ve")
    assert step.vim.mode == "visual"
    assert selected(step.vim, step.buffer) == (5, 7)
    line = typed("one\nt|wo", "V")
    assert selected(line.vim, line.buffer) == (4, 7)


def test_escape_leaves_insert_mode_and_drops_an_unfinished_command() -> None:
    step = press(Vim(), Buffer("abc", 3), "escape")
    assert (step.vim.mode, step.buffer.cursor) == ("normal", 2)
    started = typed("|one two", "2d")
    assert started.vim.keys == ("2", "d")
    assert press(started.vim, started.buffer, "escape").vim.keys == ()
    assert shown(typed("|one two", "d<esc>w")) == "one |two"


@pytest.mark.parametrize(
    ("keys", "ask"), [("k", "older"), ("j", "newer"), ("/", "search"), ("й", "no command"), ("dk", ""), ("3q", "")]
)
def test_what_is_left_to_the_prompt(keys: str, ask: str) -> None:
    step = typed("|one", keys)
    assert (step.ask, step.buffer.text) == (ask, "one")


def test_the_placeholder_of_a_paste_goes_whole() -> None:
    text = "see [Pasted text #1: 9 lines] now"
    buffer = Buffer(text, 6, ((4, 29),))
    step = press(Vim("normal"), buffer, "x")
    assert step.buffer.text == "see  now"
    step = press(Vim("normal", keys=("r",)), buffer, "z")
    assert step.buffer.text == text
    for keys in ("gUU", "VU"):
        step = Step(Vim("normal"), buffer)
        for key in keys:
            step = press(step.vim, step.buffer, key)
        assert step.buffer.text == "SEE [Pasted text #1: 9 lines] NOW"


def test_keys_at_random_never_leave_the_text() -> None:
    import random

    chosen = random.Random(7)
    keys = [*"hjklwbeWBE0^$GgfFtT;,xXdcypPr~uiIaAoO.JvVDCYsS123 ({}\"'%_+-<>U", "escape", "ctrl+r", "backspace", "日"]
    step = Step(Vim("normal"), Buffer('one two\n\n  three(four) "five"\nlast', 3, ((4, 7),)))
    for _ in range(20_000):
        key = chosen.choice(keys)
        if step.vim.mode == "insert" and len(key) == 1:
            text, at = step.buffer.text[:300], min(step.buffer.cursor, 300)
            step = replace(step, buffer=Buffer(text[:at] + key + text[at:], at + 1))
        else:
            step = press(step.vim, step.buffer, key)
        assert 0 <= step.buffer.cursor <= len(step.buffer.text)
        if len(step.buffer.text) > 2000:
            step = Step(replace(step.vim, register=""), Buffer("one two\nthree", 0))
