"""What a model is told when its text is not in the file."""

from __future__ import annotations

import time

import pytest

from swecli.core.workspace.edit import explain_miss

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
