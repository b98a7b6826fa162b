"""Patches: their form, where they fit, and that all other bytes stay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.workspace.patch import Chunk, PatchError, parse_patch, patched
from swecli.core.workspace.text_file import decode
from tests.support.thorough import examples


def patch(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch"


def change(data: bytes, body: str) -> bytes:
    (one,) = parse_patch(patch(f"*** Update File: f\n{body}"))
    return patched(decode(data), one.chunks)


def test_all_forms_of_a_file() -> None:
    add, update, move, delete = parse_patch(
        patch(
            "*** Add File: new dir/a.txt\n+one\n+\n++plus\n"
            "*** Update File: b.py\n@@ class X\n@@ def y\n context\n-old\n+new\n*** End of File\n"
            "*** Update File: c.py\n*** Move to: d.py\n"
            "*** Delete File: e.py"
        )
    )
    assert (add.action, add.path, add.text) == ("add", "new dir/a.txt", "one\n\n+plus\n")
    assert update.chunks == (Chunk(("class X", "def y"), ((" ", "context"), ("-", "old"), ("+", "new")), at_end=True),)
    assert (move.move_to, move.chunks) == ("d.py", ())
    assert (delete.action, delete.path) == ("delete", "e.py")


@pytest.mark.parametrize(
    "text",
    [
        "<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
        "apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n",
        "```diff\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n```",
        "\n\n*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\r\n",
    ],
)
def test_wrappings_are_taken_off(text: str) -> None:
    assert [one.path for one in parse_patch(text)] == ["a"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line"),
        ("--- a\n+++ b\n", "first line"),
        ("*** Begin Patch\n*** Delete File: a", "cut off"),
        (patch(""), "names no file"),
        (patch("hello"), "Line 2"),
        (patch("*** Add File: a\nno plus"), "starts with '+'"),
        (patch("*** Delete File: a\n-x"), "nothing may follow"),
        (patch("*** Update File: a"), "changes nothing"),
        (patch("*** Update File: a\n*x"), "Line 3"),
    ],
)
def test_what_is_no_patch_is_refused_with_the_line(text: str, says: str) -> None:
    with pytest.raises(PatchError, match=says.replace("+", r"\+").replace("(", r"\(")):
        parse_patch(text)


@pytest.mark.parametrize(
    ("data", "body", "after"),
    [
        (b"a\nb\nc\n", "@@\n a\n-b\n+B\n c", b"a\nB\nc\n"),
        (b"a\r\nb\r\nc\r\n", " a\n-b\n+B\n+B2\n c", b"a\r\nB\r\nB2\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "-b\n+B", b"a\r\nB\nc\r\n"),
        (b"a\nb", "-b\n+B", b"a\nB"),
        (b"a\nb", " b\n+c", b"a\nb\nc"),
        (b"a\nb\n", " b\n+c", b"a\nb\nc\n"),
        (b"a\nb", "-b", b"a\n"),
        (b"", "+a\n+b", b"a\nb\n"),
        (b"a\n", "+b", b"a\nb\n"),
        (b"x\nx\ny\nx\n", "@@ y\n-x\n+X", b"x\nx\ny\nX\n"),
        (b"x\ny\nx\n", "-x\n+X\n*** End of File", b"x\ny\nX\n"),
        (b"def f():\n    a  \n\tb\n", " def f():\n     a\n-    b\n+    c", b"def f():\n    a  \n    c\n"),
        ("say “hi” – now\nx\n".encode(), ' say "hi" - now\n-x\n+y', "say “hi” – now\ny\n".encode()),
        (b"\xef\xbb\xbfa\nb\n", "-a\n+A", b"\xef\xbb\xbfA\nb\n"),
        ("ä\nb\n".encode("latin-1"), " ä\n-b\n+ö", "ä\nö\n".encode("latin-1")),
        ("a\nb\n".encode("utf-16"), "-b\n+c", "a\nc\n".encode("utf-16")),
        (b"a\n\nb\n", " a\n\n-b\n+c", b"a\n\nc\n"),
        (b"a\nb\nc\nd\n", "-a\n b\n+n\n c\n-d", b"b\nn\nc\n"),
        (b"x\na\nx\n", "@@ -3,1 +3,1 @@\n-x\n+X", b"x\na\nX\n"),
        (b"x\na\n", "@@ -9,2 +9,2 @@ def f():\n-x\n+X\n a\n\\ No newline at end of file", b"X\na\n"),
        (b"x\na\nx\n", "@@\n-x\n+X\n@@\n-x\n+Y", b"X\na\nY\n"),
        (b"1\n2\n3\n4\n5\n", "@@\n 1\n-2\n@@\n-4\n+four\n 5", b"1\n3\nfour\n5\n"),
    ],
)
def test_only_the_named_lines_change(data: bytes, body: str, after: bytes) -> None:
    assert change(data, body) == after


@pytest.mark.parametrize(
    ("data", "body", "says"),
    [
        (b"a\nb\n", "-c\n+d", "Change 1: the context was not found"),
        (b"total = count + 1\n", "-total = count + 2\n+x", "closest"),
        (b"a\nb\n", "@@ def f\n-a\n+b", "line after @@ was not found"),
        (b"a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A", "order of its lines"),
        ("ä\n".encode("latin-1"), " ä\n+→", "cannot represent"),
        (b"x\na\nx\n", "@@\n-x\n+X", "Change 1: its lines match 2 places, at lines 1, 3. Begin it with @@"),
        (b"x\na\nx\n", "@@ -2 +2 @@\n-x\n+X", "match 2 places"),
        (b"a\nx\nb\nx\nx\n", "@@\n a\n@@\n-x\n+X", "Change 2: its lines match 3 places, at lines 2, 4, 5"),
        (b"a\n", "@@ -1,0 +2 @@\n+b", "has no line of the file around"),
    ],
)
def test_what_does_not_fit_is_refused(data: bytes, body: str, says: str) -> None:
    with pytest.raises(PatchError, match=says):
        change(data, body)


def test_a_unified_diff_is_a_patch() -> None:
    update, add, delete = parse_patch(
        "diff --git a/b.py b/b.py\nindex 1..2 100644\n--- a/b.py\t2026-01-01\n+++ b/b.py\n"
        "@@ -1,3 +1,3 @@ def f():\n x\n--- y\n+++ z\n x\n@@ -9 +9 @@\n-q\n"
        "diff --git a/n.py b/n.py\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n.py\n"
        "@@ -0,0 +1,2 @@\n+1\n+2\n"
        "--- a/d.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    )
    assert (update.action, update.path) == ("update", "b.py")
    assert [chunk.line for chunk in update.chunks] == [1, 9]
    assert update.chunks[0].lines == ((" ", "x"), ("-", "-- y"), ("+", "++ z"), (" ", "x"))
    assert (add.action, add.path, add.text) == ("add", "n.py", "1\n2\n")
    assert (delete.action, delete.path) == ("delete", "d.py")
    (plain,) = parse_patch("--- src/a.py\n+++ src/a.py\n@@\n-x\n+y")
    assert plain.path == "src/a.py"
    with pytest.raises(PatchError, match="differ"):
        parse_patch("--- a.py.orig\n+++ a.py\n@@\n-x\n+y")


def test_both_markers_may_be_missing() -> None:
    (one,) = parse_patch("*** Update File: a\n@@\n-x\n+y")
    assert one.path == "a"


lines = st.lists(st.text(st.sampled_from("ab \t“é"), max_size=4), min_size=1, max_size=12)


@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
@settings(deadline=None, max_examples=examples(60, 300))
def test_a_patch_of_one_line_changes_that_line_only(
    texts: list[str], line_end: str, ended: bool, data: st.DataObject
) -> None:
    texts = [f"{number}:{text}" for number, text in enumerate(texts)]
    raw = (line_end.join(texts) + (line_end if ended else "")).encode()
    at = data.draw(st.integers(0, len(texts) - 1))
    body = "\n".join(
        [*(f" {text}" for text in texts[:at]), f"-{texts[at]}", "+new", *(f" {x}" for x in texts[at + 1 :])]
    )
    expected = [*texts[:at], "new", *texts[at + 1 :]]
    assert change(raw, body) == (line_end.join(expected) + (line_end if ended else "")).encode()
