"""What a model is told when its text is not in the file."""

from __future__ import annotations

import time

import pytest

from swecli.core.workspace.edit import EditError, explain_miss, replace_string
from swecli.core.workspace.text_file import decode

CODE = (
    "import os\n\n\ndef load(path):\n\tdata = open(path).read()\n\treturn data\n\n\ndef save(path, data):\n    pass\n"
)


@pytest.mark.parametrize(
    ("text", "wanted", "says"),
    [
        (CODE, "    data = open(path).read()", ("line 5", "indentation (the file uses tabs)", "file: \\tdata")),
        (CODE, "def load(path):\n\tdata = open(path).read()\n\treturn dat", ("lines 4-6", "file")),
        (CODE, "def load(file):\n\tdata = open(file).read()\n\treturn data", ("lines 4-6", "other text")),
        ("say “hi”\n", 'say "hi"', ("line 1", "typographic")),
        ("a = 1  \n", "a  = 1", ("line 1", "white space")),
        ("a  \nb\t\nc\n", "a\nb", ("line 1, white space at the end of the line", "file: a··\n  yours: a")),
        ("a\nb  \nc\n", "a\nb\nc", ("line 2, white space at the end of the line", "file: b··\n")),
        ("x = 1\ny = 2\n", "    1\tx = 1\n    2\ty = 2", ("line numbers",)),
        (CODE, "\n\n\n\n\n", ("only white space",)),
        (CODE, "zzzz qqqq", ("no text is close",)),
    ],
)
def test_hint_names_place_and_difference(text: str, wanted: str, says: tuple[str, ...]) -> None:
    hint = explain_miss(text, wanted)
    for phrase in says:
        assert phrase in hint


def test_cost_is_bounded() -> None:
    text = "\n".join(f"value_{index} = compute(alpha, beta, gamma) " + "x" * 300 for index in range(60_000))
    wanted = "\n".join(f"value_{index} = compute(alpha, beta, delta) " + "y" * 300 for index in range(200))
    start = time.process_time()
    assert "lines" in explain_miss(text, wanted) or "not found" in explain_miss(text, wanted)
    assert time.process_time() - start < 15


FILE = "import os\n\n\ndef add(a, b):\n    x = '<&>'\n\treturn a + b\n"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("     4\tdef add(a, b):\n     5\t    x = '<&>'", "contains line numbers"),
        ("4: def add(a, b):\n5:     x = '<&>'", "without them it is at line 4"),
        ("4:def add(a, b):\n5:    x = '<&>'", "contains line numbers"),
        ("  4\u2192def add(a, b):", "contains line numbers"),
        ("4| def add(a, b):\n5|     x = '<&>'", "contains line numbers"),
        ("L4: def add(a, b):", "contains line numbers"),
        ("def add(a, b):\\n    x = '<&>'\\n\\treturn a", "a backslash and a letter or quote"),
        ("    x = \\'<&>\\'", "a backslash and a letter or quote"),
        ("    x = '&lt;&amp;&gt;'", "HTML escapes"),
        ("def add(a, b):\n    # ... existing code ...\n\treturn a + b", "'# ... existing code ...' stands for lines"),
        ("def add(a, b):\n    ...\n\treturn a + b", "'...' stands for lines"),
        ("9: nothing\n10: like it", "no text is close"),
    ],
)
def test_a_slip_of_the_whole_text_is_named(wanted: str, says: str) -> None:
    assert says in explain_miss(FILE, wanted)


def test_the_closest_lines_are_aligned_and_the_difference_is_shown() -> None:
    text = "".join(f"def f{n}(x):\n    y = x + {n}\n    return y * {n}\n\n" for n in range(30))
    wanted = text[text.index("def f5(") : text.index("def f12(")].replace("y * 9", "y ** 9")
    hint = explain_miss(text, wanted)
    assert "at lines 21-49" in hint
    assert "First difference, line 39" in hint
    assert "   39\t    return y * 9" in hint
    assert hint.count("\u2026") == 2


def test_an_edit_that_was_made_is_said_to_be() -> None:
    file = decode(b"a = first()\nb = 2\n")
    with pytest.raises(EditError, match="already in the file, at line 1"):
        replace_string(file, "a = second()", "a = first()")


def test_several_matches_are_shown_with_what_is_around_them() -> None:
    file = decode(b"def a():\n    return 1\n\ndef b():\r\n    return 1\r\n")
    with pytest.raises(EditError) as refused:
        replace_string(file, "    return 1", "    return 2")
    assert str(refused.value).endswith(
        "The places:\n    1\tdef a():\n    2\t    return 1\n    3\t\n  \u2026\n"
        "    4\tdef b():\n    5\t    return 1\n    6\t"
    )
