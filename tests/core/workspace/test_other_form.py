"""Quotes in another form than the file's: what is edited, what keeps the file's form, what stays refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.workspace.edit import EditError, replace_string
from swecli.core.workspace.patch import parse_patch, patched
from swecli.core.workspace.text_file import decode
from tests.support.thorough import examples

TABS = "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n"
SPACES = TABS.replace("\t", "    ")


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        # A level is missing: the new line below gets it, too.
        (
            TABS,
            "\tif self:\n\t\treturn 1",
            "\tif self:\n\t\tprint()\n\t\treturn 1",
            TABS.replace("return 1", "print()\n\t\t\treturn 1"),
        ),
        # A level too much, with a deeper new line.
        (
            SPACES,
            "        def g(self):\n            return 2",
            "        def g(self):\n            if 1:\n                return 3",
            SPACES.replace("        return 2", "        if 1:\n            return 3"),
        ),
        # Spaces for tabs, two for each.
        (TABS, "    if self:\n      return 1", "    while self:\n      return 4\n", None),
        # Tabs for spaces.
        (SPACES, "\tdef g(self):\n\t\treturn 2", "\tdef g(self):\n\t\t\tx\n\t\treturn 2", None),
        # White space within a line and at its end stays where nothing changed.
        ("a  =  1  \nb = 2\t\n", "a = 1\nb = 2", "a = 1\nb = 3", "a  =  1  \nb = 3\t\n"),
        (
            "One line  \nand “another”  \n",
            'One line\nand "another"',
            'One line\nnot "another"',
            "One line  \nnot “another”  \n",
        ),
        # White space that only the quote has at the ends of lines goes.
        ("\ta\n\tb\n", "\ta \n\tb ", "\ta \n\tc \n\tb ", "\ta\n\tc\n\tb\n"),
        ("call(a,   b)\n", "call(a, b)", "call(a, c)", "call(a,   c)\n"),
        # Typography stays where nothing changed; a no-break space counts as a space.
        ("the list\u00a0in “x” — y\n", 'list in "x" - y', 'list of "x" - z', "the list\u00a0of “x” — z\n"),
        # A composed letter quoted as two characters.
        ("caf\u00e9  = 1\n", "cafe\u0301 = 1", "tea = 1", "tea  = 1\n"),
        # The quote begins at the first word of its first line.
        (
            TABS,
            "def g(self):\n        return 2",
            "def g(self):\n        return 5",
            TABS.replace("return 2", "return 5"),
        ),
        # Whole lines are deleted with their ends.
        ("if a:\n\tb\n\tc\n", "    b\n", "", "if a:\n\tc\n"),
        # A blank line with white space in the file is a line of the quote, too.
        ("\ta = 1\n  \n\tb = 2\n", "    a = 1\n\n", "    a = 1\n", "\ta = 1\n\tb = 2\n"),
        # The quote with one level less fits in the middle of the indentation.
        ("class A:\n    def f():\n        return “x”\n", '    return "x"\n', "", "class A:\n    def f():\n"),
        # A line that changed among several keeps its own white space.
        ('\tx = "a  b"\n', '    x = "a b"', '    x = "a b", 1\n    y = 2', '\tx = "a  b", 1\n\ty = 2\n'),
        # Levels beyond the next one are known from one another.
        ("if a:\n\tb = c(d)\n", "    b = c(d)", "    if b:\n        if c:\n            d()", None),
        # CRLF stays CRLF.
        ("if a:\r\n\tb\r\n", "  b", "  c\n  d", "if a:\r\n\tc\r\n\td\r\n"),
    ],
)
def test_edited_in_the_form_of_the_file(text: str, old: str, new: str, after: str | None) -> None:
    edited = replace_string(decode(text.encode()), old, new)
    if after is None:
        assert "\t \t" not in edited.data.decode()
        kinds = {line[: len(line) - len(line.lstrip())] for line in edited.data.decode().split("\n")}
        assert len({kind[0] for kind in kinds if kind}) == 1
    else:
        assert edited.data.decode() == after
    assert edited.difference


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("\tx = 1\n\tx  = 1\n", "  x = 1", "y"),  # two places
        ("\tx = 1\n", "  x = 1", "  if a:\n   x = 1"),  # an indentation that is no whole number of tabs
        ("\ta = 1\n\tb = 2\n", "  a = 1\n    b = 2", "  a = 1\n      b = 3"),  # quoted lines that contradict
        ("x = a + b\n", "  = a  + b", "  = c"),  # part of a line
        ("foo = 12\n", "foo = 1 2", "bar"),  # other words
        ("say “a” — b\n", 'say "a" - b', 'say "b" and "a" - b'),  # new signs that could be of either kind
        ("# the “x” thing\n", '# the "x" thing', 'y = "z"'),
        ('x = “a” + "a"\n', 'x = "a" + "a"', 'x = "a"'),  # either could have gone
        ("\tx = 1\n  x = 1\n", "x = 1 \nx = 1 ", "x = 1 "),
        (
            'x = "a  b"\ny = 1\n',
            'x = "a b"\ny = 1 ',
            'call("a b", 1, or=None)\ny = 1',
        ),  # white space of a text that moved
        ('x = "a  b"\n', 'x  = "a b"', 'x = "a b"\ny = "a b"'),
        ("\t\ta = 1\n", "    a = 1", "    if b:\n            a = 1"),  # two tabs, or one of four spaces and a level
        ("        a = b\n", "    a =  b", "    if c:\n      a = b"),  # half as many spaces, or a level less
        ("a = 1\nb = 2\n", "    a = 1\n    b = 2", "    a = 1\n        c\n    b = 2"),  # a file without indentation
        ("all:  a\n\tb\n", "all: a", "all: a\n    c"),  # spaces in a file of tabs
        ("\tint a;\n    int b;\n", "    int a;\n    int b;", "    int a;\n    int b;\n    int c;"),  # tabs and spaces
        ("if a:\n        b()\n        c  = 1\n", "b()\n        c = 1", "d()\nb()\n        c = 1\ne()"),
        ("“a”\nb\n", '"a"\n ', '"c"'),  # the next line would follow in the same line
        ("Line one  \nand two\n", "Line one\nand  two", "Other words\nand  two"),  # a line break of Markdown
    ],
)
def test_refused_where_the_form_is_uncertain(text: str, old: str, new: str) -> None:
    with pytest.raises(EditError, match="not found"):
        replace_string(decode(text.encode()), old, new)


def test_all_places_are_only_edited_by_exact_quotes() -> None:
    with pytest.raises(EditError, match="not found"):
        replace_string(decode(b"\tx = 1\n"), "    x = 1", "    y", replace_all=True)


@st.composite
def _programs(draw: st.DrawFn) -> list[str]:
    depth, lines = 0, list[str]()
    for number in range(draw(st.integers(2, 12))):
        lines.append("\t" * depth + f"call_{number}(a, b)")
        depth = draw(st.integers(0, depth + 1))
    return lines


@given(lines=_programs(), data=st.data())
@settings(deadline=None, max_examples=examples(150, 800))
def test_the_same_as_an_exact_edit(lines: list[str], data: st.DataObject) -> None:
    """An edit that is quoted in another form makes what the exact one makes, or is refused."""
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    old, new = lines[first:last], list[str]()
    for line in old:
        new.append(line)
        if data.draw(st.booleans()):
            new.append(line[: len(line) - len(line.lstrip())] + data.draw(st.sampled_from(("\tnew()", "new()"))))
    width = data.draw(st.sampled_from((2, 4, 8)))
    forms = {
        "spaces": lambda line: line.replace("\t", " " * width),
        "more": lambda line: "\t" + line,
        "fewer": lambda line: line.removeprefix("\t"),
    }
    kind = data.draw(st.sampled_from(sorted(forms)))
    if kind == "fewer" and not all(line.startswith("\t") for line in old):
        return
    quoted, written = ("\n".join(map(forms[kind], part)) for part in (old, new))
    file = decode(("\n".join(lines) + "\n").encode())
    exact = file.text.replace("\n".join(old) + "\n", "\n".join(new) + "\n", 1)
    try:
        edited = replace_string(file, quoted, written)
    except EditError:
        assert kind != "spaces" or all(not line.startswith("\t") for line in old) or quoted == written
        return
    if edited.difference:
        assert edited.data.decode() == exact


def test_a_patch_with_exact_lines_keeps_white_space_of_new_ones() -> None:
    (change,) = parse_patch("*** Begin Patch\n*** Update File: a\n a\n+   \n+\tb \n*** End Patch")
    assert patched(decode(b"a\nc\n"), change.chunks) == b"a\n   \n\tb \nc\n"


def test_a_patch_indents_new_lines_as_the_file_does() -> None:
    lines = " def g(self):\n-    return 2\n+    if 1:\n+        return 3\n"
    (change,) = parse_patch(f"*** Begin Patch\n*** Update File: a.py\n{lines}*** End Patch")
    after = patched(decode(TABS.encode()), change.chunks).decode()
    assert after == TABS.replace("\t\treturn 2", "\t\tif 1:\n\t\t\treturn 3")
